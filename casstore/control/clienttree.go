package control

import (
	"context"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// tree is a workspace that is open at the owner.
type tree struct {
	client *Client
	n      uint32 // the owner's handle

	mu      sync.Mutex
	watches map[*watcher]struct{}
}

var _ Workspace = (*tree)(nil)

// Close ends the watches, then closes the workspace at the owner.
func (t *tree) Close() error {
	t.mu.Lock()
	var watches []*watcher
	for w := range t.watches {
		watches = append(watches, w)
	}
	t.mu.Unlock()
	for _, w := range watches {
		w.stop()
	}
	// Closing makes things durable: it is not to be given up half way.
	_, err := t.client.do(context.Background(), callCloseWorkspace, &request{Tree: t.n})
	return err
}

func (t *tree) do(ctx context.Context, m method, q *request) (*reply, error) {
	q.Tree = t.n
	return t.client.do(ctx, m, q)
}

// attr makes a call that gives an attribute.
func (t *tree) attr(ctx context.Context, m method, q *request) (vfs.Attr, error) {
	r, err := t.do(ctx, m, q)
	switch {
	case err != nil:
		return vfs.Attr{}, err
	case r.Attr == nil:
		return vfs.Attr{}, malformed(m)
	}
	return *r.Attr, nil
}

func (t *tree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	return t.attr(ctx, callLookup, &request{Dir: dir, Name: name})
}

func (t *tree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	return t.attr(ctx, callStat, &request{Ino: ino})
}

func (t *tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	return t.attr(ctx, callSetAttr, &request{Ino: ino, Set: &set})
}

func (t *tree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	for {
		r, err := t.do(ctx, callReadDir, &request{Dir: dir, Off: uint64(after)})
		if err != nil {
			return err
		}
		for _, d := range r.Entries {
			if !yield(d) {
				return nil
			}
			after = d.Offset
		}
		if r.Flag || len(r.Entries) == 0 {
			return nil
		}
	}
}

func (t *tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.attr(ctx, callCreate, &request{Dir: dir, Name: name, Node: &n})
}

func (t *tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.attr(ctx, callMkdir, &request{Dir: dir, Name: name, Node: &n})
}

func (t *tree) Mknod(ctx context.Context, dir vfs.Ino, name string, y vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	return t.attr(ctx, callMknod, &request{Dir: dir, Name: name, Type: y, Node: &n})
}

func (t *tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	return t.attr(ctx, callSymlink, &request{Dir: dir, Name: name, NewName: target, Node: &n})
}

func (t *tree) Link(ctx context.Context, ino vfs.Ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	return t.attr(ctx, callLink, &request{Ino: ino, Dir: dir, Name: name})
}

func (t *tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	_, err := t.do(ctx, callUnlink, &request{Dir: dir, Name: name})
	return err
}

func (t *tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	_, err := t.do(ctx, callRmdir, &request{Dir: dir, Name: name})
	return err
}

func (t *tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, f vfs.RenameFlags,
) error {
	q := &request{Dir: dir, Name: name, NewDir: newDir, NewName: newName, Flags: uint32(f)}
	_, err := t.do(ctx, callRename, q)
	return err
}

func (t *tree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	r, err := t.do(ctx, callReadlink, &request{Ino: ino})
	return r.Name, err
}

// ReadAt reads in frames of MaxTransfer; a file that changes meanwhile may show the change in a later one.
func (t *tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	n := 0
	for {
		part := p[n:min(len(p), n+MaxTransfer)]
		r := &reply{Data: part[:0]}
		q := &request{Tree: t.n, Ino: ino, Off: off + uint64(n), N: uint64(len(part))}
		if err := t.client.doInto(ctx, callReadAt, q, r, nil); err != nil {
			return n, err
		}
		n += copy(part, r.Data)
		if len(r.Data) < len(part) || n == len(p) {
			return n, nil
		}
	}
}

// WriteAt writes in frames of MaxTransfer. After an error, those before the failed one have been written.
func (t *tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	flags := uint32(0)
	if killPriv {
		flags = 1
	}
	for {
		n := min(len(p), MaxTransfer)
		if _, err := t.do(ctx, callWriteAt, &request{Ino: ino, Off: off, Data: p[:n], Flags: flags}); err != nil {
			return err
		}
		p, off = p[n:], off+uint64(n)
		if len(p) == 0 {
			return nil
		}
	}
}

func (t *tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	_, err := t.do(ctx, callAllocate, &request{Ino: ino, Flags: uint32(mode), Off: off, N: n})
	return err
}

func (t *tree) CopyRange(
	ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64,
) (uint64, error) {
	r, err := t.do(ctx, callCopyRange, &request{Ino: src, Off: off, NewDir: dst, NewOff: dstOff, N: n})
	return r.N, err
}

func (t *tree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	r, err := t.do(ctx, callSeek, &request{Ino: ino, Off: off, Flags: uint32(whence)})
	return r.N, err
}

func (t *tree) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	r, err := t.do(ctx, callGetXattr, &request{Ino: ino, Name: name})
	return r.Data, err
}

func (t *tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, f vfs.XattrFlags) error {
	_, err := t.do(ctx, callSetXattr, &request{Ino: ino, Name: name, Data: value, Flags: uint32(f)})
	return err
}

func (t *tree) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	r, err := t.do(ctx, callListXattr, &request{Ino: ino})
	return r.Names, err
}

func (t *tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	_, err := t.do(ctx, callRemoveXattr, &request{Ino: ino, Name: name})
	return err
}

func (t *tree) Fsync(ctx context.Context, ino vfs.Ino) error {
	_, err := t.do(ctx, callFsync, &request{Ino: ino})
	return err
}

func (t *tree) Sync(ctx context.Context) error {
	_, err := t.do(ctx, callSync, &request{})
	return err
}

func (t *tree) Commit(ctx context.Context) (vfs.Rev, error) {
	r, err := t.do(ctx, callCommit, &request{})
	return vfs.Rev(r.N), err
}

func (t *tree) StatFS(ctx context.Context) (vfs.StatFS, error) {
	r, err := t.do(ctx, callStatFS, &request{})
	switch {
	case err != nil:
		return vfs.StatFS{}, err
	case r.StatFS == nil:
		return vfs.StatFS{}, malformed(callStatFS)
	}
	return *r.StatFS, nil
}

// Hold needs no answer: the owner takes frames in their order, so it has effect before any later call. When the
// connection is gone the hold means nothing any more.
func (t *tree) Hold(ino vfs.Ino) {
	_ = t.client.send(header{Kind: kindHold}, &request{Tree: t.n, Ino: ino})
}

func (t *tree) Release(ino vfs.Ino, n uint64) {
	_ = t.client.send(header{Kind: kindRelease}, &request{Tree: t.n, Ino: ino, N: n})
}
