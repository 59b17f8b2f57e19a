package casstore

import (
	"context"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// manifestCache keeps the bytes of large files as they are decoded, which takes a while: each in the place of any other
// when there are many.
type manifestCache struct {
	mu sync.Mutex
	m  map[vfs.Ino]base
}

func (c *manifestCache) get(ino vfs.Ino) (base, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.m[ino]
	return b, ok
}

func (c *manifestCache) put(ino vfs.Ino, b base) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[vfs.Ino]base)
	}
	for other := range c.m {
		if len(c.m) < viewManifests {
			break
		}
		delete(c.m, other)
	}
	c.m[ino] = b
}

// base returns the bytes of a regular file.
func (v *View) base(ctx context.Context, ino vfs.Ino) (b base, err error) {
	if b, ok := v.manifests.get(ino); ok {
		return b, v.call(ctx, func(*reader) error { return nil })
	}
	err = v.call(ctx, func(r *reader) error {
		rec, err := v.node(r, ino)
		switch {
		case err != nil:
			return err
		case rec.Type == vfs.TypeDir:
			return vfs.ErrIsDir
		case rec.Type != vfs.TypeRegular:
			return vfs.ErrInvalid
		}
		large := rec.Body.Kind == vfs.BodyTree
		if large {
			vfs.WillBlock(ctx)
		}
		if b, err = v.store.decodeBody(rec.Body); err == nil && large {
			v.manifests.put(ino, b)
		}
		return err
	})
	return b, err
}

// ReadAt implements vfs.Tree.
func (v *View) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (n int, err error) {
	b, err := v.base(ctx, ino)
	if err == nil && off < b.size() {
		n = int(min(uint64(len(p)), b.size()-off))
		err = v.call(ctx, func(*reader) error { return v.store.readBase(ctx, b, p[:n], off) })
	}
	if err != nil {
		return 0, wrap(err, "read", ino, "")
	}
	return n, nil
}

// Seek implements vfs.Tree.
func (v *View) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	if whence > vfs.SeekHole {
		return 0, wrap(vfs.ErrInvalid, "seek", ino, "")
	}
	b, err := v.base(ctx, ino)
	size := b.size()
	if err == nil && off >= size {
		err = vfs.ErrNoData
	}
	if err != nil {
		return 0, wrap(err, "seek", ino, "")
	}
	at := b.seek(off, size, whence == vfs.SeekHole)
	if at >= size && whence == vfs.SeekData {
		return 0, wrap(vfs.ErrNoData, "seek", ino, "")
	}
	return min(at, size), nil
}

// SetAttr implements vfs.Tree.
func (v *View) SetAttr(_ context.Context, ino vfs.Ino, _ vfs.AttrSet) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "setattr", ino, "")
}

// Create implements vfs.Tree.
func (v *View) Create(_ context.Context, dir vfs.Ino, name string, _ vfs.NewNode) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "create", dir, name)
}

// Mkdir implements vfs.Tree.
func (v *View) Mkdir(_ context.Context, dir vfs.Ino, name string, _ vfs.NewNode) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "mkdir", dir, name)
}

// Mknod implements vfs.Tree.
func (v *View) Mknod(_ context.Context, dir vfs.Ino, name string, _ vfs.Type, _ vfs.NewNode) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "mknod", dir, name)
}

// Symlink implements vfs.Tree.
func (v *View) Symlink(_ context.Context, dir vfs.Ino, name, _ string, _ vfs.NewNode) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "symlink", dir, name)
}

// Link implements vfs.Tree.
func (v *View) Link(_ context.Context, _, dir vfs.Ino, name string) (vfs.Attr, error) {
	return vfs.Attr{}, wrap(vfs.ErrReadOnly, "link", dir, name)
}

// Unlink implements vfs.Tree.
func (v *View) Unlink(_ context.Context, dir vfs.Ino, name string) error {
	return wrap(vfs.ErrReadOnly, "unlink", dir, name)
}

// Rmdir implements vfs.Tree.
func (v *View) Rmdir(_ context.Context, dir vfs.Ino, name string) error {
	return wrap(vfs.ErrReadOnly, "rmdir", dir, name)
}

// Rename implements vfs.Tree.
func (v *View) Rename(_ context.Context, dir vfs.Ino, name string, _ vfs.Ino, _ string, _ vfs.RenameFlags) error {
	return wrap(vfs.ErrReadOnly, "rename", dir, name)
}

// WriteAt implements vfs.Tree.
func (v *View) WriteAt(_ context.Context, ino vfs.Ino, _ []byte, _ uint64, _ bool) error {
	return wrap(vfs.ErrReadOnly, "write", ino, "")
}

// Allocate implements vfs.Tree.
func (v *View) Allocate(_ context.Context, ino vfs.Ino, _ vfs.AllocMode, _, _ uint64) error {
	return wrap(vfs.ErrReadOnly, "allocate", ino, "")
}

// CopyRange implements vfs.Tree.
func (v *View) CopyRange(_ context.Context, _ vfs.Ino, _ uint64, dst vfs.Ino, _, _ uint64) (uint64, error) {
	return 0, wrap(vfs.ErrReadOnly, "copy", dst, "")
}

// SetXattr implements vfs.Tree.
func (v *View) SetXattr(_ context.Context, ino vfs.Ino, name string, _ []byte, _ vfs.XattrFlags) error {
	return wrap(vfs.ErrReadOnly, "setxattr", ino, name)
}

// RemoveXattr implements vfs.Tree.
func (v *View) RemoveXattr(_ context.Context, ino vfs.Ino, name string) error {
	return wrap(vfs.ErrReadOnly, "removexattr", ino, name)
}

// Fsync implements vfs.Tree.
func (v *View) Fsync(ctx context.Context, ino vfs.Ino) error {
	_, err := v.Stat(ctx, ino)
	return err
}

// Sync implements vfs.Tree.
func (v *View) Sync(ctx context.Context) error {
	return v.call(ctx, func(*reader) error { return nil })
}

// Commit implements vfs.Tree.
func (v *View) Commit(ctx context.Context) (vfs.Rev, error) { return v.held.rev, v.Sync(ctx) }

// StatFS implements vfs.Tree.
func (v *View) StatFS(ctx context.Context) (st vfs.StatFS, err error) {
	err = v.call(ctx, func(*reader) error {
		st, err = v.store.space.statFS()
		return err
	})
	return st, err
}

// Hold implements vfs.Tree: nothing goes.
func (v *View) Hold(vfs.Ino) {}

// Release implements vfs.Tree.
func (v *View) Release(vfs.Ino, uint64) {}

// Watch implements vfs.Tree: nothing changes.
func (v *View) Watch(any, func(vfs.Change)) (stop func()) { return func() {} }
