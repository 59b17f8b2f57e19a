package vfs

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Guard returns an authority that does what every one has to do before it looks at its state, and leaves the rest to a:
// arguments that are malformed or over their limits are ErrInvalid, chunks that are not what their ids say ErrCorrupt, and a
// Read ends with its context. So a need not look at them.
func Guard(a Authority) Authority { return guard{a} }

type guard struct{ Authority }

// atMost returns ErrInvalid when n is above max.
func atMost(what string, n, max int) error {
	if n > max {
		return fmt.Errorf("%s of %d, at most %d: %w", what, n, max, ErrInvalid)
	}
	return nil
}

func (g guard) Read(ctx context.Context, q Query, yield func(Record) error) (Position, error) {
	if !q.Range.Valid() {
		return Position{}, fmt.Errorf("read %v: %w", q.Range, ErrInvalid)
	}
	return g.Authority.Read(ctx, q, func(r Record) error {
		if ctx.Err() != nil {
			return fmt.Errorf("read: %w: %w", ErrInterrupted, context.Cause(ctx))
		}
		return yield(r)
	})
}

func (g guard) Get(ctx context.Context, keys []Key) ([]Record, Rev, error) {
	if err := atMost("get", len(keys), MaxGetKeys); err != nil {
		return nil, 0, err
	}
	return g.Authority.Get(ctx, keys)
}

func (g guard) Sums(ctx context.Context, ranges []InoRange) ([]Digest, Rev, error) {
	if err := atMost("sums", len(ranges), MaxSumRanges); err != nil {
		return nil, 0, err
	}
	for _, in := range ranges {
		if !in.Valid() {
			return nil, 0, fmt.Errorf("sum of %v: %w", in, ErrInvalid)
		}
	}
	return g.Authority.Sums(ctx, ranges)
}

func (g guard) LeaseInos(ctx context.Context, peer PeerID, n uint64) (InoRange, error) {
	if n == 0 || n > MaxLease {
		return InoRange{}, fmt.Errorf("lease of %d: %w", n, ErrInvalid)
	}
	return g.Authority.LeaseInos(ctx, peer, n)
}

func (g guard) MissingChunks(ctx context.Context, ids []chunk.ID) ([]chunk.ID, error) {
	if err := atMost("missing", len(ids), MaxChunkIDs); err != nil {
		return nil, err
	}
	return g.Authority.MissingChunks(ctx, ids)
}

func (g guard) ReadChunks(ctx context.Context, ids []chunk.ID, yield func(Chunk) error) error {
	if err := atMost("read", len(ids), MaxChunkIDs); err != nil {
		return err
	}
	return g.Authority.ReadChunks(ctx, ids, yield)
}

func (g guard) WriteChunks(ctx context.Context, chunks []Chunk) error {
	if err := atMost("write", len(chunks), MaxChunkIDs); err != nil {
		return err
	}
	var checker Checker
	if err := checker.Check(chunks...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return g.Authority.WriteChunks(ctx, chunks)
}
