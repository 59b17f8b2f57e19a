package casstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Forks and what they were made of are a family: each knows its parent, and at which revision it parted from it.
//
//	ws ──@7──▶ a ──@12──▶ b          b was made of a, and c of a, earlier. What both began with is a@9; so that is what
//	           └──@9───▶ c          changes of b and of c are told from when they are merged.
//
// A member that is removed stays known as long as two others were made of it, which have that in common. Otherwise those behind
// it become children of its own parent. So there are no more that are gone than that are there.
//
// Where a fork finds its records is another matter, which changes as layers are merged (flatten.go).

// family is all forks, while a revision changes them.
type family map[workspaceID]forkRecord

func (s *Store) family() family {
	f := make(family)
	s.forks.Range(func(ws, rec any) bool {
		f[ws.(workspaceID)] = rec.(forkRecord)
		return true
	})
	return f
}

// children are those that were made of a workspace.
func (f family) children(ws workspaceID) (list []workspaceID) {
	for child, rec := range f {
		if rec.parent.ws == ws {
			list = append(list, child)
		}
	}
	return list
}

// leaveFamily has a workspace that goes be forgotten, if no two others need to know that they came from it.
func (v *revision) leaveFamily(ws workspaceID) error {
	before := v.store.family()
	after := maps.Clone(before)
	for ws != 0 {
		rec, children := after[ws], after.children(ws)
		if len(children) > 1 {
			break
		}
		delete(after, ws)
		if len(children) == 1 {
			child := after[children[0]]
			child.parent = rec.parent
			after[children[0]] = child
			break
		}
		ws = rec.parent.ws // which has a child less, and may be gone itself
		if ws == 0 {
			break
		}
		switch err := v.store.isThere(ws); {
		case err == nil:
			ws = 0
		case !isNoWorkspace(err):
			return err
		}
	}
	for _, ws := range slices.Sorted(maps.Keys(before)) {
		switch rec, ok := after[ws]; {
		case !ok:
			v.kvs = append(v.kvs, kv{key: keyOfFork(ws)})
			v.unforked = append(v.unforked, ws)
		case rec.parent != before[ws].parent:
			v.setFork(ws, rec)
		}
	}
	return nil
}

// adoptFamily makes records of forks that were removed when nobody kept any of those: what others came from would be read
// without what showed through. The other forks still say what that was.
func (s *Store) adoptFamily(ctx context.Context) error {
	missing := make(family)
	for _, rec := range s.family() {
		for i, o := range rec.layers[:len(rec.layers)-1] {
			if _, known := s.forkOf(o.ws); known || !rec.plain() {
				break
			}
			missing[o.ws] = forkRecord{parent: rec.layers[i+1], layers: rec.layers[i+1:]}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return s.edit(ctx, func(v *revision) error {
		for _, ws := range slices.Sorted(maps.Keys(missing)) {
			v.setFork(ws, missing[ws])
		}
		return nil
	})
}

// forebears are a workspace, what it was made of, what that was, and so on. reading.mu is held.
func (s *Store) forebears(ws workspaceID) (list []origin) {
	for at := (origin{ws: ws, rev: newest}); at.ws != 0; {
		list = append(list, at)
		f, _ := s.forkOf(at.ws)
		if f.parent.ws >= at.ws { // none was there before what it was made of
			break
		}
		at = f.parent
	}
	return list
}

// commonForebear is the last state that two workspaces have in common. reading.mu is held.
func (s *Store) commonForebear(a, b workspaceID) (o origin, ok bool) {
	of := s.forebears(b)
	for _, o := range s.forebears(a) {
		if i := slices.IndexFunc(of, func(x origin) bool { return x.ws == o.ws }); i >= 0 {
			o.rev = min(o.rev, of[i].rev)
			return o, true
		}
	}
	return origin{}, false
}

// holdParent holds what a workspace was made of, which is zero when nothing is known of that.
func (s *Store) holdParent(ws workspaceID) origin {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	f, _ := s.forkOf(ws)
	if f.parent.ws != 0 {
		s.reading.pins.add(pin{f.parent.ws, f.parent.rev, 1})
	}
	return f.parent
}

// letGoOfParent is the end of holdParent.
func (s *Store) letGoOfParent(o origin) {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	if o.ws != 0 {
		s.reading.pins.add(pin{o.ws, o.rev, -1})
	}
}

// areKin reports whether two workspaces have anything in common.
func (s *Store) areKin(a, b workspaceID) bool {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	_, ok := s.commonForebear(a, b)
	return ok
}

// holdForebear holds the last state that two workspaces have in common. errUnrelated when they have none.
func (s *Store) holdForebear(a, b workspaceID) (h held, err error) {
	s.reading.mu.Lock()
	o, ok := s.commonForebear(a, b)
	if ok {
		h = held{pin: pin{ws: o.ws, rev: o.rev, n: 1}, origins: s.origins(o.ws)}
		s.reading.pins.addAll(h.pin, h.origins)
	}
	s.reading.mu.Unlock()
	if !ok {
		// Or it is not known any more, because one of them was removed.
		return h, cmp.Or(s.isThere(a), s.isThere(b), errUnrelated)
	}
	return h, nil
}
