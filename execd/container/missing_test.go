package container

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// A program is looked for where a container would find it, and nowhere else.
func TestMissing(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"usr/bin/here", "file"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("usr/bin", filepath.Join(root, "bin")), os.Symlink("/usr/bin/here", filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		root, name, path string
		missing          bool
	}{
		{root, "here", "", false}, {root, "/usr/bin/here", "", false}, {root, "/bin/here", "", false}, {root, "/link", "", false},
		{root, "file", "", true}, {root, "/file", "", false}, {root, "file", "/", false}, {root, "/file/x", "", true},
		{root, "sh", "", true}, {root, "/../../usr/bin/sh", "", true}, {root, "none", "", true}, {root, "./here", "", false}, // in a workspace that is not known
		{"", "sh", "", false}, {"", "/usr/bin/none", "", true}, {"", filepath.Join(root, "file"), "", true}, {"", "sh", "/none", true},
	} {
		j := execd.Job{Spec: execd.Spec{Args: []string{tt.name}}}
		if tt.path != "" {
			j.Env = []string{"PATH=" + tt.path}
		}
		if got := missing(tt.root, j); got != tt.missing {
			t.Errorf("%s of %q, PATH %q: missing %t", tt.name, tt.root, tt.path, got)
		}
	}
}
