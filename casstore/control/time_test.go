package control_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestSnapshotOperations(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	if in, err := c.Fork(ctx, "w", "2h", "f"); err != nil || in.Name != "w@2h>f" {
		t.Errorf("Fork = %+v, %v", in, err)
	}
	if err := c.Restore(ctx, "w", "2h", "/a"); !errors.Is(err, vfs.ErrTooBig) || err.Error() != "/a of w to 2h: file too large" {
		t.Errorf("Restore = %v", err)
	}
	if sn, err := c.CreateSnapshot(ctx, "w", "a", "why"); err != nil || sn.Name != "w/a" || sn.Message != "why" {
		t.Errorf("CreateSnapshot = %+v, %v", sn, err)
	}
	if list, err := c.Snapshots(ctx, "w"); err != nil || len(list) != 1 {
		t.Errorf("Snapshots = %+v, %v", list, err)
	}
	if err := c.RemoveSnapshot(ctx, "w", "a"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveSnapshot(ctx, "w", "a"); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("RemoveSnapshot of none: %v", err)
	}
	if h, err := c.History(ctx); err != nil || h != (casstore.History{}) {
		t.Errorf("History = %+v, %v", h, err)
	}
	if err := c.KeepHistory(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if h, err := c.History(ctx); err != nil || h != (casstore.History{Told: true, Keep: time.Hour, Start: 5}) {
		t.Errorf("History = %+v, %v", h, err)
	}
}

func TestMerge(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	for _, try := range []bool{false, true} {
		r, err := c.Merge(ctx, "a", "b", try)
		if err != nil || r.Rev != 7 || len(r.Changes) != 100 || r.Changes[99].Path != "ab99" || len(r.Conflicts) != 1 ||
			r.Conflicts[0].Path != fmt.Sprint(try) {
			t.Errorf("Merge = %+v, %v", r, err)
		}
	}
	if list, err := c.Conflicts(ctx, "w"); err != nil || len(list) != 100 || list[99].Path != "w" {
		t.Errorf("Conflicts = %+v, %v", list, err)
	}
	err := c.ResolveConflict(ctx, "w", 3, reconcile.KeepMine)
	if !errors.Is(err, vfs.ErrNotExist) || !strings.HasPrefix(err.Error(), "w 3 mine: ") {
		t.Errorf("ResolveConflict = %v", err)
	}
}

func TestLog(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	if _, err := c.CreateWorkspace(ctx, "w"); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{1, 127, 128, 129, 1000, 2000} {
		n, next := 0, vfs.Rev(1000)
		err := c.Log(ctx, "w", func(e casstore.LogEntry) bool {
			if e.Rev != next {
				t.Fatalf("revision %d, want %d", e.Rev, next)
			}
			next--
			n++
			return n < most
		})
		if err != nil || n != min(most, 1000) {
			t.Errorf("%d of %d entries, %v", n, most, err)
		}
	}
	if err := c.Log(ctx, "none", func(casstore.LogEntry) bool { return true }); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("Log of none: %v", err)
	}
}

func TestDiff(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	enough := errors.New("enough")
	for _, most := range []int{1, 63, 64, 65, 999, 1000, 2000} {
		n := 0
		err := c.Diff(ctx, "a", "b", func(e casstore.DiffEntry) error {
			if want := (casstore.DiffEntry{Kind: casstore.DiffRenamed, From: "a", Path: fmt.Sprint("b", n)}); e != want {
				t.Fatalf("entry %+v, want %+v", e, want)
			}
			if n++; n == most {
				return enough
			}
			return nil
		})
		if n != min(most, 1000) || (most <= 1000) != errors.Is(err, enough) {
			t.Errorf("%d of %d entries, %v", n, most, err)
		}
	}
}
