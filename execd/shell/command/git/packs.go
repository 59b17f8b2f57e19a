package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

const (
	// maxChain is how many deltas an object may be made of: the most that git makes.
	maxChain = 4095
	// maxIndex bounds the index of a pack, some twenty million objects.
	maxIndex = 1 << 30
	// keptBases is how much is kept of what deltas were made into, and of one at most.
	keptBases, keptBase = 16 << 20, 1 << 20
)

// pack is a pack of the repository, open until the command ends.
type pack struct {
	g     *call
	file  *treepath.File
	index *idxfile.MemoryIndex
	bases *cache.BufferLRU // by offset
}

// packs opens those that there are.
func (g *call) packs() ([]*pack, error) {
	if g.opened != nil {
		return *g.opened, nil
	}
	dir := path.Join(g.dir, "objects/pack")
	entries, err := g.FS.ReadDir(g.ctx, dir)
	if err != nil && !notThere(err) {
		return nil, err
	}
	list := []*pack{}
	g.opened = &list
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name, ".pack")
		if !ok || !strings.HasPrefix(base, "pack-") {
			continue
		}
		p, err := g.openPack(path.Join(dir, base))
		if notThere(err) {
			continue // it has no index yet, or was put into another
		}
		if err != nil {
			g.closePacks()
			return nil, fmt.Errorf("%s.pack: %w", base, err)
		}
		list = append(list, p)
		g.opened = &list
	}
	return list, nil
}

func (g *call) openPack(name string) (*pack, error) {
	x, err := g.FS.OpenFile(g.ctx, name+".idx", treepath.Read, 0)
	if err != nil {
		return nil, err
	}
	defer x.Close() // it was only read
	a, err := x.Stat()
	if err != nil {
		return nil, err
	}
	if a.Size > maxIndex {
		return nil, vfs.ErrTooBig
	}
	if err := g.Take(int64(a.Size)); err != nil {
		return nil, err
	}
	p := &pack{g: g, index: idxfile.NewMemoryIndex(), bases: cache.NewBufferLRU(keptBases)}
	if err := idxfile.NewDecoder(bufio.NewReader(x)).Decode(p.index); err != nil {
		return nil, err
	}
	p.file, err = g.FS.OpenFile(g.ctx, name+".pack", treepath.Read, 0)
	return p, err
}

// closePacks lets go of the packs; the next look opens those that there are then.
func (g *call) closePacks() {
	if g.repo == nil || g.opened == nil {
		return
	}
	for _, p := range *g.opened {
		_ = p.file.Close() // it was only read
	}
	g.opened = nil
}

// packed finds an object in a pack.
func (g *call) packed(h plumbing.Hash) (*stored, error) {
	packs, err := g.packs()
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		if offset, err := p.index.FindOffset(h); err == nil {
			o, err := p.object(offset)
			if err != nil {
				return nil, fmt.Errorf("object %s in a pack: %w", h, err)
			}
			o.hash = h
			return o, nil
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// packedHashes lists the objects of all packs, in order.
func (g *call) packedHashes() ([]plumbing.Hash, error) {
	packs, err := g.packs()
	if err != nil {
		return nil, err
	}
	var all []plumbing.Hash
	for _, p := range packs {
		n, err := p.index.Count()
		if err != nil {
			return nil, err
		}
		if err := g.Take(n * int64(len(plumbing.ZeroHash))); err != nil {
			return nil, err
		}
		entries, err := p.index.Entries()
		if err != nil {
			return nil, err
		}
		for {
			e, err := entries.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			all = append(all, e.Hash)
		}
	}
	slices.SortFunc(all, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(all), nil
}

// packedEntry is an object, or a delta, as a pack has it.
type packedEntry struct {
	at   int64
	kind plumbing.ObjectType
	size int64 // of what is inflated
	data int64 // where that begins
	base int64 // of a delta, where its base is
}

// entry reads the head of what is at an offset: see packedHead. A delta's base follows, as how far back it is, seven bits
// by seven, the highest first and each but the last one less than it counts, or as a hash.
func (p *pack) entry(at int64) (e packedEntry, err error) {
	var head [48]byte
	n, err := p.file.ReadAt(head[:], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return e, err
	}
	b := head[:n]
	next := func() (c byte) {
		if len(b) > 0 {
			c, b = b[0], b[1:]
		}
		return c // and a zero, at the end, which ends every number
	}
	c := next()
	e = packedEntry{at: at, kind: plumbing.ObjectType(c >> 4 & 7), size: int64(c & 15)}
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c = next(); shift > 50 {
			return e, vfs.ErrCorrupt
		}
		e.size |= int64(c&0x7f) << shift
	}
	switch e.kind {
	case plumbing.OFSDeltaObject:
		c = next()
		back := int64(c & 0x7f)
		for c&0x80 != 0 {
			if c = next(); back > 1<<50 {
				return e, vfs.ErrCorrupt
			}
			back = (back+1)<<7 | int64(c&0x7f)
		}
		if e.base = at - back; back <= 0 || e.base < packHeader {
			return e, vfs.ErrCorrupt
		}
	case plumbing.REFDeltaObject:
		if len(b) < len(plumbing.ZeroHash) {
			return e, vfs.ErrCorrupt
		}
		if e.base, err = p.index.FindOffset(plumbing.Hash(b[:len(plumbing.ZeroHash)])); err != nil {
			return e, vfs.ErrCorrupt
		}
		b = b[len(plumbing.ZeroHash):]
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		return e, vfs.ErrCorrupt
	}
	e.data = at + int64(n-len(b))
	if e.size > maxFile {
		return e, vfs.ErrTooBig
	}
	return e, nil
}

// object finds what is at an offset, along the deltas that it is made of.
func (p *pack) object(at int64) (*stored, error) {
	var chain []packedEntry
	for {
		e, err := p.entry(at)
		if err != nil {
			return nil, err
		}
		if err := p.g.Step(p.g.ctx, 1); err != nil {
			return nil, err
		}
		chain = append(chain, e)
		if !e.kind.IsDelta() {
			break
		}
		if len(chain) > maxChain {
			return nil, fmt.Errorf("more than %d deltas: %w", maxChain, vfs.ErrCorrupt)
		}
		at = e.base
	}
	o := &stored{kind: chain[len(chain)-1].kind, size: chain[0].size}
	if len(chain) == 1 {
		o.open = func() (io.ReadCloser, error) { return p.inflate(chain[0]) }
		return o, nil
	}
	size, err := p.target(chain[0])
	o.size = size
	o.open = func() (io.ReadCloser, error) {
		data, err := p.build(chain)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	return o, err
}

// inflate opens what an entry has.
func (p *pack) inflate(e packedEntry) (io.ReadCloser, error) {
	z, err := zlib.NewReader(bufio.NewReader(io.NewSectionReader(p.file, e.data, 1<<62)))
	if err != nil {
		return nil, vfs.ErrCorrupt
	}
	return limited(z, e.size), nil
}

// bytes reads what an entry has.
func (p *pack) bytes(e packedEntry) ([]byte, error) {
	if err := p.g.afford(e.size); err != nil {
		return nil, err
	}
	r, err := p.inflate(e)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it was only read
	data, err := io.ReadAll(p.g.Count(p.g.ctx, r))
	if err == nil && int64(len(data)) != e.size {
		err = vfs.ErrCorrupt
	}
	return data, err
}

// target is the size of what a delta makes, which is refused when it is too large.
func (p *pack) target(e packedEntry) (int64, error) {
	r, err := p.inflate(e)
	if err != nil {
		return 0, err
	}
	defer r.Close() // it was only read
	start := &deltaStart{}
	if _, err := io.Copy(start, io.LimitReader(r, int64(len(start.data)))); err != nil {
		return 0, vfs.ErrCorrupt
	}
	size, ok := start.target()
	if !ok {
		return 0, vfs.ErrCorrupt
	}
	if size > maxFile {
		return 0, vfs.ErrTooBig
	}
	return int64(size), nil
}

// build makes an object of the deltas of a chain, the last of which is whole.
func (p *pack) build(chain []packedEntry) ([]byte, error) {
	i := len(chain) - 1
	var data []byte
	for j, e := range chain {
		if kept, ok := p.bases.Get(e.at); ok {
			data, i = kept, j
			break
		}
	}
	if data == nil {
		var err error
		if data, err = p.bytes(chain[i]); err != nil {
			return nil, err
		}
		p.keep(chain[i].at, data)
	}
	for i--; i >= 0; i-- {
		delta, err := p.bytes(chain[i])
		if err != nil {
			return nil, err
		}
		start := &deltaStart{}
		_, _ = start.Write(delta) // it never fails
		size, ok := start.target()
		if !ok || size > maxFile {
			return nil, vfs.ErrCorrupt
		}
		if err := p.g.afford(int64(size)); err != nil {
			return nil, err
		}
		if data, err = packfile.PatchDelta(data, delta); err != nil {
			return nil, err
		}
		p.keep(chain[i].at, data)
	}
	return data, nil
}

func (p *pack) keep(at int64, data []byte) {
	if len(data) > 0 && len(data) <= keptBase {
		p.bases.Put(at, data)
	}
}

// deltaStart keeps the beginning of a delta, where the sizes of its base and of its result are.
type deltaStart struct {
	data [20]byte
	n    int
}

func (d *deltaStart) Write(p []byte) (int, error) {
	d.n += copy(d.data[d.n:], p)
	return len(p), nil
}

// target is the size of what a delta makes.
func (d *deltaStart) target() (size uint64, ok bool) {
	_, n := binary.Uvarint(d.data[:d.n])
	if n <= 0 {
		return 0, false
	}
	size, n = binary.Uvarint(d.data[n:d.n])
	return size, n > 0
}
