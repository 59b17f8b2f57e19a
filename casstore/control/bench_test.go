package control_test

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// BenchmarkStat is one round trip.
func BenchmarkStat(b *testing.B) {
	store := newMemStore()
	dir, _ := serve(b, store, nil)
	c := dial(b, dir)
	if _, err := c.CreateWorkspace(b.Context(), "demo"); err != nil {
		b.Fatal(err)
	}
	w, err := c.OpenWorkspace(b.Context(), "demo")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.Stat(b.Context(), vfs.RootIno); err != nil {
			b.Fatal(err)
		}
	}
}
