package git

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// maxDepth bounds how deep trees may be.
const maxDepth = 1024

// commitAt gets a commit.
func (g *call) commitAt(h plumbing.Hash) (*object.Commit, error) {
	o, err := g.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	c, err := object.DecodeCommit(g.store, o)
	if err != nil {
		return nil, err
	}
	if g.shallow == nil {
		g.shallow = map[plumbing.Hash]bool{}
		ends, err := g.store.Shallow()
		if err != nil {
			return nil, err
		}
		for _, end := range ends {
			g.shallow[end] = true
		}
	}
	if g.shallow[h] {
		c.ParentHashes = nil // they were left where the repository is from
	}
	return c, nil
}

func (g *call) tagAt(h plumbing.Hash) (*object.Tag, error) {
	o, err := g.object(plumbing.TagObject, h)
	if err != nil {
		return nil, err
	}
	return object.DecodeTag(g.store, o)
}

// treeAt gets a tree. Its names are as they are: see validPath.
func (g *call) treeAt(h plumbing.Hash) (*object.Tree, error) {
	o, err := g.object(plumbing.TreeObject, h)
	if err != nil {
		return nil, fmt.Errorf("unable to read tree %s: %w", h, err)
	}
	return object.DecodeTree(g.store, o)
}

// eachEntry calls f with what is in a tree and below it, directories before what they hold. f may leave a directory out.
func (g *call) eachEntry(h plumbing.Hash, dir string, f func(name string, e object.TreeEntry) (into bool, err error)) error {
	if strings.Count(dir, "/") > maxDepth {
		return fmt.Errorf("tree %s: %w", h, vfs.ErrTooBig)
	}
	t, err := g.treeAt(h)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		if err := g.Step(g.ctx, 1); err != nil {
			return err
		}
		name := slash(dir, e.Name)
		into, err := f(name, e)
		if err != nil {
			return err
		}
		if into && e.Mode == filemode.Dir {
			if err := g.eachEntry(e.Hash, name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// openBlob opens a blob for reading.
func (g *call) openBlob(h plumbing.Hash) (io.ReadCloser, int64, error) {
	o, err := g.object(plumbing.BlobObject, h)
	if err != nil {
		return nil, 0, fmt.Errorf("unable to read blob %s: %w", h, err)
	}
	r, err := o.Reader()
	return r, o.Size(), err
}

// afford says whether n bytes may be taken for a while: command.ErrMemory when they may not. What is read of a file, or of an
// object, is gone before the next one is.
func (g *call) afford(n int64) error {
	err := g.Take(n)
	_ = g.Take(-n) // which is never too much
	return err
}

// blob reads a blob.
func (g *call) blob(h plumbing.Hash) ([]byte, error) {
	r, size, err := g.openBlob(h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := g.afford(size); err != nil {
		return nil, err
	}
	data := make([]byte, 0, size)
	b := bytes.NewBuffer(data)
	if _, err := io.Copy(b, io.LimitReader(g.Count(g.ctx, r), size+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) != size {
		return nil, fmt.Errorf("blob %s is damaged: %w", h, vfs.ErrCorrupt)
	}
	return b.Bytes(), nil
}

// putBlob stores bytes as an object.
func (g *call) putBlob(data []byte) (plumbing.Hash, error) {
	o := g.store.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return g.putObject(o)
}

// put stores an object that encodes itself.
func (g *call) put(v interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	o := g.store.NewEncodedObject()
	if err := v.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return g.putObject(o)
}

func (g *call) putObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	if g.has(o.Hash()) {
		return o.Hash(), nil
	}
	g.hashes = nil
	return g.store.SetEncodedObject(o)
}

// hashList is the objects of a repository, for finding one by the beginning of its hash.
type hashList struct {
	packed []plumbing.Hash // in order
	loose  [256][]plumbing.Hash
	listed [256]bool
}

// short is a hash as people are told it: the shortest beginning that is that object's alone, of at least as many digits as
// git takes in a repository of this size.
func (g *call) short(h plumbing.Hash) string {
	text := h.String()
	list, err := g.hashesLike(h[0])
	if err != nil {
		return text
	}
	n := 7
	for count := len(g.hashes.packed) >> 14; count > 0; count >>= 2 {
		n++
	}
	for _, other := range list {
		for other != h && n < len(text) && strings.HasPrefix(other.String(), text[:n]) {
			n++
		}
	}
	return text[:n]
}

// hashesLike lists the objects whose hash begins with a byte.
func (g *call) hashesLike(first byte) ([]plumbing.Hash, error) {
	if g.hashes == nil {
		packed, err := g.packedHashes()
		if err != nil {
			return nil, err
		}
		g.hashes = &hashList{packed: packed}
	}
	l := g.hashes
	if !l.listed[first] {
		l.listed[first] = true
		dir := fmt.Sprintf("%02x", first)
		entries, err := g.FS.ReadDir(g.ctx, path.Join(g.dir, "objects", dir))
		if err != nil && !notThere(err) {
			return nil, err
		}
		for _, e := range entries {
			if plumbing.IsHash(dir + e.Name) {
				l.loose[first] = append(l.loose[first], plumbing.NewHash(dir+e.Name))
			}
		}
	}
	from := sort.Search(len(l.packed), func(i int) bool { return l.packed[i][0] >= first })
	to := sort.Search(len(l.packed), func(i int) bool { return l.packed[i][0] > first })
	return append(slices.Clip(l.loose[first]), l.packed[from:to]...), nil
}
