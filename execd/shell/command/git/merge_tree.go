package git

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// merging brings two snapshots together that were one.
type merging struct {
	*call
	names  [2]string // of ours and theirs, as people know them
	said   []string  // lines that people are told when it is done
	target snapshot  // what is to be in the work tree, with marks where the sides clash
	clash  []clash
}

// clash is a file that the merge could not decide on, as the base and the sides have it.
type clash struct {
	path               string
	base, ours, theirs entry
}

// maxBases bounds how deep the common commits of common commits are merged.
const maxBases = 20

// baseOf is the snapshot that two histories have in common: that of the best common commit, or when there are several, what
// a merge of them makes.
func (g *call) baseOf(bases []*object.Commit, depth int) (snapshot, error) {
	if len(bases) == 0 || depth > maxBases {
		return snapshot{}, nil
	}
	all, err := g.treeSnapshot(bases[len(bases)-1].TreeHash)
	if err != nil {
		return nil, err
	}
	for i := len(bases) - 2; i >= 0; i-- {
		p, err := g.paint(bases[i+1].Hash, bases[i].Hash)
		if err != nil {
			return nil, err
		}
		inner, err := g.baseOf(p.bases, depth+1)
		if err != nil {
			return nil, err
		}
		next, err := g.treeSnapshot(bases[i].TreeHash)
		if err != nil {
			return nil, err
		}
		m := &merging{call: g, names: [2]string{"Temporary merge branch 1", "Temporary merge branch 2"}}
		if err := m.merge(inner, all, next); err != nil {
			return nil, err
		}
		all = m.target
	}
	return all, nil
}

// merge decides on every file. A file that only one side has changed is as that side has it.
func (m *merging) merge(base, ours, theirs snapshot) error {
	base, ours, theirs = maps.Clone(base), maps.Clone(ours), maps.Clone(theirs)
	if err := errors.Join(m.followRenames(base, ours, theirs), m.followRenames(base, theirs, ours)); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, s := range []snapshot{base, ours, theirs} {
		for name := range s {
			names[name] = true
		}
	}
	m.target = snapshot{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := m.Step(m.ctx, 1); err != nil {
			return err
		}
		b, o, t := base[name], ours[name], theirs[name]
		switch {
		case o.is(t), b.is(t):
			m.keep(name, o)
		case b.is(o):
			m.keep(name, t)
		default:
			if err := m.decide(clash{name, b, o, t}); err != nil {
				return err
			}
		}
	}
	m.partFromDirs(ours)
	return nil
}

// followRenames gives a file that one side has moved, as it was, its new name on the other side too, where it was changed.
func (m *merging) followRenames(base, moved, changed snapshot) error {
	list, err := m.diffed(base, moved, nil)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.old == "" || changed[c.old].none() || changed[c.old].is(base[c.old]) || !changed[c.path].none() {
			continue
		}
		base[c.path], changed[c.path] = base[c.old], changed[c.old]
		delete(base, c.old)
		delete(changed, c.old)
	}
	return nil
}

func (m *merging) keep(name string, e entry) {
	if !e.none() {
		m.target[name] = e
	}
}

func (m *merging) say(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

// tellAll tells people what was decided.
func (m *merging) tellAll() {
	for _, line := range m.said {
		_ = m.print("%s", line)
	}
}

// decide merges a file that both sides have changed, each in its way.
func (m *merging) decide(c clash) error {
	if c.ours.none() || c.theirs.none() {
		deleted, left, e := m.names[0], m.names[1], c.theirs
		if c.theirs.none() {
			deleted, left, e = m.names[1], m.names[0], c.ours
		}
		m.target[c.path] = e
		m.clash = append(m.clash, c)
		m.say("CONFLICT (modify/delete): %s deleted in %s and modified in %s.  Version %s of %s left in tree.\n", c.path, deleted, left, left, c.path)
		return nil
	}
	if !text(c.ours.mode) || !text(c.theirs.mode) {
		m.target[c.path] = c.ours
		m.clash = append(m.clash, c)
		kind := "content"
		if c.base.none() {
			kind = "add/add"
		}
		m.say("CONFLICT (%s): Merge conflict in %s\n", kind, c.path)
		return nil
	}
	return m.content(c)
}

// text says whether files of a mode are merged line by line.
func text(mode filemode.FileMode) bool { return mode.IsRegular() || mode == filemode.Executable }

// content merges the bytes of a file, and its mode.
func (m *merging) content(c clash) error {
	var data [3][]byte
	for i, e := range []entry{c.base, c.ours, c.theirs} {
		if !text(e.mode) {
			continue
		}
		var err error
		if data[i], err = m.blob(e.hash); err != nil {
			return err
		}
	}
	merged := entry{mode: c.ours.mode, hash: c.ours.hash}
	if c.base.mode == c.ours.mode {
		merged.mode = c.theirs.mode
	}
	clashes := 0
	switch {
	case c.ours.hash == c.theirs.hash || c.base.hash == c.theirs.hash:
	case c.base.hash == c.ours.hash:
		merged.hash = c.theirs.hash
	case slices.ContainsFunc(data[:], isBinary):
		clashes = 1
		m.say("warning: Cannot merge binary files: %s (%s vs. %s)\nAuto-merging %s\n", c.path, m.names[0], m.names[1], c.path)
	default:
		m.say("Auto-merging %s\n", c.path)
		var both []byte
		err := m.Aside(func() (err error) {
			both, clashes, err = m.mergeText(data[0], data[1], data[2], m.names)
			return err
		})
		if err != nil {
			return err
		}
		if merged.hash, err = m.putBlob(both); err != nil {
			return err
		}
	}
	m.target[c.path] = merged
	if clashes > 0 {
		kind := "content"
		if c.base.none() {
			kind = "add/add"
		}
		m.say("CONFLICT (%s): Merge conflict in %s\n", kind, c.path)
		m.clash = append(m.clash, c)
	}
	return nil
}

// partFromDirs moves files aside that have the name of a directory.
func (m *merging) partFromDirs(ours snapshot) {
	dirs := map[string]bool{}
	for name := range m.target {
		for i := range len(name) {
			if name[i] == '/' {
				dirs[name[:i]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.target)) {
		if !dirs[name] {
			continue
		}
		e, side := m.target[name], 1
		if ours[name].is(e) {
			side = 0
		}
		base := name + "~" + strings.ReplaceAll(m.names[side], "/", "_")
		aside := base
		for i := 0; !m.target[aside].none() || dirs[aside]; i++ {
			aside = fmt.Sprintf("%s_%d", base, i)
		}
		delete(m.target, name)
		m.target[aside] = e
		m.clash = slices.DeleteFunc(m.clash, func(c clash) bool { return c.path == name })
		c := clash{path: aside, theirs: e}
		if side == 0 {
			c.ours, c.theirs = e, entry{}
		}
		m.clash = append(m.clash, c)
		m.say("CONFLICT (file/directory): directory in the way of %s from %s; moving it to %s instead.\n", name, m.names[side], aside)
	}
}

// apply brings what a merge made into the index and the work tree, which have ours, and notes in the index what clashed.
func (m *merging) apply(ours snapshot) error {
	x, err := m.lockedIndex()
	if err != nil {
		return err
	}
	u := &unpack{call: m.call, x: x, staged: indexSnapshot(x), write: map[string]entry{}}
	if err := u.careful(ours, m.target, "merge"); err != nil {
		return err
	}
	err = u.apply()
	for _, c := range m.clash {
		setStages(x, c.path, c.base, c.ours, c.theirs)
	}
	return errors.Join(err, m.saveIndex(x))
}

// snapshotTree stores a snapshot as trees.
func (g *call) snapshotTree(s snapshot) (plumbing.Hash, error) {
	return g.writeTree(indexOf(s))
}
