package execs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReadAllowed(t *testing.T) {
	name := filepath.Join(t.TempDir(), allowedName)
	if list, err := readAllowed(name); len(list) != 0 || err != nil {
		t.Errorf("no file: %q, %v", list, err)
	}
	text := "# ours\nhttps://h/a\n\n  file:///srv/git   # the mirrors\r\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readAllowed(name)
	if want := []string{"https://h/a", "file:///srv/git"}; !slices.Equal(list, want) || err != nil {
		t.Errorf("%q, %v, want %q", list, err, want)
	}
}
