package casstore

import (
	"encoding/json"
	"fmt"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// loadedMerge says that a state was merged into a workspace, the first state of which that has it is the other.
type loadedMerge struct{ merged, has uint64 }

// takeConflict takes a conflict of the last workspace in. It is written at once, under the number that nobody sees.
func (l *loader) takeConflict(body []byte) error {
	number, value, err := cutUvarint(body)
	if err != nil {
		return err
	}
	var rec reconcile.Recorded
	if err := json.Unmarshal(value, &rec); err != nil || rec.Number != number {
		return fmt.Errorf("conflict %d: %w", number, vfs.ErrCorrupt)
	}
	sp := l.spaces[len(l.spaces)-1]
	if sp.conflicts == nil {
		sp.conflicts = make(map[uint64]struct{})
	}
	_, again := sp.conflicts[number]
	if again || sp.there != nil || len(sp.conflicts) >= maxConflicts {
		return fmt.Errorf("conflict %d, which there cannot be: %w", number, vfs.ErrCorrupt)
	}
	sp.conflicts[number] = struct{}{}
	note, err := noteOf(&rec) // in our own words, whatever else was in it
	if err != nil {
		return err
	}
	l.conflicts = append(l.conflicts, note)
	if l.conflictBytes += recordCost + len(note.Value); l.conflictBytes < loadBatch {
		return nil
	}
	return l.writeConflicts()
}

// writeConflicts writes what takeConflict has gathered.
func (l *loader) writeConflicts() error {
	if len(l.conflicts) == 0 {
		return nil
	}
	if err := l.store.space.admitRecords(l.ctx, l.conflictBytes); err != nil {
		return err
	}
	id := l.spaces[len(l.spaces)-1].id
	err := l.store.edit(l.ctx, func(v *revision) error {
		v.keepNotes(id, l.conflicts)
		return nil
	})
	l.conflicts, l.conflictBytes = nil, 0
	return err
}

// takeMerge takes in what was merged.
func (l *loader) takeMerge(body []byte) error {
	v, err := uvarints(body, 2)
	if err != nil {
		return err
	}
	m := loadedMerge{v[0], v[1]}
	if m.merged >= uint64(len(l.states)) || m.has >= uint64(len(l.states)) {
		return fmt.Errorf("a merge of state %d into %d, of %d: %w", m.merged, m.has, len(l.states), vfs.ErrCorrupt)
	}
	from, into := l.states[m.merged].space, l.states[m.has].space
	if from == into || from.there != nil || into.there != nil || len(l.merges) >= maxLoadChanges {
		return fmt.Errorf("a merge of state %d into %d, which there cannot be: %w", m.merged, m.has, vfs.ErrCorrupt)
	}
	l.merges = append(l.merges, m)
	return nil
}

// publishMerges has the revision say what was merged, and keep that.
func (l *loader) publishMerges(v *revision) error {
	seen := make(map[[2]workspaceID]struct{}, len(l.merges))
	for _, m := range l.merges {
		merged, has := l.states[m.merged], l.states[m.has]
		pair := [2]workspaceID{has.space.id, merged.space.id}
		if _, again := seen[pair]; again {
			return fmt.Errorf("workspace %q was merged twice into %q: %w", merged.space.name, has.space.name, vfs.ErrCorrupt)
		}
		seen[pair] = struct{}{}
		rec := mergeRecord{rev: merged.rev, at: has.rev}
		v.kvs = append(v.kvs, kv{key: keyOfMerge(pair[0], pair[1]), value: rec.encode()})
		v.pins = append(v.pins, pin{merged.space.id, merged.rev, 1})
	}
	return nil
}
