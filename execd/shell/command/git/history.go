package git

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// history lists commits that options choose, the newest first.
func (g *call) history(revs []string, within []scope, f *flags) ([]*object.Commit, error) {
	limit, skip := -1, 0
	for name, to := range map[string]*int{"n": &limit, "skip": &skip} {
		if v := f.value(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, g.fatal("'%s': not an integer", v)
			}
			*to = n
		}
	}
	from, not, err := g.ends(revs, f.has("all"))
	if err != nil {
		return nil, err
	}
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}, hidden: map[plumbing.Hash]bool{}, first: f.has("first-parent")}
	filter, err := g.logFilter(f, within)
	if err != nil {
		return nil, err
	}
	w.within = within
	if err := w.hide(not); err != nil {
		return nil, err
	}
	if err := w.push(from...); err != nil {
		return nil, err
	}
	var list []*object.Commit
	for limit < 0 || len(list) < limit {
		c, err := w.next()
		if err != nil || c == nil {
			return ordered(list, f), err
		}
		ok, err := filter.wanted(c)
		if err != nil {
			return nil, err
		}
		if ok && skip > 0 {
			skip--
		} else if ok {
			list = append(list, c)
		}
	}
	return ordered(list, f), nil
}

func ordered(list []*object.Commit, f *flags) []*object.Commit {
	if f.has("reverse") {
		slices.Reverse(list)
	}
	return list
}

// ends returns the commits that a log begins at and those that it leaves out, with all before them.
func (g *call) ends(revs []string, all bool) (from, not []plumbing.Hash, err error) {
	add := func(name string, to *[]plumbing.Hash) error {
		c, err := g.commitOf(name)
		if err == nil {
			*to = append(*to, c.Hash)
		}
		return err
	}
	for _, r := range revs {
		parts := rangeParts(r)
		switch {
		case len(parts) == 2 && strings.Contains(r, "..."):
			err = g.symmetric(parts, &from, &not)
		case len(parts) == 2:
			err = errors.Join(add(parts[0], &not), add(parts[1], &from))
		case strings.HasPrefix(r, "^"):
			err = add(r[1:], &not)
		default:
			err = add(r, &from)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	branch, head, err := g.head()
	if err != nil {
		return nil, nil, err
	}
	if all {
		refs, err := g.references("refs/")
		if err != nil {
			return nil, nil, err
		}
		for _, ref := range refs {
			if c, ok := g.peel(ref.Hash()); ok {
				from = append(from, c.Hash)
			}
		}
	}
	if len(from) == 0 {
		if head.IsZero() {
			return nil, nil, g.fatal("your current branch '%s' does not have any commits yet", branch)
		}
		from = append(from, head)
	}
	return from, not, nil
}

// symmetric adds the ends of a...b: what one of the two has alone.
func (g *call) symmetric(parts []string, from, not *[]plumbing.Hash) error {
	var ends [2]plumbing.Hash
	for i, name := range parts {
		c, err := g.commitOf(name)
		if err != nil {
			return err
		}
		ends[i] = c.Hash
	}
	p, err := g.paint(ends[0], ends[1])
	if err != nil {
		return err
	}
	*from = append(*from, ends[:]...)
	for _, c := range p.bases {
		*not = append(*not, c.Hash)
	}
	return nil
}

// walk goes through history, the newest commit first; those of one time in the order in which they were found.
type walk struct {
	*call
	queue  []*object.Commit
	seen   map[plumbing.Hash]bool
	hidden map[plumbing.Hash]bool
	first  bool // only first parents
	within []scope
}

func (w *walk) push(all ...plumbing.Hash) error {
	for _, h := range all {
		if w.seen[h] || w.hidden[h] {
			continue
		}
		w.seen[h] = true
		c, err := w.commitAt(h)
		if err != nil {
			return err
		}
		i := len(w.queue)
		for i > 0 && w.queue[i-1].Committer.When.Before(c.Committer.When) {
			i--
		}
		w.queue = slices.Insert(w.queue, i, c)
	}
	return nil
}

// next returns the next commit, nil after the last.
func (w *walk) next() (*object.Commit, error) {
	if len(w.queue) == 0 {
		return nil, nil
	}
	if err := w.Step(w.ctx, 1); err != nil {
		return nil, err
	}
	c := w.queue[0]
	w.queue = w.queue[1:]
	parents := c.ParentHashes
	if w.first && len(parents) > 1 {
		parents = parents[:1]
	}
	if len(w.within) > 0 && len(parents) > 1 {
		// What a merge has as one of its parents has it, came from there.
		for _, p := range parents {
			same, err := w.sameAs(c, p, w.within)
			if err != nil {
				return nil, err
			}
			if same {
				parents = []plumbing.Hash{p}
				break
			}
		}
	}
	return c, w.push(parents...)
}

// hide takes commits and all before them out.
func (w *walk) hide(all []plumbing.Hash) error {
	for len(all) > 0 {
		h := all[len(all)-1]
		all = all[:len(all)-1]
		if w.hidden[h] {
			continue
		}
		w.hidden[h] = true
		c, err := w.commitAt(h)
		if err != nil {
			return err
		}
		all = append(all, c.ParentHashes...)
	}
	return nil
}
