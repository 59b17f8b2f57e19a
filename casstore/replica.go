package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Replica is a workspace whose revisions are made elsewhere, at an authority, and that is written here all the same. Its
// tree is an ordinary Workspace. Beside it the store keeps, of each record that was changed here, what the authority had
// under its key when that was first changed: the record's basis. It is written in the same revision as the change, so
// after any crash the store knows what the authority lacks, and what that was made of.
//
//	what the authority had = the records at the head, with bases in place of those that have one
//
// A record that is as its basis says has none: what was made and removed again, or pushed, is forgotten.
//
// All methods are safe for concurrent use. What they change is durable when they return.
type Replica struct{ tree *Workspace }

// Origin is where a replica gets what it does not have yet. Its methods are called without locks, may wait for a peer,
// and say so by vfs.WillBlock.
type Origin interface {
	// Load returns when the record of an inode has arrived; with all, its names and attributes too. It is called for
	// everything that is not in memory, so it must be quick once all is there.
	Load(ctx context.Context, ino vfs.Ino, all bool) error
	// Numbers returns when there are numbers for new inodes (AddNumbers).
	Numbers(ctx context.Context) error
	// Fetch stores a chunk that is not there (AddChunks).
	Fetch(ctx context.Context, id chunk.ID) error
}

// replicaState is what a workspace that is a replica has beside others.
type replicaState struct {
	numbers numbers // guarded by the tree's lock
	saved   []byte  // numbers as the store has them; the committer's
	edited  edited
	origin  atomic.Pointer[Origin]
}

// CreateReplica makes a workspace that is a replica, without any record: all come from its origin. ErrExist, ErrInvalid
// and ErrNameTooLong are as in CreateWorkspace.
func (s *Store) CreateReplica(ctx context.Context, name string) (Info, error) {
	var info Info
	err := checkWorkspaceName(name)
	if err == nil {
		err = s.edit(ctx, func(v *revision) error {
			if err := s.nameFree(name); err != nil {
				return err
			}
			info = Info{ID: s.nextWS.Add(1) - 1, Name: name, Created: s.now(), Rev: v.rev}
			ws := workspaceRecord{created: info.Created, name: name}
			v.kvs = append(v.kvs,
				kv{key: keyOfWorkspace(workspaceID(info.ID)), value: ws.encode()},
				kv{key: keyOfReplica(workspaceID(info.ID)), value: numbers{}.encode()})
			return nil
		})
	}
	if err != nil {
		return Info{}, fmt.Errorf("create replica %q: %w", name, err)
	}
	return info, nil
}

// OpenReplica opens a workspace that was made by CreateReplica and says where it gets what it does not have. The
// workspace is to be closed. ErrNoWorkspace, and ErrInvalid for one that is no replica.
func (s *Store) OpenReplica(ctx context.Context, name string, origin Origin) (*Workspace, *Replica, error) {
	w, err := s.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if w.replica == nil {
		return nil, nil, errors.Join(fmt.Errorf("open replica %q: %w", name, vfs.ErrInvalid), w.Close())
	}
	w.replica.origin.Store(&origin)
	s.replicas.origin.Store(&origin)
	return w, &Replica{tree: w}, nil
}

// replicaOf returns what the store has of a replica, or nil when the workspace is none.
func (s *Store) replicaOf(id workspaceID) (*replicaState, error) {
	r := s.reader()
	defer r.Close()
	var st *replicaState
	err := r.get(keyOfReplica(id), func(b []byte) (err error) {
		st = &replicaState{saved: append([]byte(nil), b...)}
		st.numbers, err = decodeNumbers(b)
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = st.edited.load(r, id)
	}
	return st, err
}

// ensure has what an operation missed arrive at a replica.
func (w *Workspace) ensure(ctx context.Context, m *miss) error {
	if w.replica == nil {
		return nil
	}
	o := w.replica.origin.Load()
	switch {
	case o == nil:
		return nil // while the store is being opened: what is asked for then was here
	case m.numbers:
		return (*o).Numbers(ctx)
	}
	return (*o).Load(ctx, m.ino, m.dirent || m.xattrs || m.list)
}

// numbers are those that a replica may give to new inodes, in the order in which it does.
type numbers []vfs.InoRange

func (n numbers) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(n)))
	for _, in := range n {
		b = binary.AppendUvarint(b, uint64(in.First))
		b = binary.AppendUvarint(b, uint64(in.Last))
	}
	return b
}

func decodeNumbers(b []byte) (numbers, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxRanges {
		return nil, fmt.Errorf("replica record %x: %w", b, vfs.ErrCorrupt)
	}
	v, err := uvarints(b[n:], 2*int(count))
	if err != nil {
		return nil, fmt.Errorf("replica record: %w", err)
	}
	var out numbers
	for i := 0; i < len(v); i += 2 {
		out = append(out, vfs.InoRange{First: vfs.Ino(v[i]), Last: vfs.Ino(v[i+1])})
	}
	return out, nil
}

// take takes the next number. ok is false when there is none.
func (n *numbers) take() (ino vfs.Ino, ok bool) {
	if len(*n) == 0 {
		return 0, false
	}
	first := &(*n)[0]
	ino = first.First
	if first.First++; !first.Valid() {
		*n = (*n)[1:]
	}
	return ino, true
}

// left is how many numbers there are.
func (n numbers) left() (left uint64) {
	for _, in := range n {
		left += uint64(in.Last-in.First) + 1
	}
	return left
}

// needNumber makes sure that the next newInode has a number. The lock is held. Numbers of inodes that are in memory are
// passed over: an authority that was put back may lease them again, and one that is gone may still be held.
func (w *Workspace) needNumber() error {
	if w.replica == nil {
		return nil
	}
	n := &w.replica.numbers
	for len(*n) > 0 && w.inodes[(*n)[0].First] != nil {
		n.take()
	}
	if len(*n) == 0 {
		return &miss{numbers: true}
	}
	return nil
}

// number returns the number of a new inode. The lock is held.
func (w *Workspace) number() vfs.Ino {
	if w.replica == nil {
		return w.store.nextIno()
	}
	ino, _ := w.replica.numbers.take() // needNumber has been called
	return ino
}

// Numbers returns how many numbers are left for new inodes.
func (r *Replica) Numbers() uint64 {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	return r.tree.replica.numbers.left()
}

// Left returns the numbers that are left for new inodes.
func (r *Replica) Left() []vfs.InoRange {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	return slices.Clone([]vfs.InoRange(r.tree.replica.numbers))
}

// AddNumbers adds numbers that were leased for new inodes. They are durable with the first change that uses one; before
// that a crash loses them, of which there are enough. ErrBusy when there are too many ranges.
func (r *Replica) AddNumbers(in vfs.InoRange) error {
	w := r.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.replica.numbers) == maxRanges {
		return fmt.Errorf("numbers of inodes in %d ranges: %w", maxRanges, vfs.ErrBusy)
	}
	w.store.seen(in.Last)
	w.replica.numbers = append(w.replica.numbers, in)
	return nil
}

// DropNumbers forgets all numbers: they were leased in another epoch.
func (r *Replica) DropNumbers() {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	r.tree.replica.numbers = nil
}

// TakeNumber takes a number for an inode that is made by Apply.
func (r *Replica) TakeNumber(ctx context.Context) (ino vfs.Ino, err error) {
	w := r.tree
	err = w.do(ctx, func() error {
		err := w.needNumber()
		if err == nil {
			ino = w.number()
		}
		return err
	})
	return ino, err
}

// seen makes sure that the store itself gives no inode a number that came from elsewhere. One above maxIno it does not
// heed: there must be numbers left to give.
func (s *Store) seen(ino vfs.Ino) {
	for ino <= maxIno {
		next := s.inos.Load()
		if uint64(ino) < next || s.inos.CompareAndSwap(next, uint64(ino)+1) {
			return
		}
	}
}

// Commit makes a revision of all names and attributes so far, and of all bytes of a file, or with zero of all files. It
// returns the workspace's newest revision. Unlike Fsync it leaves nothing in the journal, so that all of it can be pushed.
func (r *Replica) Commit(ctx context.Context, ino vfs.Ino) (rev vfs.Rev, err error) {
	w := r.tree
	err = w.Authority().call(ctx, "commit", func() error {
		_, err := w.store.committer.commit(ctx, request{tree: w, ino: ino, exact: ino != 0, whole: ino == 0})
		p, _ := w.position()
		rev = p.Rev
		return err
	})
	return rev, err
}

// FlushWatch implements vfs.WatchFlusher.
func (r *Replica) FlushWatch(ctx context.Context) error { return r.tree.FlushWatch(ctx) }
