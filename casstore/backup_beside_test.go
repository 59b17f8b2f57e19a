package casstore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestBackupBesideForks makes and removes forks while a backup commits the workspaces: it is of those that there are at its
// revision, so that the next one can be since that.
func TestBackupBesideForks(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	makeFile(t, openWorkspace(t, s, "ws"), "file", "x")
	if _, err := s.Fork(bg, "ws", "", "goes"); err != nil {
		t.Fatal(err)
	}
	b := &backup{store: s, ctx: bg}
	defer b.letGo()
	if err := b.commit(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fork(bg, "ws", "", "comes"); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveWorkspace(bg, "goes"); err != nil {
		t.Fatal(err)
	}
	if err := b.pin(nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sp := range b.spaces {
		names = append(names, sp.info.Name)
		if sp.held.rev != b.report.Rev || b.report.Rev != s.head() {
			t.Errorf("%s at %d, the backup is of %d", sp.info.Name, sp.held.rev, b.report.Rev)
		}
	}
	if !slices.Equal(names, []string{"ws", "comes"}) {
		t.Errorf("the backup is of %v", names)
	}
}

// TestBackupOfFsynced fsyncs a little of a file, which goes to the journal, when a backup has committed its workspace: the
// bytes are in the backup, as a file is gone that was removed after they were written.
func TestBackupOfFsynced(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", bulk(1))
	makeFile(t, w, "hot", "x")
	b := &backup{store: s, ctx: bg}
	defer b.letGo()
	err := b.commit(nil)
	if err == nil {
		err = errors.Join(w.WriteAt(bg, file, []byte("fsynced"), 100_000, false), w.Unlink(bg, vfs.RootIno, "hot"),
			w.Fsync(bg, file), b.pin(nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	v := &View{store: s, held: b.spaces[0].held}
	if got := contentOf(v, "hot"); got != vfs.ErrNotExist.Error() {
		t.Errorf("what was removed is there: %q", got)
	}
	if got := contentOf(v, "file"); len(got) < 200_000 || got[100_000:100_007] != "fsynced" {
		t.Error("what was fsynced before that is not")
	}
}

// TestDiffOfFsynced writes a little of a file, gives another a name that says so, and fsyncs the first, again and again: the
// name is then in a record and the bytes are in the journal, and yet what is compared as it is now has both.
func TestDiffOfFsynced(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", bulk(1))
	const digits = 8 // more than are ever needed, so that names are in order
	number := func(i int) string { return fmt.Sprintf("%0*d", digits, i) }
	makeFile(t, w, number(0), "")
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			was, is := number(i), number(i+1)
			err := errors.Join(w.WriteAt(bg, file, []byte(is), 100_000, false),
				w.Rename(bg, vfs.RootIno, was, vfs.RootIno, is, 0), w.Fsync(bg, file))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		side, err := s.diffSide(bg, "ws")
		if err != nil {
			t.Fatal(err)
		}
		bytes := contentOf(side.view, "file")[100_000:][:digits]
		err = side.view.ReadDir(bg, vfs.RootIno, 0, func(e vfs.Dirent) bool {
			if e.Name != "file" && bytes < e.Name {
				t.Errorf("%s is there, and the file's bytes are %q", e.Name, bytes)
			}
			return true
		})
		side.close()
		if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	writer.Wait()
}
