package casstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func (f *flattener) hold(t *testing.T) {
	t.Helper()
	if err := f.turn.take(bg); err != nil {
		t.Fatal(err)
	}
}

// TestWhoWaitsCanGiveUp: what waits for the merging of layers, or for a collection, ends with its context.
func TestWhoWaitsCanGiveUp(t *testing.T) {
	s := openStore(t, smallDiskDir(t, 256<<20), Options{flattenOver: maxOrigins}) // in memory, where nothing waits for a disk
	forkChain(t, s, maxOrigins)
	w := openWorkspace(t, s, chainName(maxOrigins))
	makeFile(t, w, "more", "")
	commitTree(t, w)
	fork := func(ctx context.Context) error {
		_, err := s.Fork(ctx, chainName(maxOrigins), "", "deep")
		return err
	}
	s.flattener.hold(t)
	s.flattener.over = flattenOver
	if err := s.collector.turn.take(bg); err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func(context.Context) error{
		"fork":      fork,
		"gc":        func(ctx context.Context) error { _, err := s.GC(ctx); return err },
		"check":     func(ctx context.Context) error { _, err := s.Check(ctx, CheckOptions{}); return err },
		"make room": func(ctx context.Context) error { return s.collectNow(ctx, 1) },
	} {
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		if err := call(ctx); !errors.Is(err, vfs.ErrInterrupted) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
	s.collector.turn.give()
	s.flattener.turn.give()
	if err := fork(bg); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(openWorkspace(t, s, "deep"), "file1"); got != "fork 41" {
		t.Errorf("the fork shows %q", got)
	}
}
