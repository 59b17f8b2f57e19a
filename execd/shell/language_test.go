package shell

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// languageCase is a script with what bash 5.2 gave.
type languageCase struct{ script, want string }

// languageCases reads testdata/bash.txt, which has each script, a line of three dashes, what it wrote to standard output,
// and its status.
func languageCases(t testing.TB) (cases []languageCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/bash.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split(string(text), "======\n") {
		script, want, ok := strings.Cut(c, "\n---\n")
		if !ok {
			t.Fatalf("no output in %q", c)
		}
		cases = append(cases, languageCase{script, want})
	}
	return cases
}

func TestLanguage(t *testing.T) {
	for _, c := range languageCases(t) {
		o := runScript(t, newTree(t), c.script, false)
		if got := fmt.Sprintf("%s=> %d\n", o.stdout, o.status); got != c.want {
			t.Errorf("%s\n--- got\n%s--- want\n%s--- stderr\n%s", c.script, got, c.want, o.stderr)
		}
	}
}
