package vfs

import (
	"context"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// fullAuthority has one record, and takes everything.
type fullAuthority struct {
	Head
	ChunkMap
}

func (*fullAuthority) Read(_ context.Context, _ Query, yield func(Record) error) (Position, error) {
	return Position{}, yield(Record{})
}
func (*fullAuthority) Get(context.Context, []Key) ([]Record, Rev, error)       { return nil, 1, nil }
func (*fullAuthority) Sums(context.Context, []InoRange) ([]Digest, Rev, error) { return nil, 1, nil }
func (*fullAuthority) LeaseInos(context.Context, PeerID, uint64) (InoRange, error) {
	return AllInos, nil
}
func (*fullAuthority) Push(context.Context, PeerID, Push) (o Outcome, err error) { return o, nil }

// What may be asked passes; one more, or what is malformed, does not.
func TestGuard(t *testing.T) {
	g, ctx := Guard(new(fullAuthority)), t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	a := Chunk{ID: chunk.Sum([]byte("a")), Codec: chunk.Raw, PlainLen: 1, Stored: []byte("a")}
	b := a
	b.Stored = []byte("b")
	yield := func(Chunk) error { return nil }
	for name, tt := range map[string]struct {
		call func(n int) error // with so many more than allowed
		want error
	}{
		"get":   {func(n int) error { _, _, err := g.Get(ctx, make([]Key, MaxGetKeys+n)); return err }, ErrInvalid},
		"sums":  {func(n int) error { _, _, err := g.Sums(ctx, make([]InoRange, MaxSumRanges+n)); return err }, ErrInvalid},
		"sum":   {func(n int) error { _, _, err := g.Sums(ctx, []InoRange{{Ino(n), 0}}); return err }, ErrInvalid},
		"lease": {func(n int) error { _, err := g.LeaseInos(ctx, PeerID{}, MaxLease+uint64(n)); return err }, ErrInvalid},
		"none":  {func(n int) error { _, err := g.LeaseInos(ctx, PeerID{}, 1-uint64(n)); return err }, ErrInvalid},
		"missing": {func(n int) error {
			_, err := g.MissingChunks(ctx, make([]chunk.ID, MaxChunkIDs+n))
			return err
		}, ErrInvalid},
		"read chunks": {func(n int) error { return g.ReadChunks(ctx, make([]chunk.ID, MaxChunkIDs+n), yield) }, ErrInvalid},
		"write": {func(n int) error {
			chunks := make([]Chunk, MaxChunkIDs+n)
			for i := range chunks {
				chunks[i] = a
			}
			return g.WriteChunks(ctx, chunks)
		}, ErrInvalid},
		"another's bytes": {func(n int) error { return g.WriteChunks(ctx, []Chunk{a, b}[:1+n]) }, ErrCorrupt},
		"read": {func(n int) error {
			_, err := g.Read(ctx, Query{Range: InoRange{Ino(n), 0}}, func(Record) error { return nil })
			return err
		}, ErrInvalid},
		"interrupted": {func(n int) error {
			_, err := g.Read([]context.Context{ctx, ended}[n], Query{Range: AllInos}, func(Record) error { return nil })
			return err
		}, ErrInterrupted},
	} {
		if err := tt.call(0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := tt.call(1); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
