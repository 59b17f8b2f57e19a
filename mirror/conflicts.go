package mirror

import (
	"context"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// noteConflicts returns the notes of new conflicts.
func (m *Mirror) noteConflicts(list []reconcile.Conflict) ([]casstore.Note, error) {
	for _, c := range list {
		m.log.Warn("conflict", "kind", string(c.Kind), "inode", uint64(c.Ino), "name", c.Place.Name, "copy", c.Copy.Name)
	}
	m.stats.conflicts.Add(uint64(len(list)))
	return m.replica.ConflictNotes(list, vfs.TimeOf(m.now()))
}

// Conflicts returns the conflicts that have not been resolved, the oldest first.
func (m *Mirror) Conflicts() ([]reconcile.Recorded, error) { return m.replica.Conflicts() }

// ListConflicts is Conflicts for people.
func (m *Mirror) ListConflicts(ctx context.Context) ([]reconcile.Listed, error) {
	list, err := m.Conflicts()
	if err != nil {
		return nil, err
	}
	return reconcile.List(ctx, m.tree, list)
}

// Resolve ends a conflict. ErrNotExist when there is none of that number, or no copy to keep or to remove.
func (m *Mirror) Resolve(ctx context.Context, number uint64, how reconcile.Resolution) error {
	list, err := m.Conflicts()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(r reconcile.Recorded) bool { return r.Number == number })
	if i < 0 {
		return fmt.Errorf("conflict %d: %w", number, vfs.ErrNotExist)
	}
	if err := reconcile.Resolve(ctx, m.tree, list[i].Conflict, how); err != nil {
		return fmt.Errorf("conflict %d: %w", number, err)
	}
	return m.replica.Note(ctx, casstore.Note{Name: casstore.NoteOfConflict(number)})
}
