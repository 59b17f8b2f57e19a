package casstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// committedTree reads the names of a workspace's root, and the first eight bytes of each file, from the records of the
// newest revision.
func committedTree(t *testing.T, w *Workspace) map[string]uint64 {
	t.Helper()
	s := w.store
	r := s.reader()
	defer r.Close()
	list, _, err := r.dirents(w.id, vfs.RootIno, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for _, e := range list {
		rec, err := r.inode(w.id, e.Ino)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.decodeBody(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if b.size() != rec.Size {
			t.Fatalf("%s: size %d, body of %d", e.name, rec.Size, b.size())
		}
		var first [8]byte
		if err := s.readBase(bg, b, first[:], 0); err != nil {
			t.Fatal(err)
		}
		out[e.name] = binary.BigEndian.Uint64(first[:])
	}
	return out
}

// TestCutIsOneMoment changes names and bytes in a known order while revisions are made. Each of them holds the state
// between two changes, though its values are captured long after its cut.
func TestCutIsOneMoment(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	var inos []vfs.Ino
	for _, name := range []string{"a", "b"} {
		a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
		if err != nil {
			t.Fatal(err)
		}
		inos = append(inos, a.Ino)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for k := uint64(1); ; k++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := writeStep(w, inos, k); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 60 {
		if _, err := w.Commit(bg); err != nil {
			t.Fatal(err)
		}
		checkStep(t, committedTree(t, w))
	}
	close(stop)
	writer.Wait()
}

// writeStep writes k into both files, one after the other, now and then far behind their end so that they change
// between the kinds of body, and moves a window of three names on by one.
func writeStep(w *Workspace, inos []vfs.Ino, k uint64) error {
	for _, ino := range inos {
		if err := w.WriteAt(bg, ino, binary.BigEndian.AppendUint64(nil, k), 0, false); err != nil {
			return err
		}
	}
	size := uint64(8)
	if k%3 == 0 {
		size = 100_000
	}
	if _, err := w.SetAttr(bg, inos[k%2], vfs.AttrSet{Mask: vfs.SetSize, Size: size}); err != nil {
		return err
	}
	if _, err := w.Create(bg, vfs.RootIno, fmt.Sprintf("n%08d", k), vfs.NewNode{}); err != nil {
		return err
	}
	if k > 3 {
		return w.Unlink(bg, vfs.RootIno, fmt.Sprintf("n%08d", k-3))
	}
	return nil
}

func checkStep(t *testing.T, tree map[string]uint64) {
	t.Helper()
	if a, b := tree["a"], tree["b"]; a != b && a != b+1 {
		t.Errorf("a is %d, b is %d", a, b)
	}
	var window []int
	for name := range tree {
		var k int
		if n, _ := fmt.Sscanf(name, "n%d", &k); n == 1 {
			window = append(window, k)
		}
	}
	slices.Sort(window)
	for i := 1; i < len(window); i++ {
		if window[i] != window[i-1]+1 {
			t.Errorf("names %v", window)
		}
	}
	if n := len(window); n > 4 || (n > 0 && window[n-1] > 3 && n < 3) {
		t.Errorf("names %v", window)
	}
	if n := len(window); n > 0 && uint64(window[n-1]) > tree["b"] {
		t.Errorf("names %v, but b is %d", window, tree["b"])
	}
}

// TestFsyncLeavesBulkBehind: an fsync of one file does not wait for another in the middle of a bulk write, whose record
// then holds an earlier state; the next whole commit has it all.
func TestFsyncLeavesBulkBehind(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour}) // no whole commit comes between
	w := openWorkspace(t, s, "ws")
	bulk, err := w.Create(bg, vfs.RootIno, "bulk", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	if err := w.WriteAt(bg, bulk.Ino, b, 0, false); err != nil {
		t.Fatal(err)
	}
	small, err := w.Create(bg, vfs.RootIno, "small", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(bg, small.Ino, []byte("8 bytes."), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, small.Ino); err != nil {
		t.Fatal(err)
	}
	tree := committedTree(t, w)
	if tree["small"] != binary.BigEndian.Uint64([]byte("8 bytes.")) {
		t.Errorf("small is %x", tree["small"])
	}
	if first, ok := tree["bulk"]; !ok || first != 0 {
		t.Errorf("bulk is %x, %v: it was waited for", first, ok)
	}
	if _, err := w.Commit(bg); err != nil {
		t.Fatal(err)
	}
	if first := committedTree(t, w)["bulk"]; first != binary.BigEndian.Uint64(b) {
		t.Errorf("bulk is %x after a whole commit", first)
	}
}

// TestRenameTakesBytesAlong: whatever commit sees a rename also holds the bytes of what was renamed.
func TestRenameTakesBytesAlong(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	b := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	for _, name := range []string{"config", "other", "tmp"} {
		a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteAt(bg, a.Ino, b[len(name):], 0, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(bg); err != nil {
		t.Fatal(err)
	}
	tmp, err := w.Lookup(bg, vfs.RootIno, "tmp")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(bg, tmp.Ino, b, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Rename(bg, vfs.RootIno, "tmp", vfs.RootIno, "config", 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, vfs.RootIno); err != nil {
		t.Fatal(err)
	}
	if first := committedTree(t, w)["config"]; first != binary.BigEndian.Uint64(b) {
		t.Errorf("config is %x", first)
	}
}
