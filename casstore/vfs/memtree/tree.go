package memtree

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Tree is a workspace tree in memory. Use NewTree.
type Tree struct {
	clock    func() vfs.Time
	capacity uint64 // bytes of pages, at most

	mu       sync.Mutex // guards all below, and every node
	nodes    map[vfs.Ino]*node
	lastIno  vfs.Ino
	pages    uint64 // in all files
	rev      vfs.Rev
	dirty    bool // changed since rev
	readOnly bool
	watchers []*watcher
}

var _ vfs.Tree = (*Tree)(nil)

// Option changes what NewTree makes.
type Option func(*Tree)

// WithClock makes the tree take its times from clock, which is called with the tree's mutex held. Without it they come
// from the system's clock, and no two changes have the same time.
func WithClock(clock func() vfs.Time) Option { return func(t *Tree) { t.clock = clock } }

// WithCapacity limits the bytes that all files take together, in pages of 4 KiB; a write past it gives ErrNoSpace.
func WithCapacity(bytes uint64) Option { return func(t *Tree) { t.capacity = bytes } }

// NewTree returns a tree that has only a root: mode 0755, user and group 0.
func NewTree(options ...Option) *Tree {
	t := &Tree{clock: increasingClock(), capacity: defaultCapacity, nodes: make(map[vfs.Ino]*node), lastIno: vfs.RootIno}
	for _, o := range options {
		o(t)
	}
	now := t.clock()
	t.nodes[vfs.RootIno] = &node{
		attr: vfs.Attr{
			Ino: vfs.RootIno, Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno,
			Atime: now, Mtime: now, Ctime: now,
		},
		entries: newDirectory(),
	}
	return t
}

// increasingClock returns the system's clock, made strictly increasing, so that "changed later" always shows.
func increasingClock() func() vfs.Time {
	var last vfs.Time
	return func() vfs.Time {
		last = max(last+1, vfs.TimeOf(time.Now()))
		return last
	}
}

// SetReadOnly makes every later change fail with ErrReadOnly, or lets changes through again.
func (t *Tree) SetReadOnly(readOnly bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readOnly = readOnly
}

// edit is a change under way: one moment, one origin. It exists while Tree.mu is held.
type edit struct {
	*Tree
	now    vfs.Time
	origin any
}

// change runs f as one atomic change. f checks everything before it alters anything.
func (t *Tree) change(ctx context.Context, f func(e *edit) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return vfs.ErrInterrupted
	}
	if t.readOnly {
		return vfs.ErrReadOnly
	}
	if err := f(&edit{Tree: t, now: t.clock(), origin: vfs.OriginOf(ctx)}); err != nil {
		return err
	}
	t.dirty = true
	return nil
}

// view runs f with the tree standing still.
func (t *Tree) view(ctx context.Context, f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return vfs.ErrInterrupted
	}
	return f()
}

func (t *Tree) nodeLocked(ino vfs.Ino) (*node, error) {
	n, ok := t.nodes[ino]
	if !ok {
		return nil, vfs.ErrStale
	}
	return n, nil
}

// dirLocked returns a directory that names may be looked up in.
func (t *Tree) dirLocked(ino vfs.Ino) (*node, error) {
	n, err := t.nodeLocked(ino)
	switch {
	case err != nil:
		return nil, err
	case n.attr.Type != vfs.TypeDir:
		return nil, vfs.ErrNotDir
	case n.attr.Nlink == 0:
		return nil, vfs.ErrNotExist
	}
	return n, nil
}

// entryLocked returns a directory and the node that name leads to in it; the node is nil when the name is free.
func (t *Tree) entryLocked(dir vfs.Ino, name string) (d, n *node, err error) {
	d, err = t.dirLocked(dir)
	if err != nil {
		return nil, nil, err
	}
	if e, ok := d.entries.find(name); ok {
		n = t.nodes[e.Ino]
	}
	return d, n, nil
}

// Lookup implements [vfs.Tree].
func (t *Tree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	var a vfs.Attr
	err := vfs.CheckName(name)
	if err == nil {
		err = t.view(ctx, func() error {
			_, n, err := t.entryLocked(dir, name)
			if err != nil {
				return err
			}
			if n == nil {
				return vfs.ErrNotExist
			}
			a = n.attr
			return nil
		})
	}
	return a, nameError("lookup", dir, name, err)
}

// Fsync implements [vfs.Tree]. Nothing is durable here.
func (t *Tree) Fsync(ctx context.Context, ino vfs.Ino) error {
	err := t.view(ctx, func() error {
		_, err := t.nodeLocked(ino)
		return err
	})
	return inoError("fsync", ino, err)
}

// Sync implements [vfs.Tree]. Nothing is durable here.
func (t *Tree) Sync(ctx context.Context) error {
	_, err := t.Commit(ctx)
	return err
}

// Commit implements [vfs.Tree]: a new revision when anything changed since the last one.
func (t *Tree) Commit(ctx context.Context) (vfs.Rev, error) {
	var rev vfs.Rev
	err := t.view(ctx, func() error {
		if t.dirty {
			t.rev, t.dirty = t.rev+1, false
		}
		rev = t.rev
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return rev, nil
}

// StatFS implements [vfs.Tree].
func (t *Tree) StatFS(ctx context.Context) (vfs.StatFS, error) {
	var s vfs.StatFS
	err := t.view(ctx, func() error {
		blocks := t.capacity / pageSize
		s = vfs.StatFS{
			BlockSize: pageSize, Blocks: blocks, Free: blocks - t.pages, Available: blocks - t.pages,
			Files: maxFiles, FilesFree: maxFiles - uint64(len(t.nodes)),
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("statfs: %w", err)
	}
	return s, nil
}

func nameError(op string, dir vfs.Ino, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %d/%q: %w", op, dir, name, err)
}

func inoError(op string, ino vfs.Ino, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %d: %w", op, ino, err)
}
