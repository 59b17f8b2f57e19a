package shell

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzScript runs scripts made of those of the corpus: whatever they are, they end within their limits and nothing
// panics.
func FuzzScript(f *testing.F) {
	for i, c := range readCases[oilsCase](f, "oils.jsonl") {
		if i%5 == 0 {
			f.Add(c.Script)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 4<<10 {
			return
		}
		fs := newTree(t)
		var out, errs bytes.Buffer
		_, err := Run(t.Context(), Config{
			Tree: fs.Tree, Dir: "/work", Stdout: &out, Stderr: &errs, Commands: testCommands(), Seed: 1, Linger: time.Millisecond,
			Limits: Limits{
				Time: 2 * time.Second, Steps: 20_000, Output: 1 << 18, Memory: 1 << 22, Recursion: 50, Processes: 50,
			},
		}, script)
		if errors.Is(err, ErrKilled) || strings.Contains(errs.String(), "internal error") {
			t.Errorf("%q: %v\n%s", script, err, errs.String())
		}
	})
}
