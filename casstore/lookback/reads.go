package lookback

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Lookup implements vfs.Tree.
func (t *Tree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	if isBelow(dir) {
		return t.dir.lookup(ctx, dir, name)
	}
	a, err := t.Tree.Lookup(ctx, dir, name)
	if dir == vfs.RootIno && name == Name && errors.Is(err, vfs.ErrNotExist) {
		return t.dir.stat(ctx, selfIno)
	}
	return a, err
}

// Stat implements vfs.Tree.
func (t *Tree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	if isBelow(ino) {
		return t.dir.stat(ctx, ino)
	}
	return t.Tree.Stat(ctx, ino)
}

// ReadDir implements vfs.Tree.
func (t *Tree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	if isBelow(dir) {
		return t.dir.list(ctx, dir, after, yield)
	}
	return t.Tree.ReadDir(ctx, dir, after, yield)
}

// Readlink implements vfs.Tree.
func (t *Tree) Readlink(ctx context.Context, ino vfs.Ino) (target string, err error) {
	if !isBelow(ino) {
		return t.Tree.Readlink(ctx, ino)
	}
	err = t.dir.in(ctx, ino, vfs.ErrInvalid, func(s vfs.Tree, ino vfs.Ino) error {
		target, err = s.Readlink(ctx, ino)
		return err
	})
	return target, err
}

// ReadAt implements vfs.Tree.
func (t *Tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (n int, err error) {
	if !isBelow(ino) {
		return t.Tree.ReadAt(ctx, ino, p, off)
	}
	if text, ok := textOf(ino); ok {
		return copy(p, text[min(off, uint64(len(text))):]), nil
	}
	err = t.dir.in(ctx, ino, vfs.ErrIsDir, func(s vfs.Tree, ino vfs.Ino) error {
		n, err = s.ReadAt(ctx, ino, p, off)
		return err
	})
	return n, err
}

// Seek implements vfs.Tree.
func (t *Tree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (at uint64, err error) {
	if !isBelow(ino) {
		return t.Tree.Seek(ctx, ino, off, whence)
	}
	if text, ok := textOf(ino); ok {
		return seekText(uint64(len(text)), off, whence)
	}
	err = t.dir.in(ctx, ino, vfs.ErrIsDir, func(s vfs.Tree, ino vfs.Ino) error {
		at, err = s.Seek(ctx, ino, off, whence)
		return err
	})
	return at, err
}

// seekText searches in a file of bytes without holes.
func seekText(size, off uint64, whence vfs.Whence) (uint64, error) {
	switch {
	case whence > vfs.SeekHole:
		return 0, vfs.ErrInvalid
	case off >= size:
		return 0, vfs.ErrNoData
	case whence == vfs.SeekHole:
		return size, nil
	}
	return off, nil
}

// GetXattr implements vfs.Tree.
func (t *Tree) GetXattr(ctx context.Context, ino vfs.Ino, name string) (value []byte, err error) {
	if !isBelow(ino) {
		return t.Tree.GetXattr(ctx, ino, name)
	}
	err = t.dir.in(ctx, ino, vfs.ErrNoXattr, func(s vfs.Tree, ino vfs.Ino) error {
		value, err = s.GetXattr(ctx, ino, name)
		return err
	})
	return value, err
}

// ListXattr implements vfs.Tree.
func (t *Tree) ListXattr(ctx context.Context, ino vfs.Ino) (names []string, err error) {
	if !isBelow(ino) {
		return t.Tree.ListXattr(ctx, ino)
	}
	err = t.dir.in(ctx, ino, nil, func(s vfs.Tree, ino vfs.Ino) error {
		names, err = s.ListXattr(ctx, ino)
		return err
	})
	return names, err
}

// Fsync implements vfs.Tree.
func (t *Tree) Fsync(ctx context.Context, ino vfs.Ino) error {
	if !isBelow(ino) {
		return t.Tree.Fsync(ctx, ino)
	}
	_, err := t.dir.stat(ctx, ino)
	return err
}

// Hold implements vfs.Tree.
func (t *Tree) Hold(ino vfs.Ino) {
	if !isBelow(ino) {
		t.Tree.Hold(ino)
		return
	}
	p, _ := split(ino)
	t.dir.shelf.hold(p)
}

// Release implements vfs.Tree.
func (t *Tree) Release(ino vfs.Ino, n uint64) {
	if !isBelow(ino) {
		t.Tree.Release(ino, n)
		return
	}
	p, _ := split(ino)
	t.dir.shelf.release(p, n)
}
