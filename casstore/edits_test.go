package casstore

import (
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestEditsMakeFewChunks makes small changes of a large file, and counts the chunks that are new. CARREL_EDITS_MIB is its size in
// MiB (64).
func TestEditsMakeFewChunks(t *testing.T) {
	mib := envNumber(t, "CARREL_EDITS_MIB", 64)
	size := uint64(mib) << 20
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", "")
	write := func(ino vfs.Ino, at uint64, b ...byte) {
		t.Helper()
		if err := w.WriteAt(bg, ino, b, at, false); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(ino vfs.Ino, at uint64) {
		t.Helper()
		content := rand.NewChaCha8([32]byte{1})
		b := make([]byte, 1<<20)
		for range mib {
			if _, err := io.ReadFull(content, b); err != nil {
				t.Fatal(err)
			}
			write(ino, at, b...)
			at += uint64(len(b))
		}
	}
	known := make(map[chunk.ID]struct{})
	fresh := func(ino vfs.Ino) (n int) {
		t.Helper()
		commitTree(t, w)
		r := s.reader()
		defer r.Close()
		rec, err := r.inode(w.id, ino)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.decodeBody(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.manifest.Entries() {
			if _, again := known[e.ID]; !again && !e.Hole {
				known[e.ID] = struct{}{}
				n++
			}
		}
		return n
	}
	fill(file, 0)
	if n := fresh(file); n < mib {
		t.Fatalf("%d MiB are %d chunks", mib, n)
	}
	changed := func(what string, ino vfs.Ino, most int) {
		t.Helper()
		n := fresh(ino)
		t.Logf("%s in %d MiB: %d new chunks", what, mib, n)
		if n < 1 || n > most {
			t.Errorf("%s in %d MiB: %d new chunks, at most %d", what, mib, n, most)
		}
	}
	write(file, size, 'x')
	changed("a byte appended", file, 1)
	b := make([]byte, 1)
	if _, err := w.ReadAt(bg, file, b, size/2); err != nil {
		t.Fatal(err)
	}
	write(file, size/2, b[0]^1)
	changed("a byte flipped", file, 2)
	inserted := makeFile(t, w, "inserted", "x")
	fill(inserted, 1)
	changed("a byte inserted at the front", inserted, 4)
}

// envNumber is what a variable of the environment says, or d when there is none.
func envNumber(t *testing.T, name string, d int) int {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return d
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is no number", name, text)
	}
	return n
}
