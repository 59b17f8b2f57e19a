package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Info says what is known of a workspace.
type Info struct {
	ID      uint64
	Name    string
	Created vfs.Time
	Rev     vfs.Rev // the store's, that the rest was read at
	Inodes  uint64  // only in what Info returns
	Bytes   uint64  // of files, holes included; only in what Info returns

	Origin    uint64  // the number of the workspace that it is a fork of, or of one before that when it is gone; or zero
	OriginRev vfs.Rev // and that one's revision
}

// CreateWorkspace makes a workspace with an empty root directory, which belongs to the process's user. ErrExist when
// there is one of that name, ErrInvalid or ErrNameTooLong when the name cannot be one.
func (s *Store) CreateWorkspace(ctx context.Context, name string) (Info, error) {
	var info Info
	err := checkWorkspaceName(name)
	if err == nil {
		err = s.edit(ctx, func(v *revision) error {
			if err := s.nameFree(name); err != nil {
				return err
			}
			info = Info{ID: s.nextWS.Add(1) - 1, Name: name, Created: s.now(), Rev: v.rev}
			id := workspaceID(info.ID)
			s.changed[id] = v.rev
			v.kind, v.of = RevisionCreate, id
			ws := workspaceRecord{created: info.Created, name: name}
			root := vfs.InodeRecord{
				Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
				Parent: vfs.RootIno, Mtime: info.Created, Ctime: info.Created, Btime: info.Created,
			}
			v.kvs = append(v.kvs,
				kv{key: keyOfWorkspace(id), value: ws.encode()},
				kv{key: keyOfNode(keyInode, id, vfs.RootIno), value: root.Append(nil)})
			return nil
		})
	}
	if err != nil {
		return Info{}, fmt.Errorf("create workspace %q: %w", name, err)
	}
	return info, nil
}

// nameFree is for the committer's goroutine, so that no other can take the name before the commit.
func (s *Store) nameFree(name string) error {
	_, err := s.find(name)
	switch {
	case err == nil:
		return vfs.ErrExist
	case isNoWorkspace(err):
		return nil
	}
	return err
}

// Workspaces returns all workspaces, by name.
func (s *Store) Workspaces(context.Context) ([]Info, error) {
	var list []Info
	r := s.reader()
	defer r.Close()
	err := r.scan([]byte{keyWorkspace}, nil, true, func(key, value []byte) (bool, error) {
		ws, err := decodeWorkspace(value)
		if err != nil || len(key) != 9 {
			return false, fmt.Errorf("workspace %x: %w", key, vfs.ErrCorrupt)
		}
		info := Info{ID: binary.BigEndian.Uint64(key[1:]), Name: ws.name, Created: ws.created, Rev: r.rev}
		if f, ok := s.forkOf(workspaceID(info.ID)); ok {
			f.describe(&info)
		}
		list = append(list, info)
		return true, nil
	})
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return list, nil
}

func (s *Store) find(name string) (Info, error) {
	list, err := s.Workspaces(context.Background())
	if err != nil {
		return Info{}, err
	}
	i := slices.IndexFunc(list, func(i Info) bool { return i.Name == name })
	if i < 0 {
		return Info{}, vfs.ErrNoWorkspace
	}
	return list[i], nil
}

// Info returns what is known of a workspace, with its sums as they were last committed. ErrNoWorkspace.
func (s *Store) Info(ctx context.Context, name string) (Info, error) {
	info, err := s.find(name)
	if err == nil {
		r := s.reader()
		defer r.Close()
		err = r.scan(keyOfNode(keyInode, workspaceID(info.ID), 0)[:9], nil, true, func(_, value []byte) (bool, error) {
			rec, err := vfs.DecodeInode(value)
			info.Inodes++
			info.Bytes += rec.Size
			return ctx.Err() == nil, err
		})
	}
	if err != nil {
		return Info{}, fmt.Errorf("workspace %q: %w", name, err)
	}
	return info, nil
}

// RenameWorkspace gives a workspace another name; whoever has it open keeps it. ErrNoWorkspace, ErrExist, ErrInvalid.
func (s *Store) RenameWorkspace(ctx context.Context, name, newName string) error {
	err := checkWorkspaceName(newName)
	if err == nil {
		err = s.edit(ctx, func(v *revision) error {
			info, err := s.find(name)
			if err != nil {
				return err
			}
			if err := s.nameFree(newName); err != nil {
				return err
			}
			ws := workspaceRecord{created: info.Created, name: newName}
			v.kvs = append(v.kvs, kv{key: keyOfWorkspace(workspaceID(info.ID)), value: ws.encode()})
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("rename workspace %q to %q: %w", name, newName, err)
	}
	return nil
}

// RemoveWorkspace removes a workspace with its snapshots: at once from the list, then its records. What was its chunks is
// garbage then.
// ErrNoWorkspace, and ErrWorkspaceBusy while somebody has it open.
func (s *Store) RemoveWorkspace(ctx context.Context, name string) error {
	id, locked := workspaceID(0), false
	err := s.edit(ctx, func(v *revision) error {
		info, err := s.find(name)
		if err != nil {
			return err
		}
		id = workspaceID(info.ID)
		if err := s.lockOut(id); err != nil {
			return err
		}
		locked = true
		v.kvs = append(v.kvs, kv{key: keyOfWorkspace(id)})
		v.kvs = append(v.kvs, kv{key: keyOfQuota(id)})
		err = v.dropMerges(func(m storedMerge) bool { return m.into == id || m.from == id })
		return errors.Join(err, v.leaveFamily(id), v.dropSnapshots(id))
	})
	if locked {
		s.unlock(id)
	}
	if err == nil {
		s.endViews(id, "")
		err = s.purge(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("remove workspace %q: %w", name, err)
	}
	return nil
}

// purgeBatch is how many records of a removed workspace one revision removes: it bounds the memory that takes.
const purgeBatch = 10_000

// purge removes the records of a workspace that has been removed, some at a time.
func (s *Store) purge(ctx context.Context, id workspaceID) error {
	for more := true; more; {
		err := s.edit(ctx, func(v *revision) error {
			r := s.reader()
			defer r.Close()
			before := len(v.kvs)
			for _, kind := range []byte{keyDirent, keyXattr, keyAtime, keyJournal, keyInode, keyStanding, keyLease, keyPush,
				keyReplica, keyBasis, keyNote} {
				err := r.scanOwn(keyOfNode(kind, id, 0)[:9], func(item *badger.Item) (bool, error) {
					v.kvs = append(v.kvs, kv{key: item.KeyCopy(nil)})
					return len(v.kvs)-before < purgeBatch, nil
				})
				if err != nil {
					return err
				}
			}
			more = len(v.kvs) > before
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.space.deleted(1)
	return nil
}

func isNoWorkspace(err error) bool { return errors.Is(err, vfs.ErrNoWorkspace) }

// lockOut has nobody open a workspace until unlock. ErrWorkspaceBusy when somebody has it open, or has locked it.
func (s *Store) lockOut(ws workspaceID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, locked := s.locked[ws]; locked || s.open[ws] != nil {
		return vfs.ErrWorkspaceBusy
	}
	s.locked[ws] = struct{}{}
	return nil
}

// unlock is the end of lockOut.
func (s *Store) unlock(ws workspaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locked, ws)
}

// OpenWorkspace returns the live tree of a workspace: the same one for all who open it. Each closes it once.
// ErrNoWorkspace, and ErrWorkspaceBusy while it is being removed or a load changes it.
func (s *Store) OpenWorkspace(_ context.Context, name string) (*Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("open workspace %q: %w", name, vfs.ErrClosed)
	}
	info, err := s.find(name)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", name, err)
	}
	w, err := s.openLocked(workspaceID(info.ID))
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", name, err)
	}
	return w, nil
}

func (s *Store) openLocked(id workspaceID) (*Workspace, error) {
	if _, locked := s.locked[id]; locked {
		return nil, vfs.ErrWorkspaceBusy
	}
	w := s.open[id]
	if w == nil {
		replica, err := s.replicaOf(id)
		if err != nil {
			return nil, err
		}
		w = &Workspace{
			store: s, id: id, gen: 1, serving: make(chan struct{}, 1), ended: make(chan struct{}),
			inodes: make(map[vfs.Ino]*inode), holds: make(map[vfs.Ino]uint64), orphans: make(map[*inode]struct{}),
			pushes: make(map[vfs.PeerID][]appliedPush), replica: replica,
		}
		if replica != nil {
			s.replicas.any.Store(true)
		}
		if err := w.loadQuota(); err != nil {
			return nil, err
		}
		s.open[id] = w
	}
	w.opens++
	return w, nil
}

// openNumber is OpenWorkspace by number. The tree is nil when there is none.
func (s *Store) openNumber(id workspaceID) (*Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch err := s.isThere(id); {
	case isNoWorkspace(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.openLocked(id)
}

// Close commits what is dirty and lets go of the workspace. The last Close closes it for good.
func (w *Workspace) Close() error {
	err := w.Sync(context.Background())
	w.leave()
	return err
}

// leave is Close without the commit.
func (w *Workspace) leave() {
	w.store.mu.Lock()
	w.opens--
	last := w.opens == 0
	w.store.mu.Unlock()
	if last {
		w.retire()
	}
}

// retire closes a workspace that nobody has open any more, unless somebody has opened it again.
func (w *Workspace) retire() {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opens > 0 || len(w.dirty) > 0 || w.cutGen.Load() != 0 || w.closed {
		return // the committer still has work with it; Store.Close shuts it
	}
	w.endLocked()
	delete(s.open, w.id)
}

func (w *Workspace) endLocked() {
	if !w.closed {
		w.closed = true
		close(w.ended)
	}
}

// shut commits and closes a workspace however often it is open.
func (w *Workspace) shut() error {
	err := w.Sync(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked()
	return err
}
