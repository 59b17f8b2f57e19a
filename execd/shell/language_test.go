package shell

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLanguage runs scripts whose standard output and status have been recorded from bash 5.2: testdata/bash.txt has each
// script, a line of three dashes, what it wrote, and its status.
func TestLanguage(t *testing.T) {
	text, err := os.ReadFile("testdata/bash.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split(string(text), "======\n") {
		script, want, ok := strings.Cut(c, "\n---\n")
		if !ok {
			t.Fatalf("no output in %q", c)
		}
		o := runScript(t, newTree(t), script, false)
		if got := fmt.Sprintf("%s=> %d\n", o.stdout, o.status); got != want {
			t.Errorf("%s\n--- got\n%s--- want\n%s--- stderr\n%s", script, got, want, o.stderr)
		}
	}
}
