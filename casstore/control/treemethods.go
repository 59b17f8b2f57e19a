package control

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// treeCall is a method of an open workspace.
type treeCall func(ctx context.Context, i *invocation, h *handle, q *request, r *reply) error

// onTree finds the workspace of a call and keeps it open until the call has ended.
func onTree(call treeCall) func(context.Context, *invocation, *request, *reply) error {
	return func(ctx context.Context, i *invocation, q *request, r *reply) error {
		h, err := i.session.tree(q.Tree)
		if err != nil {
			return err
		}
		defer h.leave()
		return call(ctx, i, h, q, r)
	}
}

// attr puts an attribute and an error where they belong.
func (r *reply) attr(a vfs.Attr, err error) error {
	r.Attr = &a
	return err
}

// node is what a request says of a new node.
func (q *request) node() vfs.NewNode {
	if q.Node == nil {
		return vfs.NewNode{}
	}
	return *q.Node
}

func lookup(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Lookup(ctx, q.Dir, q.Name))
}

func stat(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Stat(ctx, q.Ino))
}

func setAttr(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	var set vfs.AttrSet
	if q.Set != nil {
		set = *q.Set
	}
	return r.attr(h.SetAttr(ctx, q.Ino, set))
}

// readDir gives one batch; Flag says that it was the last.
func readDir(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	r.Flag = true
	return h.ReadDir(ctx, q.Dir, vfs.Offset(q.Off), func(d vfs.Dirent) bool {
		if len(r.Entries) == readDirBatch {
			r.Flag = false
			return false
		}
		r.Entries = append(r.Entries, d)
		return true
	})
}

func create(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Create(ctx, q.Dir, q.Name, q.node()))
}

func mkdir(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Mkdir(ctx, q.Dir, q.Name, q.node()))
}

func mknod(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Mknod(ctx, q.Dir, q.Name, q.Type, q.node()))
}

func symlink(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Symlink(ctx, q.Dir, q.Name, q.NewName, q.node()))
}

func link(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	return r.attr(h.Link(ctx, q.Ino, q.Dir, q.Name))
}

func unlink(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.Unlink(ctx, q.Dir, q.Name)
}

func rmdir(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.Rmdir(ctx, q.Dir, q.Name)
}

func rename(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.Rename(ctx, q.Dir, q.Name, q.NewDir, q.NewName, vfs.RenameFlags(q.Flags))
}

func readlink(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) (err error) {
	r.Name, err = h.Readlink(ctx, q.Ino)
	return err
}

func readAt(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) error {
	if q.N > MaxTransfer {
		return fmt.Errorf("read %d bytes in one frame: %w", q.N, vfs.ErrInvalid)
	}
	p := make([]byte, q.N)
	n, err := h.ReadAt(ctx, q.Ino, p, q.Off)
	r.Data = p[:n]
	return err
}

func writeAt(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.WriteAt(ctx, q.Ino, q.Data, q.Off, q.Flags != 0)
}

func allocate(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.Allocate(ctx, q.Ino, vfs.AllocMode(q.Flags), q.Off, q.N)
}

func copyRange(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) (err error) {
	r.N, err = h.CopyRange(ctx, q.Ino, q.Off, q.NewDir, q.NewOff, q.N)
	return err
}

func seek(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) (err error) {
	r.N, err = h.Seek(ctx, q.Ino, q.Off, vfs.Whence(q.Flags))
	return err
}

func getXattr(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) (err error) {
	r.Data, err = h.GetXattr(ctx, q.Ino, q.Name)
	return err
}

func setXattr(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.SetXattr(ctx, q.Ino, q.Name, q.Data, vfs.XattrFlags(q.Flags))
}

func listXattr(ctx context.Context, _ *invocation, h *handle, q *request, r *reply) (err error) {
	r.Names, err = h.ListXattr(ctx, q.Ino)
	return err
}

func removeXattr(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.RemoveXattr(ctx, q.Ino, q.Name)
}

func fsync(ctx context.Context, _ *invocation, h *handle, q *request, _ *reply) error {
	return h.Fsync(ctx, q.Ino)
}

func syncTree(ctx context.Context, _ *invocation, h *handle, _ *request, _ *reply) error {
	return h.Sync(ctx)
}

func commit(ctx context.Context, _ *invocation, h *handle, _ *request, r *reply) error {
	rev, err := h.Commit(ctx)
	r.N = uint64(rev)
	return err
}

func statFS(ctx context.Context, _ *invocation, h *handle, _ *request, r *reply) error {
	s, err := h.StatFS(ctx)
	r.StatFS = &s
	return err
}
