package casstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// conflictNote begins the name of a conflict's note; its number follows.
const conflictNote = "conflict/"

// conflictNotes returns the notes of new conflicts. When there are too many altogether, the oldest are forgotten: what they
// are about is still there.
func conflictNotes(known []reconcile.Recorded, list []reconcile.Conflict, now vfs.Time) (
	added []reconcile.Recorded, notes []Note, err error,
) {
	next := uint64(1)
	if len(known) > 0 {
		next = known[len(known)-1].Number + 1
	}
	for i, c := range list {
		r := reconcile.Recorded{Number: next + uint64(i), Time: now, Conflict: c}
		note, err := noteOf(&r)
		if err != nil {
			return nil, nil, err
		}
		added = append(added, r)
		notes = append(notes, note)
	}
	for len(known) > 0 && len(known)+len(list) > maxConflicts {
		notes = append(notes, Note{Name: NoteOfConflict(known[0].Number)})
		known = known[1:]
	}
	return added, notes, nil
}

// noteOf is the note of a conflict.
func noteOf(r *reconcile.Recorded) (Note, error) {
	b, err := json.Marshal(r)
	return Note{Name: NoteOfConflict(r.Number), Value: b}, err
}

// NoteOfConflict is the name of a conflict's note, which is removed when that is resolved.
func NoteOfConflict(number uint64) string { return conflictNote + strconv.FormatUint(number, 10) }

// conflicts returns the conflicts of a workspace that have not been resolved, the oldest first.
func (r *reader) conflicts(ws workspaceID) ([]reconcile.Recorded, error) {
	notes, err := r.notes(ws, conflictNote)
	if err != nil {
		return nil, err
	}
	list := make([]reconcile.Recorded, len(notes))
	for i, n := range notes {
		if err := json.Unmarshal(n.Value, &list[i]); err != nil {
			return nil, fmt.Errorf("note %s: %w: %w", n.Name, vfs.ErrCorrupt, err)
		}
	}
	slices.SortFunc(list, func(a, b reconcile.Recorded) int { return int(int64(a.Number) - int64(b.Number)) })
	return list, nil
}

// ConflictNotes returns the notes of new conflicts of a replica.
func (r *Replica) ConflictNotes(list []reconcile.Conflict, now vfs.Time) ([]Note, error) {
	if len(list) == 0 {
		return nil, nil
	}
	known, err := r.Conflicts()
	if err != nil {
		return nil, err
	}
	_, notes, err := conflictNotes(known, list, now)
	return notes, err
}

// Conflicts returns the conflicts of a replica that have not been resolved, the oldest first.
func (r *Replica) Conflicts() ([]reconcile.Recorded, error) {
	head := r.tree.store.reader()
	defer head.Close()
	return head.conflicts(r.tree.id)
}
