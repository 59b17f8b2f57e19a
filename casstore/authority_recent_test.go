package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// changesSince are the records that have changed since a cursor: as they are told, or as a scan of Badger finds them.
func changesSince(t *testing.T, w *Workspace, since vfs.Cursor, scan bool) (list []vfs.Record) {
	t.Helper()
	keep := func(r vfs.Record) error {
		r.Value = bytes.Clone(r.Value)
		list = append(list, r)
		return nil
	}
	var err error
	if scan {
		r, _ := w.snapshotReader()
		defer r.Close()
		err = r.records(w.id, vfs.AllInos, since.Rev, keep)
	} else {
		_, err = w.Authority().Read(bg, vfs.Query{Since: since, Range: vfs.AllInos}, keep)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b vfs.Record) int { return a.Key.Compare(b.Key) }) // names of a directory come in any order
	return list
}

// What has changed is the same whether it is remembered or looked for: of a workspace and of a fork of it, after few changes, after
// more than are looked up, and after more than are remembered.
func TestRecentChanges(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	parent := openWorkspace(t, s, "parent")
	for i := range 50 {
		if _, err := parent.Create(bg, vfs.RootIno, fmt.Sprint("old", i), vfs.NewNode{Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Fork(bg, "parent", "", "fork"); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Workspace{parent, openWorkspace(t, s, "fork")} {
		rng := rand.New(rand.NewPCG(1, uint64(w.id)))
		p, err := w.Authority().Position(bg)
		if err != nil {
			t.Fatal(err)
		}
		cursors := []vfs.Cursor{p.Cursor}
		looked := 0
		for i := range 100 {
			many := 1 + rng.IntN(4)
			switch i {
			case 30:
				many = maxSought / 2
			case 60:
				many = maxRecent / 3
			}
			for n := range many {
				changeSomething(t, w, rng, fmt.Sprint(i, "-", n))
			}
			if _, err := w.Commit(bg); err != nil {
				t.Fatal(err)
			}
			since := cursors[max(0, len(cursors)-1-rng.IntN(5))]
			w.store.reading.mu.Lock()
			_, few := w.served.after(since.Rev)
			w.store.reading.mu.Unlock()
			if few {
				looked++
			}
			got, want := changesSince(t, w, since, false), changesSince(t, w, since, true)
			if !slices.EqualFunc(got, want, func(a, b vfs.Record) bool {
				return a.Key == b.Key && a.Rev == b.Rev && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
			}) {
				t.Fatalf("%d: since %d, remembered %v: %d changes, want %d", i, since.Rev, few, len(got), len(want))
			}
			if p, err = w.Authority().Position(bg); err != nil {
				t.Fatal(err)
			}
			cursors = append(cursors, p.Cursor)
		}
		if looked < 50 || looked > 99 {
			t.Errorf("of 100 times, the changes were remembered %d", looked)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// changeSomething makes a file, or does something to one of before.
func changeSomething(t *testing.T, w *Workspace, rng *rand.Rand, name string) {
	t.Helper()
	old := fmt.Sprint("old", rng.IntN(50))
	a, err := w.Lookup(bg, vfs.RootIno, old)
	switch k := rng.IntN(6); {
	case errors.Is(err, vfs.ErrNotExist), k == 0:
		_, err = w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	case err != nil:
	case k == 1:
		err = w.Unlink(bg, vfs.RootIno, old)
	case k == 2:
		err = w.Rename(bg, vfs.RootIno, old, vfs.RootIno, name, 0)
	case k == 3:
		err = w.SetXattr(bg, a.Ino, "user.x", []byte(name), 0)
	case k == 4:
		if err = w.RemoveXattr(bg, a.Ino, "user.x"); errors.Is(err, vfs.ErrNoXattr) {
			err = nil
		}
	default:
		err = w.WriteAt(bg, a.Ino, []byte(name), 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}
