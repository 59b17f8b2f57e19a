package wiretest

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// plainOf returns n bytes that depend on seed: every other kilobyte is text, so that they compress a little.
func plainOf(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(r.Uint32()); i>>10&1 == 1 {
			b[i] = byte('a' + i%7)
		}
	}
	return b
}

func checkChunks(k *kit) {
	var chunks []vfs.Chunk
	plains := [][]byte{{0}, []byte("text"), plainOf(1, 100_000), plainOf(2, chunk.MaxSize), make([]byte, chunk.MaxSize)}
	var ids []chunk.ID
	for _, plain := range plains {
		chunks = append(chunks, chunkOf(plain))
		ids = append(ids, chunk.Sum(plain))
	}
	codec, stored := chunk.Recompress(nil, plains[2])
	chunks[2].Codec, chunks[2].Stored = codec, stored
	unknown := chunk.Sum([]byte("never written"))
	all := append([]chunk.ID{unknown}, ids...)
	missing, err := k.authority.MissingChunks(k.ctx, all)
	if k.must(err, "missing"); !slices.Equal(missing, all) {
		k.fail("missing before: %d of %d", len(missing), len(all))
	}
	for range 2 { // again does no harm
		k.must(k.authority.WriteChunks(k.ctx, chunks), "write chunks")
	}
	missing, err = k.authority.MissingChunks(k.ctx, all)
	if k.must(err, "missing"); !slices.Equal(missing, []chunk.ID{unknown}) {
		k.fail("missing after: %v", missing)
	}
	k.wantChunks(append(all, ids[0]), append(slices.Clone(ids), ids[0]))
	many := slices.Repeat([]chunk.ID{unknown}, vfs.MaxChunkIDs+1)
	_, err = k.authority.MissingChunks(k.ctx, many)
	k.want(err, vfs.ErrInvalid, "missing of too many")
	k.want(k.authority.ReadChunks(k.ctx, many, func(vfs.Chunk) error { return nil }), vfs.ErrInvalid, "read of too many")
	err = k.authority.ReadChunks(k.ctx, ids, func(vfs.Chunk) error { return errCut })
	k.want(err, errCut, "read that is cut off")
	k.wantChunks(ids[:1], ids[:1])
}

// wantChunks reads ids and checks that those of want come, in order and sound.
func (k *kit) wantChunks(ids, want []chunk.ID) {
	var got []chunk.ID
	err := k.authority.ReadChunks(k.ctx, ids, func(c vfs.Chunk) error {
		if _, err := c.Plain(nil); err != nil {
			return err
		}
		got = append(got, c.ID)
		return nil
	})
	if k.must(err, "read chunks"); !slices.Equal(got, want) {
		k.fail("read %d chunks, got %d, want %d", len(ids), len(got), len(want))
	}
}

func checkChunksWrong(k *kit) {
	for name, spoil := range map[string]func(*vfs.Chunk){
		"other bytes":          func(c *vfs.Chunk) { c.Stored[len(c.Stored)/2]++ },
		"another id":           func(c *vfs.Chunk) { c.ID[0]++ },
		"another codec":        func(c *vfs.Chunk) { c.Codec = chunk.Zstd },
		"a codec of no kind":   func(c *vfs.Chunk) { c.Codec = 77 },
		"a shorter length":     func(c *vfs.Chunk) { c.PlainLen-- },
		"a longer length":      func(c *vfs.Chunk) { c.PlainLen++ },
		"no bytes":             func(c *vfs.Chunk) { *c = vfs.Chunk{ID: chunk.Sum(nil), Codec: chunk.Raw} },
		"bytes that are cut":   func(c *vfs.Chunk) { c.Stored = c.Stored[:len(c.Stored)-1] },
		"bytes behind the end": func(c *vfs.Chunk) { c.Stored = append(c.Stored, 0) },
	} {
		good, bad := chunkOf(plainOf(3, 5000)), chunkOf(plainOf(4, 6000))
		spoil(&bad)
		err := k.authority.WriteChunks(k.ctx, []vfs.Chunk{good, bad})
		k.want(err, vfs.ErrCorrupt, "write of a chunk with "+name)
		ids := []chunk.ID{good.ID, bad.ID}
		if missing, err := k.authority.MissingChunks(k.ctx, ids); err != nil || !slices.Equal(missing, ids) {
			k.fail("of a good chunk and one with %s, missing is %v, %v", name, missing, err)
		}
	}
}

func checkChunksMissing(k *kit) {
	d := k.draft(0)
	a, b := chunkOf(plainOf(5, 70_000)), chunkOf(plainOf(6, 80_000))
	body, size := bodyOf(a, b)
	d.file(vfs.RootIno, "file", body, size)
	d.text(vfs.RootIno, "other", "text")
	k.must(k.authority.WriteChunks(k.ctx, []vfs.Chunk{a}), "write chunks")
	p := d.push()
	o, err := d.send(p)
	if k.must(err, "push"); !slices.Equal(o.Missing, []chunk.ID{b.ID}) || len(o.Stale) > 0 {
		k.fail("a push without one of its chunks: %v", o)
	}
	d.unchanged(d.position, "a push without one of its chunks")
	k.must(k.authority.WriteChunks(k.ctx, []vfs.Chunk{b}), "write chunks")
	o, err = d.send(p)
	if k.must(err, "push again"); !o.Applied() {
		k.fail("a push with all of its chunks: %v", o)
	}
	k.wantChunks([]chunk.ID{a.ID, b.ID}, []chunk.ID{a.ID, b.ID})
}

func checkChunksLength(k *kit) {
	c := chunkOf(plainOf(7, 70_000))
	k.must(k.authority.WriteChunks(k.ctx, []vfs.Chunk{c}), "write chunks")
	for _, n := range []int{-1, 1} {
		d := k.draft(0)
		lie := c
		lie.PlainLen += n
		body, size := bodyOf(lie)
		d.file(vfs.RootIno, "file", body, size)
		before := d.position
		if o, err := d.send(d.push()); err == nil && o.Applied() {
			k.fail("a record says %d bytes of a chunk of %d, and the push was applied", lie.PlainLen, c.PlainLen)
		}
		d.unchanged(before, "a push of a wrong length")
	}
}

func checkChunksTree(k *kit) {
	chunks, nodes, body, size := longFile()
	withoutLeaf := append(slices.Clone(nodes), chunks[1:]...)
	k.must(k.authority.WriteChunks(k.ctx, withoutLeaf), "write chunks")
	d := k.draft(0)
	d.file(vfs.RootIno, "long", body, size)
	p := d.push()
	o, err := d.send(p)
	if k.must(err, "push"); !slices.Equal(o.Missing, []chunk.ID{chunks[0].ID}) {
		k.fail("a long file without a chunk: missing %v, want %v", o.Missing, chunks[0].ID)
	}
	d.unchanged(d.position, "a long file without a chunk")
	k.must(k.authority.WriteChunks(k.ctx, chunks[:1]), "write chunks")
	o, err = d.send(p)
	if k.must(err, "push again"); !o.Applied() {
		k.fail("a long file with all chunks: %v", o)
	}
	other, otherNodes, body, size := longFile(1)
	k.must(k.authority.WriteChunks(k.ctx, other), "write chunks")
	e := k.draft(0)
	e.file(vfs.RootIno, "without nodes", body, size)
	before := e.position
	o, err = e.send(e.push())
	if k.must(err, "push"); len(o.Missing) == 0 || o.Missing[0] != otherNodes[len(otherNodes)-1].ID {
		k.fail("a long file without its nodes: missing %v", o.Missing)
	}
	e.unchanged(before, "a long file without its nodes")
}

// longFile returns a file that is too long for extents: its chunks, the nodes of its tree with the root last, and its
// body.
func longFile(seed ...uint64) (chunks, nodes []vfs.Chunk, body vfs.Body, size uint64) {
	var entries []chunk.Entry
	for i := range uint64(chunk.MaxInline + 8) {
		c := chunkOf(plainOf(append(seed, 0)[0]<<32+100+i, 1000))
		chunks = append(chunks, c)
		entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(c.PlainLen)}, chunk.HoleOf(1<<20))
	}
	root, err := chunk.BuildTree(chunk.NewManifest(entries), chunk.Manifest{}, func(_ chunk.ID, plain []byte) error {
		nodes = append(nodes, chunkOf(bytes.Clone(plain)))
		return nil
	})
	if err != nil {
		panic(err) // it is as good as a constant
	}
	return chunks, nodes, vfs.Body{Kind: vfs.BodyTree, Data: chunk.AppendRoot(nil, root)}, root.Size
}
