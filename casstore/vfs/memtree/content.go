package memtree

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// resize alters the bytes of n and carries the new sizes over.
func (e *edit) resize(n *node, f func(*pages)) {
	before := n.bytes.count()
	f(&n.bytes)
	e.pages = e.pages - before + n.bytes.count()
	n.attr.Size = n.bytes.size
	n.attr.Blocks = n.bytes.count() * (pageSize / 512)
}

// reserveLocked returns ErrNoSpace when the tree has no room for so many more pages.
func (t *Tree) reserveLocked(pages uint64) error {
	if pages > t.capacity/pageSize-t.pages {
		return vfs.ErrNoSpace
	}
	return nil
}

// ReadAt implements [vfs.Tree].
func (t *Tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	var got int
	err := t.view(ctx, func() error {
		n, err := t.contentLocked(ino)
		if err == nil {
			got = n.bytes.read(p, off)
		}
		return err
	})
	return got, inoError("read", ino, err)
}

// WriteAt implements [vfs.Tree]. Writing nothing changes nothing.
func (t *Tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	err := t.change(ctx, func(e *edit) error {
		n, err := t.contentLocked(ino)
		if err != nil || len(p) == 0 {
			return err
		}
		if pastMaxFileSize(off, uint64(len(p))) {
			return vfs.ErrTooBig
		}
		if err := t.reserveLocked(n.bytes.missing(off, uint64(len(p)))); err != nil {
			return err
		}
		e.resize(n, func(b *pages) { b.write(p, off) })
		if killPriv {
			n.killPriv()
		}
		e.touchData(n)
		return nil
	})
	return inoError("write", ino, err)
}

// CopyRange implements [vfs.Tree].
func (t *Tree) CopyRange(
	ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64,
) (uint64, error) {
	return vfs.CopyBytes(ctx, t, src, off, dst, dstOff, n)
}

// Allocate implements [vfs.Tree]. Space that is only allocated is compared with what is free, and not set aside.
func (t *Tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	err := t.change(ctx, func(e *edit) error {
		f, err := t.contentLocked(ino)
		if err != nil {
			return err
		}
		if err := checkAllocate(mode, off, n); err != nil {
			return err
		}
		end := off + n
		if mode&^vfs.AllocKeepSize == 0 {
			if err := t.reserveLocked((end+pageSize-1)/pageSize - off/pageSize); err != nil {
				return err
			}
		}
		e.resize(f, func(p *pages) {
			if mode&(vfs.AllocPunchHole|vfs.AllocZeroRange) != 0 {
				p.punch(off, n)
			}
			if mode&(vfs.AllocPunchHole|vfs.AllocKeepSize) == 0 {
				p.truncate(max(p.size, end))
			}
		})
		e.touchData(f)
		return nil
	})
	return inoError("allocate", ino, err)
}

func checkAllocate(mode vfs.AllocMode, off, n uint64) error {
	const both = vfs.AllocPunchHole | vfs.AllocZeroRange
	switch {
	case mode&^(vfs.AllocKeepSize|both) != 0 || mode&both == both || n == 0:
		return vfs.ErrInvalid
	case pastMaxFileSize(off, n):
		return vfs.ErrTooBig
	}
	return nil
}

func pastMaxFileSize(off, n uint64) bool { return off > vfs.MaxFileSize || n > vfs.MaxFileSize-off }

func (e *edit) touchData(n *node) {
	n.attr.Mtime, n.attr.Ctime = e.now, e.now
	e.emit(vfs.Change{Kind: vfs.ChangeData, Ino: n.attr.Ino})
}

// Seek implements [vfs.Tree].
func (t *Tree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	var at uint64
	err := t.view(ctx, func() error {
		n, err := t.contentLocked(ino)
		if err != nil {
			return err
		}
		var found bool
		switch whence {
		case vfs.SeekData:
			at, found = n.bytes.data(off)
		case vfs.SeekHole:
			at, found = n.bytes.hole(off)
		default:
			return vfs.ErrInvalid
		}
		if !found {
			return vfs.ErrNoData
		}
		return nil
	})
	return at, inoError("seek", ino, err)
}
