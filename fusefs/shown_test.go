package fusefs

import (
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestShown: when names in a directory change, its attributes are taken back from the kernel if another thread was sent
// them and may not have taken them in yet.
func TestShown(t *testing.T) {
	const dir = vfs.Ino(7)
	type step struct {
		thread  uint32
		dir     vfs.Ino
		changes bool // names in the directory, or else it is sent the attributes
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"nobody", []step{{1, dir, true}}, nil},
		{"itself", []step{{1, dir, false}, {1, dir, true}}, nil},
		{"another", []step{{1, dir, false}, {2, dir, true}}, []string{"node 7 -1 0"}},
		{"another and itself", []step{{1, dir, false}, {2, dir, false}, {2, dir, true}}, []string{"node 7 -1 0"}},
		{"another, of the root", []step{{1, vfs.RootIno, false}, {2, vfs.RootIno, true}}, []string{"node 1 -1 0"}},
		{"another directory", []step{{1, vfs.RootIno, false}, {2, dir, true}}, nil},
		{"one that the kernel does not tell", []step{{0, dir, false}, {0, dir, true}}, []string{"node 7 -1 0"}},
		{"once", []step{{1, dir, false}, {2, dir, true}, {2, dir, true}, {3, dir, true}}, []string{"node 7 -1 0"}},
		{"again", []step{{1, dir, false}, {2, dir, true}, {1, dir, false}, {2, dir, true}}, []string{"node 7 -1 0", "node 7 -1 0"}},
		{"what the kernel does not have", []step{{1, 8, false}, {2, 8, true}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &fakeCache{}
			s := &Server{tree: still{}, notes: &notifier{conn: k}, holds: newHolds(still{})}
			s.holds.take(dir)
			for _, step := range c.steps {
				w := newWorker(s)
				w.pid = step.thread
				if step.changes {
					w.changed(step.dir)
				} else if _, err := w.show(vfs.Attr{Ino: step.dir, Type: vfs.TypeDir}); err != nil {
					t.Fatal(err)
				}
			}
			if got := k.take(); !slices.Equal(got, c.want) {
				t.Errorf("sent %q, want %q", got, c.want)
			}
		})
	}
}
