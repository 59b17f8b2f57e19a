package casstore

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// What a copy takes from the end of a large file may be so little that the other is a small file, whose bytes are in its record,
// be it a hole or a chunk.
func TestCopyOfALittle(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(rand.IntN(256))
	}
	for name, size := range map[string]uint64{"hole": 2 << 20, "chunk": uint64(len(data))} {
		src, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
		if err == nil {
			err = w.WriteAt(bg, src.Ino, data, 0, false)
		}
		if err == nil {
			_, err = w.SetAttr(bg, src.Ino, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
		}
		if err == nil {
			_, err = w.Commit(bg)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []uint64{1, 1000, vfs.MaxInline - 1, vfs.MaxInline, vfs.MaxInline + 1} {
			dst, err := w.Create(bg, vfs.RootIno, name+string(rune('a'+left%26)), vfs.NewNode{Mode: 0o644})
			if err != nil {
				t.Fatal(err)
			}
			n, err := w.CopyRange(bg, src.Ino, size-left, dst.Ino, 0, 8*chunk.AvgSize)
			if err != nil || n != left {
				t.Fatalf("copied %d of %d: %v", n, left, err)
			}
			if _, err := w.Commit(bg); err != nil {
				t.Fatal(err)
			}
			w.forgetAll()
			head := s.reader()
			rec, err := head.inode(w.id, dst.Ino)
			head.Close()
			if err != nil || (rec.Body.Kind == vfs.BodyInline) != (left <= vfs.MaxInline) {
				t.Errorf("%s, the last %d: body kind %d, %v", name, left, rec.Body.Kind, err)
			}
			got, want := make([]byte, left), make([]byte, left)
			if name == "chunk" {
				copy(want, data[size-left:])
			}
			if a, err := w.Stat(bg, dst.Ino); err != nil || a.Size != left {
				t.Fatalf("%s, the last %d: %d bytes, %v", name, left, a.Size, err)
			}
			if _, err := w.ReadAt(bg, dst.Ino, got, 0); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, the last %d: %v", name, left, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// What the journal has of a file is older than what is copied into it, and must not come back when the store is opened.
func TestCopyOverTheJournal(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	source, want := makeFile(t, w, "source", bulk(1)), bulk(1)
	dst := makeFile(t, w, "file", want[:5000])
	_, err = w.Commit(bg)
	if err == nil {
		err = w.WriteAt(bg, dst, []byte(want[5000:5100]), 5000, false)
	}
	if err == nil {
		err = w.Fsync(bg, dst)
	}
	if err == nil {
		_, err = w.CopyRange(bg, source, 0, dst, 0, uint64(len(want)))
	}
	if err := errors.Join(err, w.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	w = openWorkspace(t, s, "ws")
	got := make([]byte, len(want))
	if n, err := w.ReadAt(bg, dst, got, 0); err != nil || n != len(want) || string(got) != want {
		t.Errorf("%d of %d bytes are as they were copied, %v", n, len(want), err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A journal that such a copy has left behind earlier does not come back either.
func TestOldJournal(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	ino := makeFile(t, w, "file", bulk(1))
	_, err = w.Commit(bg)
	if err == nil {
		err = s.edit(bg, func(v *revision) error {
			for i, e := range []journalEntry{
				{kind: entryLayer, cut: math.MaxUint64, size: 5100}, {kind: entryData, off: 5000, data: make([]byte, 100)},
			} {
				v.kvs = append(v.kvs, kv{key: keyOfJournal(w.id, ino, uint64(i)), value: e.encode()})
			}
			v.forced = true
			return nil
		})
	}
	if err := errors.Join(err, w.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	w = openWorkspace(t, s, "ws")
	if got := contentOf(w, "file"); got != bulk(1) {
		t.Errorf("the file has %d bytes", len(got))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
