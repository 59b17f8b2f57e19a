package casstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// View is a workspace as it was at a revision. It implements vfs.Tree, and gives vfs.ErrReadOnly to every change. The
// revision stays readable until the view is closed. A view keeps almost nothing in memory: every call reads the store.
//
// A revision shows of each file what its record does: a file that was in the middle of a bulk write as it was flushed last,
// and one that was fsynced a little at a time as it was at the last periodic commit. Snapshots and forks have everything.
type View struct {
	store    *Store
	held     held
	snapshot string // with which it ends, or empty

	manifests manifestCache

	mu    sync.RWMutex // held for reading while a call runs
	ended error        // what calls give once it is closed, else nil
}

var _ vfs.Tree = (*View)(nil)

// OpenView returns a workspace as it was at a moment: a revision, a snapshot, or so long ago. ErrNoWorkspace, and
// ErrNoRevision when there is no such, or it is no longer kept.
func (s *Store) OpenView(_ context.Context, workspace, when string) (*View, error) {
	v, err := s.openView(workspace, when)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q at %q: %w", workspace, when, err)
	}
	return v, nil
}

func (s *Store) openView(workspace, when string) (*View, error) {
	h, err := s.resolve(workspace, when)
	if err != nil {
		return nil, err
	}
	return s.viewOf(h, "")
}

// viewOf returns a view of what is held, and lets go of it when there is an error. The view ends with the snapshot of a name, if
// there is one.
func (s *Store) viewOf(h held, snapshot string) (*View, error) {
	v := &View{store: s, held: h, snapshot: snapshot}
	r := s.readerAt(h.rev)
	err := r.get(keyOfWorkspace(h.ws), func([]byte) error { return nil })
	r.Close()
	if errors.Is(err, vfs.ErrNotExist) {
		err = s.kept(h)
	}
	if err == nil {
		err = s.isThere(h.ws) // or it was removed before it was held, perhaps with what shows through
	}
	if err == nil {
		err = s.noReplica(h.ws)
	}
	if err == nil {
		err = s.addView(v)
	}
	if err != nil {
		s.letGoOf(h)
		return nil, err
	}
	return v, nil
}

// errYounger says that a workspace was not there yet.
var errYounger = fmt.Errorf("the workspace is younger: %w", vfs.ErrNoRevision)

// kept returns nil for a revision that was not the workspace's when it was made, but is kept as one of its states: a backup
// was loaded then.
func (s *Store) kept(h held) error {
	snapshots, err := s.snapshotsOf(h.ws)
	if err != nil || slices.ContainsFunc(snapshots, func(sn Snapshot) bool { return sn.Rev == h.rev }) {
		return err
	}
	return fmt.Errorf("revision %d: %w", h.rev, errYounger)
}

func (s *Store) addView(v *View) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return vfs.ErrClosed
	}
	s.views[v] = struct{}{}
	return nil
}

func (s *Store) openViews() (list []*View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range s.views {
		list = append(list, v)
	}
	return list
}

// Rev is the revision that the view shows.
func (v *View) Rev() vfs.Rev { return v.held.rev }

// Close waits for calls that are under way, and lets go of the revision.
func (v *View) Close() error {
	v.end(vfs.ErrClosed)
	return nil
}

// end is Close with the error that calls are to give from then on.
func (v *View) end(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended != nil {
		return
	}
	v.ended = why
	v.store.letGoOf(v.held)
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	delete(v.store.views, v)
}

// call runs an operation on a reader of the revision.
func (v *View) call(ctx context.Context, op func(*reader) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case v.ended != nil:
		return v.ended
	case ctx.Err() != nil:
		return vfs.ErrInterrupted
	}
	r := v.store.readerAt(v.held.rev).as(v.held.ws, v.held.origins)
	defer r.Close()
	return op(r)
}

// node returns the record of an inode: ErrStale when there is none.
func (v *View) node(r *reader, ino vfs.Ino) (vfs.InodeRecord, error) {
	rec, err := r.inode(v.held.ws, ino)
	if errors.Is(err, vfs.ErrNotExist) {
		err = vfs.ErrStale
	}
	return rec, err
}

func (v *View) directory(r *reader, ino vfs.Ino) error {
	rec, err := v.node(r, ino)
	if err == nil && rec.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	return err
}

func (v *View) attr(r *reader, ino vfs.Ino) (vfs.Attr, error) {
	rec, err := v.node(r, ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	a := attrOf(ino, rec)
	atime, set, err := r.atime(v.held.ws, ino)
	if set {
		a.Atime = atime
	}
	return a, err
}

// Lookup implements vfs.Tree.
func (v *View) Lookup(ctx context.Context, dir vfs.Ino, name string) (a vfs.Attr, err error) {
	err = vfs.CheckName(name)
	if err == nil {
		err = v.call(ctx, func(r *reader) error {
			if err := v.directory(r, dir); err != nil {
				return err
			}
			d, err := r.dirent(v.held.ws, dir, name)
			if err == nil && d.Ino == 0 {
				err = vfs.ErrNotExist
			}
			if err == nil {
				a, err = v.attr(r, d.Ino)
			}
			return err
		})
	}
	return a, wrap(err, "lookup", dir, name)
}

// Stat implements vfs.Tree.
func (v *View) Stat(ctx context.Context, ino vfs.Ino) (a vfs.Attr, err error) {
	err = v.call(ctx, func(r *reader) error {
		a, err = v.attr(r, ino)
		return err
	})
	return a, wrap(err, "stat", ino, "")
}

// ReadDir implements vfs.Tree.
func (v *View) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	for {
		batch, last, err := v.list(ctx, dir, placeAfter(after))
		if err != nil {
			return wrap(err, "readdir", dir, "")
		}
		for _, e := range batch {
			if !yield(e) {
				return nil
			}
			after = e.Offset
		}
		if last {
			return nil
		}
	}
}

// list returns some entries from a place on, at least one unless there are no more.
func (v *View) list(ctx context.Context, dir vfs.Ino, at place) (batch []vfs.Dirent, last bool, err error) {
	err = v.call(ctx, func(r *reader) error {
		if err := v.directory(r, dir); err != nil {
			return err
		}
		for limit := dirBatch; len(batch) == 0 && !last; limit *= 2 {
			l := lister{at: at}
			var stored []storedDirent
			if stored, last, err = r.dirents(v.held.ws, dir, at.hash, limit); err != nil {
				return err
			}
			for _, s := range stored {
				l.add(s.hash, s.name, s.Ino, s.Type)
			}
			batch = l.out
		}
		return nil
	})
	return batch, last, err
}

// Readlink implements vfs.Tree.
func (v *View) Readlink(ctx context.Context, ino vfs.Ino) (target string, err error) {
	err = v.call(ctx, func(r *reader) error {
		rec, err := v.node(r, ino)
		if err == nil && rec.Type != vfs.TypeSymlink {
			err = vfs.ErrInvalid
		}
		target = string(rec.Body.Data)
		return err
	})
	if err != nil {
		return "", wrap(err, "readlink", ino, "")
	}
	return target, nil
}

// GetXattr implements vfs.Tree.
func (v *View) GetXattr(ctx context.Context, ino vfs.Ino, name string) (value []byte, err error) {
	err = v.call(ctx, func(r *reader) error {
		if _, err := v.node(r, ino); err != nil {
			return err
		}
		err := r.get(keyOfXattr(v.held.ws, ino, name), func(b []byte) error {
			value = append([]byte{}, b...)
			return nil
		})
		if errors.Is(err, vfs.ErrNotExist) {
			err = vfs.ErrNoXattr
		}
		return err
	})
	return value, wrap(err, "getxattr", ino, name)
}

// ListXattr implements vfs.Tree.
func (v *View) ListXattr(ctx context.Context, ino vfs.Ino) (names []string, err error) {
	err = v.call(ctx, func(r *reader) error {
		if _, err := v.node(r, ino); err != nil {
			return err
		}
		return r.scan(keyOfNode(keyXattr, v.held.ws, ino), nil, false, func(key, _ []byte) (bool, error) {
			names = append(names, string(key[prefixLen:]))
			return true, nil
		})
	})
	return names, wrap(err, "listxattr", ino, "")
}
