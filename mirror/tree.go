package mirror

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Tree is the workspace as its mirror has it. It is the live tree of the local store, but for what has to do with the
// authority: what is durable, and bytes that are not here yet.
type Tree struct {
	*casstore.Workspace
	m     *Mirror
	ahead *readers
}

var _ vfs.Tree = (*Tree)(nil)

func newTree(m *Mirror) *Tree { return &Tree{Workspace: m.ws, m: m, ahead: newReaderSet()} }

// mayWrite returns an error when the tree is not to be changed, and waits while too much is not pushed or a merge needs quiet.
func (t *Tree) mayWrite(ctx context.Context) error {
	m := t.m
	if m.config.ReadOnly {
		return vfs.ErrReadOnly
	}
	if err := m.isWriter(); err != nil {
		return err
	}
	for !m.mayGoOn() && m.config.Peer.Stats().Connected {
		look, cancel := context.WithTimeout(ctx, linkLook) // nobody says that the link is lost
		err := m.await(look, func() (bool, error) { return m.mayGoOnLocked(), nil })
		cancel()
		if ctx.Err() != nil || err != nil && !errors.Is(err, vfs.ErrInterrupted) {
			return err
		}
	}
	return nil
}

func (m *Mirror) mayGoOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mayGoOnLocked()
}

// mayGoOnLocked reports whether the tree may be changed now: no merge needs quiet, and not too much is not pushed, or it is
// not to be pushed at all.
func (m *Mirror) mayGoOnLocked() bool {
	return !m.quiet && (m.written.Load()-m.sent < dirtyMost || m.refuse != nil)
}

// ReadAt implements vfs.Tree. It fetches what is not here, and what a sequential reader will read next.
func (t *Tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	t.m.prefetch.note(ino, off+uint64(len(p)))
	if err := t.bring(ctx, ino, off, uint64(len(p))); err != nil {
		return 0, err
	}
	return t.Workspace.ReadAt(ctx, ino, p, off)
}

// bring fetches the chunks of a range, and those behind it that are likely to be read.
func (t *Tree) bring(ctx context.Context, ino vfs.Ino, off, n uint64) error {
	more := t.ahead.after(ino, off, n)
	ids, err := t.m.replica.Absent(ctx, ino, off, n)
	if err != nil {
		return nil // the tree says what is wrong
	}
	if len(ids) > 0 {
		if err := t.m.fetcher.fetch(ctx, ids); err != nil {
			return err
		}
	}
	if more == 0 {
		return nil
	}
	next, err := t.m.replica.Absent(ctx, ino, off+n, more)
	if err == nil && len(next) > 0 {
		t.m.fetcher.ahead(next[:min(len(next), vfs.MaxChunkIDs)])
	}
	return nil
}

// edges fetches what a flush reads when a range is changed: what is left of the chunks at its ends, and short neighbours of
// these, which are then cut anew. The flush must not wait for a peer: all commits of the store would wait with it.
func (t *Tree) edges(ctx context.Context, ino vfs.Ino, off, n uint64) error {
	ids, err := t.m.replica.AbsentAround(ctx, ino, off, n)
	if err != nil || len(ids) == 0 {
		return nil // the tree says what is wrong
	}
	return t.m.fetcher.fetch(ctx, ids)
}

// WriteAt implements vfs.Tree.
func (t *Tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	err := t.mayWrite(ctx)
	if err == nil {
		err = t.edges(ctx, ino, off, uint64(len(p)))
	}
	if err == nil {
		err = t.Workspace.WriteAt(ctx, ino, p, off, killPriv)
	}
	if err == nil {
		t.m.written.Add(int64(len(p)))
	}
	return err
}

// SetAttr implements vfs.Tree.
func (t *Tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	err := t.mayWrite(ctx)
	if err == nil && set.Mask&vfs.SetSize != 0 && set.Size > 0 {
		err = t.edges(ctx, ino, set.Size, 0)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.SetAttr(ctx, ino, set)
}

// Allocate implements vfs.Tree.
func (t *Tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	err := t.mayWrite(ctx)
	if err == nil {
		err = t.edges(ctx, ino, off, n)
	}
	if err != nil {
		return err
	}
	return t.Workspace.Allocate(ctx, ino, mode, off, n)
}

// CopyRange implements vfs.Tree. What is shared and not copied need not be here, but for the ends.
func (t *Tree) CopyRange(ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64) (uint64, error) {
	err := t.mayWrite(ctx)
	if err == nil {
		err = t.edges(ctx, src, off, n)
	}
	if err == nil {
		err = t.edges(ctx, dst, dstOff, n)
	}
	if err != nil {
		return 0, err
	}
	return t.Workspace.CopyRange(ctx, src, off, dst, dstOff, n)
}

// Fsync implements vfs.Tree. It waits for the authority, unless that was relaxed.
func (t *Tree) Fsync(ctx context.Context, ino vfs.Ino) error {
	if t.m.config.LocalFsync {
		return t.Workspace.Fsync(ctx, ino)
	}
	if _, err := t.Stat(ctx, ino); err != nil {
		return err
	}
	rev, err := t.m.replica.Commit(ctx, ino)
	if err != nil {
		return err
	}
	return t.m.awaitPushed(ctx, rev)
}

// Sync implements vfs.Tree. It waits as Fsync does.
func (t *Tree) Sync(ctx context.Context) error {
	_, err := t.Commit(ctx)
	return err
}

// Commit implements vfs.Tree. The revision is the mirror's own.
func (t *Tree) Commit(ctx context.Context) (vfs.Rev, error) {
	if t.m.config.LocalFsync {
		return t.Workspace.Commit(ctx)
	}
	rev, err := t.m.replica.Commit(ctx, 0)
	if err != nil {
		return 0, err
	}
	return rev, t.m.awaitPushed(ctx, rev)
}

// awaitPushed waits until the authority has everything up to a local revision, or says that it will not take it.
func (m *Mirror) awaitPushed(ctx context.Context, rev vfs.Rev) error {
	return m.await(ctx, func() (bool, error) { return m.pushed >= rev, m.refuse })
}
