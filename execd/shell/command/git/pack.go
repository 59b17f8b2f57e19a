package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// A pack is made and taken apart here, in the goroutine of the command, rather than by go-git's writers, which do it in
// goroutines of their own: what is wrong with a pack, and the end of the command, must end no more than the command.

const (
	// packHeader is "PACK", the version and the number of objects.
	packHeader = 12
	// minPacked is the least that an object takes in a pack: its type and size, and an empty zlib stream.
	minPacked = 1 + 8
	// packBuffer is how much of a pack is written at once.
	packBuffer = 256 << 10
)

// reachable lists the objects that lead from some and not from others, whose commits the other side has. Objects that are
// missing among the others are passed over.
func (g *call) reachable(wants, not []plumbing.Hash) ([]plumbing.Hash, error) {
	r := &reach{call: g, seen: map[plumbing.Hash]bool{}, theirs: map[plumbing.Hash]bool{}, ends: g.shallowNow()}
	if err := r.hide(not); err != nil {
		return nil, err
	}
	for _, h := range wants {
		if err := r.add(h); err != nil {
			return nil, err
		}
	}
	return r.list, nil
}

type reach struct {
	*call
	seen   map[plumbing.Hash]bool // listed, or not to be
	theirs map[plumbing.Hash]bool // commits of the other side
	ends   map[plumbing.Hash]bool // commits whose parents are not here
	list   []plumbing.Hash
}

// hide notes the commits that the other side has.
func (r *reach) hide(all []plumbing.Hash) error {
	for len(all) > 0 {
		h := all[len(all)-1]
		all = all[:len(all)-1]
		if r.theirs[h] {
			continue
		}
		o, err := r.object(plumbing.AnyObject, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue // it is only there
		}
		if err != nil {
			return err
		}
		r.theirs[h] = true
		switch o.Type() {
		case plumbing.TagObject:
			t, err := object.DecodeTag(r.store, o)
			if err != nil {
				return err
			}
			r.seen[h] = true
			all = append(all, t.Target)
		case plumbing.CommitObject:
			c, err := object.DecodeCommit(r.store, o)
			if err != nil {
				return err
			}
			all = append(all, c.ParentHashes...)
		}
	}
	return nil
}

// add lists an object of any kind with what it leads to.
func (r *reach) add(h plumbing.Hash) error {
	o, err := r.object(plumbing.AnyObject, h)
	if err != nil {
		return fmt.Errorf("object %s: %w", h, err)
	}
	switch o.Type() {
	case plumbing.CommitObject:
		return r.commits(h)
	case plumbing.TreeObject:
		return r.tree(h)
	case plumbing.TagObject:
		t, err := object.DecodeTag(r.store, o)
		if err != nil {
			return err
		}
		r.put(h)
		return r.add(t.Target)
	}
	r.put(h)
	return nil
}

func (r *reach) put(h plumbing.Hash) {
	if !r.seen[h] {
		r.seen[h] = true
		r.list = append(r.list, h)
	}
}

// commits lists a commit and those before it that the other side has not, and then their trees without what is in the
// trees of those that it has.
func (r *reach) commits(from plumbing.Hash) error {
	var fresh []*object.Commit
	queue := []plumbing.Hash{from}
	var edge []plumbing.Hash
	for len(queue) > 0 {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if r.theirs[h] {
			edge = append(edge, h)
			continue
		}
		if r.seen[h] {
			continue
		}
		o, err := r.object(plumbing.CommitObject, h)
		if err != nil {
			return fmt.Errorf("commit %s: %w", h, err)
		}
		c, err := object.DecodeCommit(r.store, o)
		if err != nil {
			return err
		}
		r.put(h)
		fresh = append(fresh, c)
		if r.ends[h] {
			continue
		}
		queue = append(queue, c.ParentHashes...)
	}
	for _, h := range edge {
		if err := r.hideTree(h); err != nil {
			return err
		}
	}
	for _, c := range fresh {
		if err := r.tree(c.TreeHash); err != nil {
			return err
		}
	}
	return nil
}

// hideTree notes the tree of a commit that the other side has.
func (r *reach) hideTree(commit plumbing.Hash) error {
	o, err := r.object(plumbing.CommitObject, commit)
	if err != nil {
		return err
	}
	c, err := object.DecodeCommit(r.store, o)
	if err != nil || r.seen[c.TreeHash] {
		return err
	}
	r.seen[c.TreeHash] = true
	return r.eachEntry(c.TreeHash, "", func(_ string, e object.TreeEntry) (bool, error) {
		into := !r.seen[e.Hash]
		r.seen[e.Hash] = true
		return into, nil
	})
}

func (r *reach) tree(h plumbing.Hash) error {
	if r.seen[h] {
		return nil
	}
	r.put(h)
	return r.eachEntry(h, "", func(_ string, e object.TreeEntry) (bool, error) {
		if e.Mode == filemode.Submodule || r.seen[e.Hash] {
			return false, nil
		}
		r.put(e.Hash)
		return true, nil
	})
}

// writePack writes objects as a pack: each whole, since finding what of one is in another takes all of them in memory.
func (g *call) writePack(w io.Writer, hashes []plumbing.Hash) error {
	sum := sha1.New()
	out := io.MultiWriter(w, sum)
	var head [packHeader]byte
	copy(head[:], "PACK")
	binary.BigEndian.PutUint32(head[4:], 2)
	binary.BigEndian.PutUint32(head[8:], uint32(len(hashes)))
	if _, err := out.Write(head[:]); err != nil {
		return err
	}
	z := zlib.NewWriter(out)
	for _, h := range hashes {
		o, err := g.object(plumbing.AnyObject, h)
		if err != nil {
			return fmt.Errorf("object %s: %w", h, err)
		}
		if _, err := out.Write(packedHead(o.Type(), uint64(o.Size()))); err != nil {
			return err
		}
		r, err := o.Reader()
		if err != nil {
			return err
		}
		z.Reset(out)
		n, err := io.Copy(z, g.Count(g.ctx, r))
		_ = r.Close() // it was only read
		if err == nil && n != o.Size() {
			err = fmt.Errorf("object %s: %w", h, vfs.ErrCorrupt)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return err
		}
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// packedHead is what precedes an object in a pack: three bits of type and the size, four bits of it first and then seven
// by seven, the lowest first.
func packedHead(t plumbing.ObjectType, size uint64) []byte {
	b := byte(t)<<4 | byte(size&15)
	size >>= 4
	var head []byte
	for size > 0 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
		size >>= 7
	}
	return append(head, b)
}

// storePack puts the objects of a pack into the repository.
func (g *call) storePack(pack io.Reader) error {
	return g.storePackBy(func(w io.Writer) error {
		_, err := io.Copy(w, g.Count(g.ctx, pack))
		return err
	})
}

// storePackBy stores what write writes: the pack as it is, with an index. Nothing of it is seen before all of it was found to
// be right.
func (g *call) storePackBy(write func(w io.Writer) error) error {
	dir := path.Join(g.dir, "objects/pack")
	if err := g.FS.MkdirAll(g.ctx, dir, 0o777); err != nil {
		return err
	}
	name := path.Join(dir, fmt.Sprintf("tmp_pack_%016x", g.Rand.Uint64()))
	f, err := g.FS.OpenFile(g.ctx, name, treepath.Read|treepath.Write|treepath.Create|treepath.Exclusive, 0o444)
	if err != nil {
		return err
	}
	defer func() {
		_ = f.Close()
		_ = g.FS.Remove(context.WithoutCancel(g.ctx), name) // unless it has its own name now
	}()
	buffered := bufio.NewWriterSize(f, packBuffer)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if size == 0 {
		return nil
	}
	if err := g.checkPack(f, size); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	writer := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(&packReader{g, f}), writer)
	if err != nil {
		return err
	}
	sum, err := parser.Parse()
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	idx, err := writer.Index()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := idxfile.NewEncoder(&b).Encode(idx); err != nil {
		return err
	}
	base := path.Join(dir, "pack-"+sum.String())
	if err := g.FS.Rename(g.ctx, name, base+".pack"); err != nil {
		return err
	}
	if _, err := g.FS.ReplaceFile(g.ctx, base+".idx", &b, 0o444); err != nil {
		return err
	}
	g.hashes, g.shallow = nil, nil
	g.closePacks()
	return nil
}

// packReader reads a pack, at the call's cost.
type packReader struct {
	g *call
	f *treepath.File
}

func (r *packReader) Read(p []byte) (int, error) {
	if err := r.g.Step(r.g.ctx, 1+len(p)>>10); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

func (r *packReader) Seek(offset int64, whence int) (int64, error) { return r.f.Seek(offset, whence) }

// checkPack refuses a pack whose objects are larger than we take, or more than it can hold, before memory is taken for
// them.
func (g *call) checkPack(f *treepath.File, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var head [packHeader]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:4]) != "PACK" {
		return fmt.Errorf("pack: %w", packfile.ErrMalformedPackFile)
	}
	count := int64(binary.BigEndian.Uint32(head[8:]))
	if count > size/minPacked {
		return fmt.Errorf("pack of %d bytes with %d objects: %w", size, count, packfile.ErrMalformedPackFile)
	}
	if err := g.Take(count * 300); err != nil { // what is kept of each while they are put in order
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s := packfile.NewScanner(&packReader{g, f})
	if _, _, err := s.Header(); err != nil {
		return err
	}
	most := int64(0)
	for range count {
		o, err := s.NextObjectHeader()
		if err != nil {
			return err
		}
		if o.Length > maxFile {
			return fmt.Errorf("object of %d bytes in a pack: %w", o.Length, vfs.ErrTooBig)
		}
		most = max(most, o.Length)
		start := &deltaStart{}
		if _, _, err := s.NextObject(start); err != nil {
			return err
		}
		if o.Type.IsDelta() {
			target, ok := start.target()
			if !ok || target > maxFile {
				return fmt.Errorf("object of %d bytes in a pack: %w", target, vfs.ErrTooBig)
			}
			most = max(most, int64(target))
		}
	}
	return g.Take(3 * most) // a delta, its base and what it makes
}
