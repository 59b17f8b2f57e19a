package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// Objects are read here rather than by go-git, which takes the files of a repository for well made: a script can write
// there what it likes, such as a delta whose base is made of itself.

const (
	// maxFile bounds an object, and a file that git is to hold in memory.
	maxFile = 1 << 30
	// maxMeta bounds a commit, a tree or a tag, which are taken apart in memory.
	maxMeta = 64 << 20
	// smallObject is the largest object that is kept once it was read.
	smallObject = 64 << 10
	// maxHead is the longest head of a loose object: its type, its size and a NUL.
	maxHead = 32
)

// stored is an object of the repository.
type stored struct {
	hash plumbing.Hash
	kind plumbing.ObjectType
	size int64
	open func() (io.ReadCloser, error)
}

var _ plumbing.EncodedObject = (*stored)(nil)

func (o *stored) Hash() plumbing.Hash             { return o.hash }
func (o *stored) Type() plumbing.ObjectType       { return o.kind }
func (o *stored) SetType(plumbing.ObjectType)     {}
func (o *stored) Size() int64                     { return o.size }
func (o *stored) SetSize(int64)                   {}
func (o *stored) Reader() (io.ReadCloser, error)  { return o.open() }
func (o *stored) Writer() (io.WriteCloser, error) { return nil, vfs.ErrReadOnly }

// object gets an object of a type, or of any. Only a small one is read yet.
func (g *call) object(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if err := g.Step(g.ctx, 10); err != nil {
		return nil, err
	}
	o, ok := g.recent.Get(h)
	if !ok {
		var err error
		if o, err = g.find(h); err != nil {
			return nil, err
		}
	}
	if t != plumbing.AnyObject && o.Type() != t {
		return nil, plumbing.ErrObjectNotFound
	}
	return o, nil
}

// find looks for an object that was not read lately.
func (g *call) find(h plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := g.loose(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		o, err = g.packed(h)
	}
	if err != nil {
		return nil, err
	}
	if o.size > maxFile || o.kind != plumbing.BlobObject && o.size > maxMeta {
		return nil, fmt.Errorf("object %s of %d bytes: %w", h, o.size, vfs.ErrTooBig)
	}
	if o.size > smallObject {
		return o, nil
	}
	r, err := o.open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	_ = r.Close() // it was only read
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != o.size {
		return nil, fmt.Errorf("object %s: %w", h, vfs.ErrCorrupt)
	}
	o.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	g.recent.Put(o)
	return o, nil
}

// has says whether the repository has an object.
func (g *call) has(h plumbing.Hash) bool {
	if _, err := g.FS.Stat(g.ctx, g.looseFile(h)); err == nil {
		return true
	}
	packs, err := g.packs()
	if err != nil {
		return false
	}
	for _, p := range packs {
		if _, err := p.index.FindOffset(h); err == nil {
			return true
		}
	}
	return false
}

func (g *call) looseFile(h plumbing.Hash) string {
	text := h.String()
	return path.Join(g.dir, "objects", text[:2], text[2:])
}

// loose finds an object that is a file of its own.
func (g *call) loose(h plumbing.Hash) (*stored, error) {
	z, err := g.inflated(h)
	if err != nil {
		return nil, err
	}
	defer z.Close() // it was only read
	var head [maxHead]byte
	n, err := io.ReadFull(z, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("object %s: %w", h, vfs.ErrCorrupt)
	}
	text, _, ok := bytes.Cut(head[:n], []byte{0})
	kind, digits, spaced := bytes.Cut(text, []byte(" "))
	t, err := plumbing.ParseObjectType(string(kind))
	size, sizeErr := strconv.ParseInt(string(digits), 10, 64)
	if !ok || !spaced || err != nil || sizeErr != nil || size < 0 {
		return nil, fmt.Errorf("object %s: %w", h, vfs.ErrCorrupt)
	}
	skip := int64(len(text) + 1)
	return &stored{h, t, size, func() (io.ReadCloser, error) {
		z, err := g.inflated(h)
		if err != nil {
			return nil, err
		}
		if _, err := io.CopyN(io.Discard, z, skip); err != nil {
			return nil, errors.Join(err, z.Close())
		}
		return limited(z, size), nil
	}}, nil
}

// inflated opens the file of a loose object.
func (g *call) inflated(h plumbing.Hash) (io.ReadCloser, error) {
	f, err := g.FS.OpenFile(g.ctx, g.looseFile(h), treepath.Read, 0)
	if notThere(err) {
		return nil, plumbing.ErrObjectNotFound
	}
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("object %s: %w", h, vfs.ErrCorrupt), f.Close())
	}
	return readCloser{z, f}, nil
}

// readCloser reads from one and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// limited is no more of a stream than an object has, whatever follows.
func limited(r io.ReadCloser, size int64) io.ReadCloser {
	return readCloser{io.LimitReader(r, size), r}
}
