package pack

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Appends, reads, scans, syncs, seals and removals all at once.
func TestConcurrent(t *testing.T) {
	for _, prealloc := range []int64{50_000, -1} {
		t.Run(fmt.Sprintf("prealloc %d", prealloc), func(t *testing.T) {
			concurrent(t, Options{PackSize: 200_000, Prealloc: prealloc})
		})
	}
}

func concurrent(t *testing.T, opts Options) {
	const writers, each = 6, 60
	dir := t.TempDir()
	s := open(t, dir, opts)
	doomed := put(t, s, random(1<<40, 10)) // alone in the pack that is removed
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	items := make(chan item, writers*each)
	var wg sync.WaitGroup
	for w := range uint64(writers) {
		wg.Go(func() {
			for i := range uint64(each) {
				it, err := tryPut(s, random(w<<32|i, int(100*i+w)))
				if err != nil {
					t.Error(err)
					return
				}
				it.check(t, s)
				items <- it
				if i%20 == 19 {
					if err := s.Sync(); err != nil {
						t.Error(err)
					}
					if end := s.Ends()[it.loc.Pack]; end < it.loc.Off+it.loc.Len {
						t.Errorf("frame %v is past the synced end %d", it.loc, end)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			for _, info := range s.Packs() {
				if err := s.Scan(info.ID, func(Loc, Header) error { return nil }); err != nil {
					t.Error(err)
				}
			}
			if err := s.Seal(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Remove(doomed.loc.Pack); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	close(items)
	var all []item
	for it := range items {
		all = append(all, it)
	}
	checkAll(t, s, all)
	mustSync(t, s)
	checkAll(t, reopen(t, crash(t, dir), opts, s.Ends()), all)
}

func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	plain := random(1, chunk.AvgSize)
	id := chunk.Sum(plain)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	last := uint32(1)
	for b.Loop() {
		loc, err := s.Append(id, chunk.Raw, len(plain), plain)
		if err != nil {
			b.Fatal(err)
		}
		if loc.Pack != last { // bound the disk that this takes
			if err := s.Remove(last); err != nil {
				b.Fatal(err)
			}
			last = loc.Pack
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	it := put(b, s, bytes.Repeat(random(1, 1024), 128))
	dst := make([]byte, maxFrame)
	b.Run("stored", func(b *testing.B) {
		b.SetBytes(int64(it.loc.Len))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, _, err := s.Read(dst, it.loc, it.id); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(len(it.plain)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.ReadChunk(dst, it.loc, it.id); err != nil {
				b.Fatal(err)
			}
		}
	})
}
