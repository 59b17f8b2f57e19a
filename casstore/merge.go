package casstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// MergeReport says what a merge has done, or would do.
type MergeReport struct {
	Rev       vfs.Rev            // that it made, or zero when there was nothing to do
	Changes   []DiffEntry        // of the workspace that was merged into, by path
	Conflicts []reconcile.Listed // those that it has added, without numbers when it was only tried
}

// Merge takes what has changed in one workspace, as it is now, into another, as one revision: all at once, also for those who
// have either mounted. The two must be related, as for Diff. What has changed is said by the state that both had last: when
// one was merged into the other, that of then; otherwise the one at which they were forked.
//
// Package reconcile has the rules: from is mine, into is theirs. Beside them, a file that one side has replaced under its
// name, as editors save, is the same file, and so are directories that both have made under one name; and texts of up to a
// megabyte and 10,000 lines, of which the two have changed different lines, are merged. What could not be merged is recorded
// ([Store.Conflicts]).
//
// try only says what would happen. ErrNoWorkspace, ErrInvalid when the two have nothing in common or are the same,
// ErrNotSupported for replicas, ErrTooBig when more than 65,536 records or 16 MiB of them are to change, or 262,144 are
// different, ErrBusy when into keeps changing there.
func (s *Store) Merge(ctx context.Context, from, into string, try bool) (report MergeReport, err error) {
	if err = s.merging.take(ctx); err == nil {
		defer s.merging.give()
		s.guests.hold() // what it stores of merged texts, no record refers to until it ends
		defer func() { s.guests.letGo(s.now()) }()
		report, err = s.merge3(ctx, from, into, try)
	}
	if err != nil {
		return MergeReport{}, fmt.Errorf("merge %q into %q: %w", from, into, err)
	}
	return report, nil
}

func (s *Store) merge3(ctx context.Context, from, into string, try bool) (report MergeReport, err error) {
	w, err := s.OpenWorkspace(ctx, into)
	if err != nil {
		return report, err
	}
	defer w.leave()
	if _, _, past := SplitMoment(from); past {
		return report, fmt.Errorf("only what a workspace is now can be merged; a fork of %s can: %w", from, vfs.ErrInvalid)
	}
	mine, err := s.diffSide(ctx, from)
	if err != nil {
		return report, err
	}
	defer mine.close()
	if mine.layers[0].ws == w.id {
		return report, fmt.Errorf("they are the same: %w", vfs.ErrInvalid)
	}
	for range pushTries {
		m := &merging{ctx: ctx, store: s, name: from, w: w, mine: mine, try: try}
		stale, err := m.run(into)
		if err != nil || !stale {
			return m.report, err
		}
	}
	return report, fmt.Errorf("it has changed %d times meanwhile: %w", pushTries, vfs.ErrBusy)
}

// merging is one try to merge a workspace into w.
type merging struct {
	ctx   context.Context
	store *Store
	name  string // of the workspace that is merged
	w     *Workspace
	try   bool

	base, mine, theirs *diffSide
	problem            *mergeProblem
	report             MergeReport
}

// run reports whether the workspace has changed meanwhile. Then nothing has happened.
func (m *merging) run(into string) (stale bool, err error) {
	if m.theirs, err = m.store.diffSide(m.ctx, into); err != nil {
		return false, err
	}
	defer m.theirs.close()
	last, err := m.store.lastMerge(m.mine.layers[0].ws, m.w.id)
	if err != nil {
		return false, err
	}
	if m.base, err = m.store.commonBase(m.mine, m.theirs, last); err != nil {
		return false, err
	}
	defer m.base.close()
	m.problem = &mergeProblem{ctx: m.ctx, base: m.base, mine: m.mine, theirs: m.theirs}
	if err := m.problem.gather(); err != nil {
		return false, err
	}
	solution, err := reconcile.Reconcile(&reconcile.Problem{
		Versions: m.problem.versions, View: m, Mirror: m.name[:min(len(m.name), mergeNameLen)],
		NewIno:     func() (vfs.Ino, error) { return m.store.nextIno(), nil },
		MergeBytes: m.mergeText,
	})
	if err != nil {
		return false, err
	}
	return m.settle(solution)
}

// settle commits a solution, and says what it is.
func (m *merging) settle(solution *reconcile.Solution) (stale bool, err error) {
	over, err := m.over(solution)
	if err != nil {
		return false, err
	}
	known, err := m.theirs.r.conflicts(m.w.id)
	if err != nil {
		return false, err
	}
	added, notes, err := conflictNotes(known, solution.Conflicts, m.store.now())
	if err != nil {
		return false, err
	}
	for _, c := range added {
		if m.try {
			c.Number = 0
		}
		m.report.Conflicts = append(m.report.Conflicts, c.Listed(over.placePath(m.ctx)))
	}
	if m.try || !m.problem.moved {
		return false, nil
	}
	records, err := m.records(solution)
	if err != nil {
		return false, err
	}
	return m.w.takeOver(m.ctx, &Incoming{Records: records, Notes: notes, kind: RevisionMerge, also: func(v *revision) error {
		m.report.Rev = v.rev
		return v.mergedFrom(m.mine.layers[0].ws, m.mine.view.held.rev, m.w.id)
	}})
}

// over finds what the solution changes, and returns the tree that it makes.
func (m *merging) over(solution *reconcile.Solution) (*diffSide, error) {
	to := *m.theirs
	to.over = solution.Merged
	to.paths.known = make(map[vfs.Ino]dirName)
	d := newDiffer(m.ctx, m.theirs, &to)
	var err error
	m.report.Changes, err = d.run(func(compare func(vfs.Key) error) error {
		for k := range solution.Merged {
			if err := compare(k); err != nil {
				return err
			}
		}
		return nil
	})
	return &to, err
}

// placePath returns what finds the path of a place of a tree.
func (d *diffSide) placePath(ctx context.Context) func(reconcile.Place) string {
	return func(p reconcile.Place) string {
		if p == (reconcile.Place{}) {
			return ""
		}
		dir, err := d.paths.dir(ctx, p.Dir)
		if err != nil {
			return p.Name // in a directory that is not there any more
		}
		return dir + "/" + p.Name
	}
}

// records are those that change, in the order of keys.
func (m *merging) records(solution *reconcile.Solution) (records []vfs.PushRecord, err error) {
	size := 0
	for k, value := range solution.Merged {
		is := vfs.Record{Key: k, Value: solution.Theirs[k]}
		if v, ok := m.problem.versions[k]; ok {
			is.Value = v.Theirs
		}
		if reconcile.Equal(is.Value, value) {
			continue
		}
		records = append(records, vfs.PushRecord{Record: vfs.Record{Key: k, Value: value}, Base: is.Base()})
		if size += len(k.Name) + len(value); size > vfs.MaxPushBytes || len(records) > vfs.MaxPushRecords {
			return nil, fmt.Errorf("too much is to change: %w", vfs.ErrTooBig)
		}
	}
	slices.SortFunc(records, func(a, b vfs.PushRecord) int { return a.Key.Compare(b.Key) })
	return records, nil
}

// Value implements reconcile.View.
func (m *merging) Value(k vfs.Key) ([]byte, error) { return m.theirs.value(k) }

// NameOf implements reconcile.View.
func (m *merging) NameOf(files []vfs.Ino) (map[vfs.Ino]reconcile.Place, error) {
	out := make(map[vfs.Ino]reconcile.Place)
	for _, ino := range files {
		n, err := m.theirs.paths.nameOf(m.ctx, ino, vfs.TypeRegular)
		if err != nil {
			return nil, err
		}
		if n.dir != 0 {
			out[ino] = reconcile.Place{Dir: n.dir, Name: n.name}
		}
	}
	return out, nil
}

// commonBase returns the last state that both sides had: that of the last merge, if there was one.
func (s *Store) commonBase(mine, theirs *diffSide, last *origin) (*diffSide, error) {
	switch {
	case last == nil:
		h, err := s.holdForebear(mine.layers[0].ws, theirs.layers[0].ws)
		if err != nil {
			return nil, err
		}
		return s.sideOf(&View{store: s, held: h}), nil
	case last.ws == mine.layers[0].ws:
		return s.sideAt(last.ws, last.rev, mine.layers[1:])
	}
	return s.sideAt(last.ws, last.rev, theirs.layers[1:])
}
