package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Snapshot is a named revision of a workspace, which stays readable until the snapshot is removed.
type Snapshot struct {
	Name    string
	Rev     vfs.Rev
	Created vfs.Time
	Message string
}

// snapshotRecord is a snapshot's entry in the store. Layout: rev uvarint | created varint | message, to the end.
type snapshotRecord struct {
	rev     vfs.Rev
	created vfs.Time
	message string
}

func (r snapshotRecord) encode() []byte {
	b := binary.AppendVarint(uvarint(uint64(r.rev)), int64(r.created))
	return append(b, r.message...)
}

func (r snapshotRecord) named(name string) Snapshot {
	return Snapshot{Name: name, Rev: r.rev, Created: r.created, Message: r.message}
}

func decodeSnapshot(b []byte) (r snapshotRecord, err error) {
	rev, rest, err := cutUvarint(b)
	var created uint64
	if err == nil {
		created, rest, err = cutUvarint(rest)
	}
	if err != nil || len(rest) > maxMessage {
		return r, fmt.Errorf("snapshot record %x: %w", b, vfs.ErrCorrupt)
	}
	return snapshotRecord{rev: vfs.Rev(rev), created: unzigzag(created), message: string(rest)}, nil
}

// storedSnapshot is a snapshot with its key.
type storedSnapshot struct {
	snapshotRecord
	ws   workspaceID
	name string
}

// snapshots calls fn for the snapshots under a prefix of their keys; for all when it is nil.
func (r *reader) snapshots(prefix []byte, fn func(storedSnapshot) error) error {
	if prefix == nil {
		prefix = []byte{keySnapshot}
	}
	return r.scan(prefix, nil, true, func(key, value []byte) (bool, error) {
		if len(key) < 10 {
			return false, fmt.Errorf("snapshot key %x: %w", key, vfs.ErrCorrupt)
		}
		rec, err := decodeSnapshot(value)
		if err != nil {
			return false, err
		}
		return true, fn(storedSnapshot{rec, workspaceOfKey(key), string(key[9:])})
	})
}

// snapshotsOf returns the snapshots of a workspace, the oldest first.
func (s *Store) snapshotsOf(ws workspaceID) (list []Snapshot, err error) {
	r := s.reader()
	defer r.Close()
	err = r.snapshots(keyOfSnapshot(ws, ""), func(sn storedSnapshot) error {
		list = append(list, sn.named(sn.name))
		return nil
	})
	slices.SortStableFunc(list, func(a, b Snapshot) int {
		if a.Created != b.Created {
			return int(min(max(a.Created-b.Created, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, err
}

// Snapshots returns the snapshots of a workspace, the oldest first. ErrNoWorkspace.
func (s *Store) Snapshots(_ context.Context, workspace string) (list []Snapshot, err error) {
	info, err := s.find(workspace)
	if err == nil {
		list, err = s.snapshotsOf(workspaceID(info.ID))
	}
	if err != nil {
		return nil, fmt.Errorf("snapshots of workspace %q: %w", workspace, err)
	}
	return list, nil
}

// CreateSnapshot gives the present state of a workspace a name: with everything that was done in it before the call, and
// all bytes of files that are open. ErrNoWorkspace, ErrExist, ErrInvalid when the name cannot be one, ErrTooBig for a
// message of more than 4,096 bytes.
func (s *Store) CreateSnapshot(ctx context.Context, workspace, name, message string) (sn Snapshot, err error) {
	err = checkSnapshotName(name)
	if err == nil && len(message) > maxMessage {
		err = fmt.Errorf("message of %d bytes: %w", len(message), vfs.ErrTooBig)
	}
	if err == nil {
		err = s.whole(ctx, workspace, func(v *revision, ws workspaceID) error {
			if err := s.noReplica(ws); err != nil {
				return err
			}
			switch _, err := s.snapshot(ws, name); {
			case err == nil:
				return vfs.ErrExist
			case !errors.Is(err, vfs.ErrNoRevision):
				return err
			}
			sn = Snapshot{Name: name, Rev: v.pinWorkspace(ws), Created: s.now(), Message: message}
			rec := snapshotRecord{rev: sn.Rev, created: sn.Created, message: message}
			v.kvs = append(v.kvs, kv{key: keyOfSnapshot(ws, name), value: rec.encode()})
			v.kind, v.of, v.snapshots = RevisionSnapshot, ws, true
			return nil
		})
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %q of workspace %q: %w", name, workspace, err)
	}
	return sn, nil
}

// whole commits everything of a workspace, and an edit, if there is one, with it in the same revision.
func (s *Store) whole(ctx context.Context, workspace string, edit func(*revision, workspaceID) error) error {
	w, err := s.OpenWorkspace(ctx, workspace)
	if err != nil {
		return err
	}
	defer w.leave()
	r := request{tree: w, whole: true}
	if edit != nil {
		r.edit = func(v *revision) error { return edit(v, w.id) }
	}
	_, err = s.committer.commit(ctx, r)
	return err
}

// RemoveSnapshot forgets a snapshot. What only it has shown is garbage then. ErrNoWorkspace, ErrNoRevision.
func (s *Store) RemoveSnapshot(ctx context.Context, workspace, name string) error {
	var ws workspaceID
	err := s.edit(ctx, func(v *revision) error {
		info, err := s.find(workspace)
		if err != nil {
			return err
		}
		ws = workspaceID(info.ID)
		sn, err := s.snapshot(ws, name)
		if err != nil {
			return err
		}
		v.pins = append(v.pins, pin{ws, sn.rev, -1})
		v.kvs, v.snapshots = append(v.kvs, kv{key: keyOfSnapshot(ws, name)}), true
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove snapshot %q of workspace %q: %w", name, workspace, err)
	}
	s.endViews(ws, name)
	s.space.deleted(1)
	return nil
}

// dropSnapshots removes the snapshots of a workspace that goes.
func (v *revision) dropSnapshots(ws workspaceID) error {
	list, err := v.store.snapshotsOf(ws)
	for _, sn := range list {
		v.pins = append(v.pins, pin{ws, sn.Rev, -1})
		v.kvs = append(v.kvs, kv{key: keyOfSnapshot(ws, sn.Name)})
	}
	v.snapshots = v.snapshots || len(list) > 0
	return err
}

// snapshot returns a snapshot: ErrNoRevision when there is none of that name.
func (s *Store) snapshot(ws workspaceID, name string) (rec snapshotRecord, err error) {
	r := s.reader()
	defer r.Close()
	err = r.get(keyOfSnapshot(ws, name), func(b []byte) error {
		rec, err = decodeSnapshot(b)
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		err = fmt.Errorf("snapshot %q: %w", name, vfs.ErrNoRevision)
	}
	return rec, err
}

// checkSnapshotName returns nil when a name may be a snapshot's: one of a workspace that reads neither as a revision nor as
// an age.
func checkSnapshotName(name string) error {
	if err := checkWorkspaceName(name); err != nil {
		return err
	}
	if _, ok := parseRevision(name); ok {
		return fmt.Errorf("it reads as a revision: %w", vfs.ErrInvalid)
	}
	if _, ok := parseAge(name); ok {
		return fmt.Errorf("it reads as an age: %w", vfs.ErrInvalid)
	}
	return nil
}
