package casstore

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// benchTree makes a workspace with a thousand files in each of some directories.
func benchTree(b *testing.B, dirs int) *Workspace {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if _, err := s.CreateWorkspace(bg, "ws"); err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWorkspace(bg, "ws")
	if err != nil {
		b.Fatal(err)
	}
	for d := range dirs {
		dir, err := w.Mkdir(bg, vfs.RootIno, fmt.Sprint("dir", d), vfs.NewNode{Mode: 0o755})
		if err != nil {
			b.Fatal(err)
		}
		for f := range 1000 {
			if _, err := w.Create(bg, dir.Ino, fmt.Sprint("file", f), vfs.NewNode{Mode: 0o644}); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Sync(bg); err != nil {
		b.Fatal(err)
	}
	return w
}

// BenchmarkServedCommit commits a change of a thousand inodes, with and without the digest.
func BenchmarkServedCommit(b *testing.B) {
	for _, served := range []bool{false, true} {
		b.Run(fmt.Sprintf("served=%v", served), func(b *testing.B) {
			w := benchTree(b, 1)
			if served {
				if _, err := w.Authority().Position(bg); err != nil {
					b.Fatal(err)
				}
			}
			mode := uint32(0)
			for b.Loop() {
				mode ^= 0o111
				for ino := vfs.Ino(3); ino < 1003; ino++ {
					if _, err := w.SetAttr(bg, ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: mode}); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Sync(bg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAuthorityRead reads a snapshot of a hundred thousand files, and one change among them.
func BenchmarkAuthorityRead(b *testing.B) {
	w := benchTree(b, 100)
	before, err := w.Authority().Position(bg)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.Create(bg, vfs.RootIno, "new", vfs.NewNode{}); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Authority().Barrier(bg); err != nil {
		b.Fatal(err)
	}
	for name, since := range map[string]vfs.Cursor{"snapshot": {}, "change": before.Cursor} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				_, err := w.Authority().Read(bg, vfs.Query{Since: since, Range: vfs.AllInos}, func(vfs.Record) error {
					n++
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/float64(b.N), "records/op")
		})
	}
}

// BenchmarkPush pushes a change of some inodes, of which half the names are in memory.
func BenchmarkPush(b *testing.B) {
	for _, n := range []int{1, 1000, 60_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := benchTree(b, 60)
			a := w.Authority()
			records := make(map[vfs.Key]vfs.Record)
			_, err := a.Read(bg, vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
				if r.Kind == vfs.KeyInode && vfs.Type(r.Value[0]) == vfs.TypeRegular && len(records) < n {
					records[r.Key] = vfs.Record{Key: r.Key, Value: append([]byte(nil), r.Value...)}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			var p vfs.Push
			for b.Loop() {
				b.StopTimer()
				binary.BigEndian.PutUint64(p.ID[:], uint64(b.N)+binary.BigEndian.Uint64(p.ID[:])+1)
				p.Records = p.Records[:0]
				for k, r := range records {
					rec, err := vfs.DecodeInode(r.Value)
					if err != nil {
						b.Fatal(err)
					}
					rec.Mode ^= 0o111
					next := vfs.Record{Key: k, Value: rec.Append(nil)}
					p.Records = append(p.Records, vfs.PushRecord{Record: next, Base: r.Base()})
					records[k] = next
				}
				b.StartTimer()
				o, err := a.Push(bg, vfs.PeerID{1}, p)
				if err != nil || !o.Applied() {
					b.Fatal(o, err)
				}
			}
		})
	}
}
