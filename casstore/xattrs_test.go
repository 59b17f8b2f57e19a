package casstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// TestListedIsWhatIsThere: the length of the list of names that is kept, so that no attribute that is set has all of them
// counted, is that of the list, whoever has set and removed them.
func TestListedIsWhatIsThere(t *testing.T) {
	w, d, ino := pushed(t, Options{})
	r := rand.New(rand.NewPCG(vfstest.Seed(t), 13))
	for step := range 400 {
		name := "user." + strings.Repeat("x", r.IntN(8)) + fmt.Sprint(r.IntN(20))
		var err error
		switch r.IntN(8) {
		case 0, 1, 2:
			if err = w.RemoveXattr(bg, ino, name); errors.Is(err, vfs.ErrNoXattr) {
				err = nil
			}
		case 3:
			_, err = w.Commit(bg)
		default:
			err = w.SetXattr(bg, ino, name, []byte(name), 0)
		}
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		compareListed(t, w, ino)
	}
	snapshotAt(t, w.Authority())
	d.pull()
	d.xattr(ino)
	mustPush(t, d)
	compareListed(t, w, ino)
}

// compareListed holds what is kept against the names, and against what the file's record says of them.
func compareListed(t *testing.T, w *Workspace, ino vfs.Ino) {
	t.Helper()
	names, err := w.ListXattr(bg, ino)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, name := range names {
		want += len(name) + 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inodes[ino]
	if n.xattrs.listed != want || int(n.nxattrs) != len(names) {
		t.Fatalf("%d bytes of %d names, kept are %d of %d", want, len(names), n.xattrs.listed, n.nxattrs)
	}
}

// TestFullList: the names may take as much as the kernel takes of a list, and room that was given back can be had again.
func TestFullList(t *testing.T) {
	w := openWorkspace(t, openStore(t, t.TempDir(), Options{}), "ws")
	ino := mustCreate(t, w, "f", "")
	const each = 64 // bytes of a name, with its NUL
	name := func(i int) string { return fmt.Sprintf("user.%0*d", each-6, i) }
	set := func(i int) error { return w.SetXattr(bg, ino, name(i), nil, 0) }
	for i := range vfs.MaxXattrList / each {
		if err := set(i); err != nil {
			t.Fatalf("attribute %d: %v", i, err)
		}
	}
	if err := set(-1); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("one more: %v", err)
	}
	if err := set(0); err != nil {
		t.Fatalf("one that is there: %v", err)
	}
	if err := w.RemoveXattr(bg, ino, name(5)); err != nil {
		t.Fatal(err)
	}
	if err := set(-1); err != nil {
		t.Fatalf("in the place of another: %v", err)
	}
	compareListed(t, w, ino)
}
