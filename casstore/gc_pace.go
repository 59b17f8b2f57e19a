package casstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// pacer keeps the packs from becoming much larger than what is kept in them, also when files are written and removed faster than the
// collector frees what they were:
//
//	size of the packs    kept            2 × kept          2¼ × kept
//	                     ├─────────────────┤─────────────────┤─────
//	writers                   do not wait     wait a little     for each byte, up to gcBrake
//
// So each write waits for a time that goes with its length, and small ones hardly, instead of all for a whole collection.
type pacer struct {
	kept       atomic.Int64 // bytes in packs that the last collection has left, but for dead ones
	collecting atomic.Int64 // dead bytes that the one that runs is to collect
	brake      atomic.Int64 // how long a write of a megabyte waits, in nanoseconds
}

// step is after how many bytes that have been deleted or replaced a collection is worth it.
func (p *pacer) step() int64 { return min(max(p.kept.Load()/gcStepShare, gcStepLeast), gcStepMost) }

// look finds out how long writers are to wait.
func (c *collector) look() {
	p := &c.pacer
	dead := p.collecting.Load() + c.store.space.garbage.Load()
	if dead < gcBehind*p.step() || c.store.replicas.any.Load() {
		p.brake.Store(0)
		return
	}
	kept := p.kept.Load()
	usual := max(kept, gcBehind*gcStepLeast)
	over := float64(c.store.packBytes()-kept-usual) / float64(usual) * 4
	p.brake.Store(int64(min(max(over, 0), 1) * float64(gcBrake)))
}

// wait has the write of n bytes wait as long as it must.
func (p *pacer) wait(ctx context.Context, n int) {
	brake := p.brake.Load()
	if brake == 0 {
		return
	}
	vfs.WillBlock(ctx)
	t := time.NewTimer(time.Duration(brake * int64(n) >> 20))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// packBytes is what the packs take.
func (s *Store) packBytes() (n int64) {
	for _, p := range s.packs.Packs() {
		n += p.Size
	}
	return n
}
