package casstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestPushOnFullDisk: a push for which there is no room has no effect, and one that removes always passes. Room is made
// of what the window kept, which mirrors that are behind learn from their cursors.
func TestPushOnFullDisk(t *testing.T) {
	s := openStore(t, smallDiskDir(t, 96<<20), Options{})
	w := openWorkspace(t, s, "ws")
	d := newDraft(t, w.Authority(), 1, 1)
	d.pull()
	src := rand.NewChaCha8([32]byte{7})
	full := false
	for i := 0; !full; i++ {
		d.make(vfs.RootIno, fmt.Sprint("file", i), vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Xattrs: 60})
		for n := range 60 {
			value := make([]byte, vfs.MaxXattrSize)
			src.Read(value)
			d.put(vfs.Key{Kind: vfs.KeyXattr, Ino: d.free.First - 1, Name: fmt.Sprint("user.", n)}, value)
		}
		before := mustPosition(t, d.a)
		o, err := d.a.Push(bg, d.peer, d.changes())
		switch {
		case errors.Is(err, vfs.ErrNoSpace):
			if now := mustPosition(t, d.a); now.Cursor != before.Cursor || now.Digest != before.Digest {
				t.Fatalf("%v before a push without room, %v after", before, now)
			}
			full = true
		case err != nil || !o.Applied():
			t.Fatalf("%v, %v", o, err)
		case i > 100:
			t.Fatal("the disk does not fill up")
		}
		d.base = new(copied) // the window may have been let go
		d.pull()
	}
	for {
		k, ok := d.pick(isDirent)
		if !ok {
			break
		}
		d.remove(k)
		mustPush(t, d)
	}
	ino := mustCreate(t, w, "again", "")
	value := make([]byte, vfs.MaxXattrSize)
	for n := range 60 {
		src.Read(value)
		if err := w.SetXattr(bg, ino, fmt.Sprint("user.", n), value, 0); err != nil {
			t.Fatalf("after everything was removed: %v", err)
		}
	}
	snapshotAt(t, w.Authority())
}
