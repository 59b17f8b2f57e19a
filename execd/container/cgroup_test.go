package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// fakeCgroups makes files like those of a cgroup hierarchy. Directories that are made in it stay empty, as no kernel fills them,
// so limits cannot be written: what is tested is where groups are made, and what is said when they are not.
func fakeCgroups(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCgroupPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, self string
		files      map[string]string
		parents    []string // in which groups are made
		says       string
	}{
		{
			"version 1", "4:memory:/a\n3:cpu,cpuacct:/b\n2:pids:/\n0::/\n",
			map[string]string{"memory/a/x": "", "cpu/b/x": "", "pids/x": ""}, []string{"memory/a", "cpu/b", "pids"}, "",
		},
		{
			"version 1 in a container", "4:memory:/docker/x\n3:cpu:/docker/x\n2:pids:/docker/x\n",
			map[string]string{"memory/x": "", "cpu/x": "", "pids/x": ""}, []string{"memory", "cpu", "pids"}, "",
		},
		{"version 1 without a controller", "4:memory:/\n3:cpu:/\n", map[string]string{"memory/x": "", "cpu/x": ""},
			[]string{"memory", "cpu"}, "no limit on pids"},
		{
			"version 2", "0::/user/daemon\n",
			map[string]string{"cgroup.controllers": "", "user/daemon/x": "", "user/cgroup.subtree_control": ""}, nil, "no limits",
		},
		{"no hierarchy", "4:memory:/\n", map[string]string{}, nil, "no limit on memory"},
	} {
		root := fakeCgroups(t, tt.files)
		self := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(self, []byte(tt.self), 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := newCgroup(root, self, execd.Limits{Memory: 1, Pids: 1, CPU: 1})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
		for _, parent := range tt.parents {
			if made, err := filepath.Glob(filepath.Join(root, parent, "carrel-*")); err != nil || len(made) != 1 {
				t.Errorf("%s: in %s are %v, %v", tt.name, parent, made, err)
			}
		}
		if err := g.remove(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Groups of daemons that died are removed; those of others and of living ones are not.
func TestCgroupsLeft(t *testing.T) {
	root := t.TempDir()
	for name, stays := range map[string]bool{"carrel-1-7": true, "carrel-4194305-1": false, "carrel-x-1": true, "other": true} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		removeLeft(root)
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
