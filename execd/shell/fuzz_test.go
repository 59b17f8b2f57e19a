package shell

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// FuzzScript runs scripts made of those of the corpora: whatever they are, they end within their limits, nothing panics,
// and no goroutine is left. Where the seed is not zero, the script is put together anew before.
func FuzzScript(f *testing.F) {
	p := readPieces(f)
	for i, s := range p.sources {
		if i%40 == 0 {
			f.Add(s, uint64(i/40%2*i)) // every other one as it is
		}
	}
	f.Fuzz(func(t *testing.T, script string, seed uint64) {
		if seed != 0 {
			script = p.recombine(script, seed)
		}
		if len(script) > 4<<10 {
			return
		}
		others := goleak.IgnoreCurrent()
		fs := newTree(t)
		for _, name := range []string{"test.txt", "a.txt", "dir/file.txt"} {
			writeCaseFile(t, fs, name, "one 1\ntwo 2\nthree 3\n")
		}
		var out, errs bytes.Buffer
		hang := time.AfterFunc(time.Minute, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("%q is still running", script))
		})
		_, err := Run(t.Context(), Config{
			Tree: fs.Tree, Dir: "/case", Stdin: strings.NewReader("one 1\ntwo 2\n"), Stdout: &out, Stderr: &errs, Commands: testCommands(),
			Seed: 1, Linger: time.Millisecond,
			Limits: Limits{
				Time: 2 * time.Second, Steps: 20_000, Output: 1 << 18, Memory: 1 << 22, Recursion: 50, Processes: 50,
			},
		}, script)
		hang.Stop()
		if errors.Is(err, ErrKilled) || strings.Contains(errs.String(), "internal error") {
			t.Errorf("%q: %v\n%s", script, err, errs.String())
		}
		if err := goleak.Find(others); err != nil {
			t.Errorf("%q: %v", script, err)
		}
	})
}
