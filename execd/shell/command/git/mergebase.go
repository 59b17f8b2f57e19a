package git

import (
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Colours of commits in a painting.
const (
	paintA     uint8 = 1 << iota // one commit has it
	paintB                       // the other has it
	paintStale                   // a commit that both have comes after it
)

// painting is the histories of two commits, as far as they differ.
type painting struct {
	onlyA, onlyB int              // commits that one has alone
	bases        []*object.Commit // the best that both have, the newest first
}

// paint walks two histories at once, the newest commit first, until all that is left to walk is behind what both have:
// how git finds where to merge from.
func (g *call) paint(a, b plumbing.Hash) (*painting, error) {
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}}
	colours := map[plumbing.Hash]uint8{a: paintA}
	colours[b] |= paintB
	if err := w.push(a, b); err != nil {
		return nil, err
	}
	var both []*object.Commit
	fresh := func(c *object.Commit) bool { return colours[c.Hash]&paintStale == 0 }
	// What one history alone seems to have may turn out to be the other's too, as long as newer commits are left.
	var oldest time.Time
	for slices.ContainsFunc(w.queue, fresh) || len(w.queue) > 0 && !oldest.IsZero() && !w.queue[0].Committer.When.Before(oldest) {
		if err := w.Step(w.ctx, 1); err != nil {
			return nil, err
		}
		c := w.queue[0]
		w.queue = w.queue[1:]
		delete(w.seen, c.Hash) // it comes again when its colour changes
		colour := colours[c.Hash]
		if (colour == paintA || colour == paintB) && (oldest.IsZero() || c.Committer.When.Before(oldest)) {
			oldest = c.Committer.When
		}
		if colour == paintA|paintB {
			both = append(both, c)
			colour |= paintStale
		}
		for _, parent := range c.ParentHashes {
			if colours[parent]&colour == colour {
				continue
			}
			colours[parent] |= colour
			if err := w.push(parent); err != nil {
				return nil, err
			}
		}
	}
	p := &painting{}
	for _, colour := range colours {
		switch colour {
		case paintA:
			p.onlyA++
		case paintB:
			p.onlyB++
		}
	}
	for _, c := range both {
		if colours[c.Hash]&paintStale == 0 && !slices.ContainsFunc(p.bases, func(o *object.Commit) bool { return o.Hash == c.Hash }) {
			p.bases = append(p.bases, c)
		}
	}
	return p, nil
}

// reaches says whether one commit is another or comes after it.
func (g *call) reaches(from, to plumbing.Hash) (bool, error) {
	if from.IsZero() || to.IsZero() {
		return false, nil
	}
	p, err := g.paint(from, to)
	return err == nil && slices.ContainsFunc(p.bases, func(c *object.Commit) bool { return c.Hash == to }), err
}

var mergeBaseOptions = []string{"a=all", "is-ancestor"}

// mergeBase is git merge-base.
func (g *call) mergeBase(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if len(f.args) != 2 {
		g.tell("usage: git merge-base [-a | --all] <commit> <commit>\n   or: git merge-base --is-ancestor <commit> <commit>\n")
		return tool.Exit(129)
	}
	var ends [2]plumbing.Hash
	for i, name := range f.args {
		c, ok := g.commitNamed(name)
		if !ok {
			return g.fatal("Not a valid object name %s", name)
		}
		ends[i] = c.Hash
	}
	if f.has("is-ancestor") {
		if ok, err := g.reaches(ends[1], ends[0]); err != nil || ok {
			return err
		}
		return tool.Exit(1)
	}
	p, err := g.paint(ends[0], ends[1])
	if err != nil {
		return err
	}
	if len(p.bases) == 0 {
		return tool.Exit(1)
	}
	for i, c := range p.bases {
		if i == 0 || f.has("a") {
			_ = g.print("%s\n", c.Hash)
		}
	}
	return nil
}
