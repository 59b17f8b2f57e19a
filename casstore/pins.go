package casstore

import (
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// pin is a revision of a workspace that stays readable, or one time less when n is negative.
type pin struct {
	ws  workspaceID
	rev vfs.Rev
	n   int
}

// pins are the revisions of workspaces that stay readable however old they are, with how many want each: snapshots,
// origins of forks, what was merged last, and views that are open. reading.mu guards them.
//
// Badger keeps every version from the lowest of them on: it knows one revision below which only the newest versions
// stay. So a pin costs what has been replaced in the records since; of the chunks it keeps those that it shows itself.
type pins map[workspaceID]map[vfs.Rev]int

func (p pins) add(c pin) {
	of := p[c.ws]
	if of == nil {
		of = make(map[vfs.Rev]int)
		p[c.ws] = of
	}
	if of[c.rev] += c.n; of[c.rev] <= 0 {
		delete(of, c.rev)
	}
	if len(of) == 0 {
		delete(p, c.ws)
	}
}

// addAll is add for a revision of a workspace and for the origins that show through.
func (p pins) addAll(c pin, origins []origin) {
	p.add(c)
	p.addLayers(origins, c.n)
}

// addLayers is add for layers, also those that only whoever looks into them needs to have pinned; n times.
func (p pins) addLayers(layers []origin, n int) {
	for _, o := range layers {
		p.add(pin{o.ws, o.rev, n})
	}
}

// addFork is add for what a fork was made of, and for its layers that are pinned; n times.
func (p pins) addFork(f forkRecord, n int) {
	for _, o := range append([]origin{f.parent}, f.layers...) {
		if o.ws != 0 && o.of == 0 {
			p.add(pin{o.ws, o.rev, n})
		}
	}
}

// lowest is the lowest revision, or zero.
func (p pins) lowest() (low vfs.Rev) {
	for _, of := range p {
		for rev := range of {
			if low == 0 || rev < low {
				low = rev
			}
		}
	}
	return low
}

// sorted returns the revisions of each workspace, ascending.
func (p pins) sorted() map[workspaceID][]vfs.Rev {
	all := make(map[workspaceID][]vfs.Rev, len(p))
	for ws, of := range p {
		for rev := range of {
			all[ws] = append(all[ws], rev)
		}
		slices.Sort(all[ws])
	}
	return all
}

// newestPin returns the newest revision of a workspace that is pinned, or zero.
func (s *Store) newestPin(ws workspaceID) (newest vfs.Rev) {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	for rev := range s.reading.pins[ws] {
		newest = max(newest, rev)
	}
	return newest
}

// readable reports whether a revision of a workspace is kept.
func (s *Store) readable(ws workspaceID, rev vfs.Rev) bool {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.readableLocked(ws, rev)
}

func (s *Store) readableLocked(ws workspaceID, rev vfs.Rev) bool {
	kept := s.reading.kept
	return rev == s.head() || kept > 0 && rev >= kept && rev < s.head() || s.reading.pins[ws][rev] > 0
}

// changes reports whether the revision changes a workspace.
func (v *revision) changes(ws workspaceID) bool {
	return slices.ContainsFunc(v.cuts, func(c *cut) bool { return c.tree.id == ws })
}

// stateOf returns a revision under which the state is kept, or will be, that this revision leaves a workspace in: an earlier
// one that is pinned already, when nothing has changed since.
func (v *revision) stateOf(ws workspaceID) vfs.Rev {
	s := v.store
	changed, known := s.changed[ws]
	if !known {
		changed = s.opened
	}
	if old := s.newestPin(ws); old >= changed && !v.changes(ws) {
		return old
	}
	return v.rev
}

// pinWorkspace pins the state that the revision leaves a workspace in, and returns the revision under which it is kept.
func (v *revision) pinWorkspace(ws workspaceID) vfs.Rev {
	rev := v.stateOf(ws)
	v.pins = append(v.pins, pin{ws, rev, 1})
	return rev
}

// recoverPins finds what is pinned in a store that is being opened.
func (s *Store) recoverPins(r *reader) error {
	s.opened = r.rev
	err := r.snapshots(nil, func(sn storedSnapshot) error {
		s.reading.pins.add(pin{sn.ws, sn.rev, 1})
		return nil
	})
	if err != nil {
		return err
	}
	return r.merges(func(m storedMerge) error {
		s.reading.pins.add(pin{m.from, m.rev, 1})
		return nil
	})
}
