package casstore

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// meanwhile calls once, before the first byte is read.
type meanwhile struct {
	io.Reader
	call func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.call != nil {
		m.call()
		m.call = nil
	}
	return m.Reader.Read(p)
}

// TestLoadWhileCollected collects when everything of a backup has been read but its last frame: what was loaded until then
// belongs to no workspace yet, and is spared all the same.
func TestLoadWhileCollected(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{DefaultHistory: time.Hour})
	richStore(t, from)
	to := openStore(t, t.TempDir(), Options{})
	loadAndCollect := func(stream []byte) {
		t.Helper()
		last := len(stream) - (1 + 1 + 32)
		collected := false
		end := &meanwhile{Reader: bytes.NewReader(stream[last:]), call: func() {
			collected = true
			if _, err := to.GC(bg); err != nil {
				t.Error(err)
			}
		}}
		if _, err := to.Load(bg, LoadOptions{}, io.MultiReader(bytes.NewReader(stream[:last]), end)); err != nil || !collected {
			t.Fatalf("load: %v; collected: %v", err, collected)
		}
		compareAll(t, everything(t, from), everything(t, to))
	}
	whole, r := backUp(t, from, BackupOptions{})
	loadAndCollect(whole)
	w := openWorkspace(t, from, "ws")
	makeFile(t, w, "since then", bulk(7))
	changes, _ := backUp(t, from, BackupOptions{Since: strconv.FormatUint(uint64(r.Rev), 10)})
	loadAndCollect(changes)
}

// TestLoadOfSlowStream collects when the chunks and the records of a state have been read, and nothing has come for long: no
// record refers to the chunks yet, and they are spared all the same.
func TestLoadOfSlowStream(t *testing.T) {
	var now atomic.Int64
	s := openStore(t, t.TempDir(), Options{packSize: 64 << 10, Clock: func() time.Time { return time.Unix(1<<30, now.Load()) }})
	stream, ends := smallStream(t)
	last := ends[slices.IndexFunc(ends, func(end int) bool { return stream[end] == frameDigest })]
	waits := &meanwhile{Reader: bytes.NewReader(stream[last:]), call: func() {
		_, err := s.CreateWorkspace(bg, "other") // a revision, with the index of the chunks
		now.Add(2 * int64(vfs.ChunkGrace))
		if _, gcErr := s.GC(bg); err != nil || gcErr != nil {
			t.Error(err, gcErr)
		}
	}}
	if _, err := s.Load(bg, LoadOptions{}, io.MultiReader(bytes.NewReader(stream[:last]), waits)); err != nil {
		t.Fatal(err)
	}
}
