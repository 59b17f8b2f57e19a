package git

import "github.com/go-git/go-git/v5/plumbing"

var resetOptions = []string{"soft", "mixed", "hard", "q=quiet"}

// reset is git reset.
func (g *call) reset(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	revs, within, err := g.revisionsAndPaths(f)
	if err != nil {
		return err
	}
	name := "HEAD"
	if len(revs) > 0 {
		name = revs[0]
	}
	if len(within) > 0 {
		for _, how := range []string{"soft", "hard"} {
			if f.has(how) {
				return g.fatal("Cannot do %s reset with paths.", how)
			}
		}
		if _, err := g.take(taking{from: name, within: within, staged: true, exact: true, loose: true}); err != nil {
			return err
		}
		return g.unstagedAfter(f)
	}
	_, head, err := g.head()
	if err != nil {
		return err
	}
	to := head
	if c, ok := g.commitNamed(name); ok {
		to = c.Hash
	} else if len(revs) > 0 || !head.IsZero() {
		return g.badRevision(name)
	}
	if f.has("soft") {
		x, err := g.readIndex()
		if err != nil {
			return err
		}
		if note, err := g.readNote("MERGE_HEAD"); err != nil || note != "" || len(unmerged(x)) > 0 {
			return g.fatal("Cannot do a soft reset in the middle of a merge.")
		}
	}
	return g.resetTo(head, to, name, f)
}

func (g *call) resetTo(head, to plumbing.Hash, name string, f *flags) error {
	if f.has("hard") {
		if err := g.goTo(head, to, true, ""); err != nil {
			return err
		}
	} else if !f.has("soft") {
		if err := g.takeAll(to); err != nil {
			return err
		}
	}
	if !head.IsZero() {
		if err := g.setRef(origHead, head, ""); err != nil {
			return err
		}
	}
	if !to.IsZero() {
		if err := g.moveHead(head, to, "reset: moving to "+name); err != nil {
			return err
		}
	}
	if err := g.endMerge(); err != nil {
		return err
	}
	if c, err := g.commitAt(to); err == nil && f.has("hard") && !f.has("q") {
		return g.print("HEAD is now at %s %s\n", g.short(to), subject(c.Message))
	}
	if f.has("hard") || f.has("soft") {
		return nil
	}
	return g.unstagedAfter(f)
}

// takeAll makes the index that of a commit.
func (g *call) takeAll(to plumbing.Hash) error {
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	target, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	for name := range unmerged(x) {
		unstage(x, name)
	}
	for _, c := range changes(indexSnapshot(x), target, nil, false) {
		if c.to.none() {
			unstage(x, c.path)
		} else {
			putEntry(x, c.path, c.to)
		}
	}
	return g.saveIndex(x)
}

// unstagedAfter lists what the work tree has that the index has not.
func (g *call) unstagedAfter(f *flags) error {
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
	}
	list := changes(indexSnapshot(x), now, nil, false)
	if len(list) == 0 || f.has("q") {
		return nil
	}
	_ = g.print("Unstaged changes after reset:\n")
	for _, c := range list {
		_ = g.print("%c\t%s\n", c.letter(), c.path)
	}
	return nil
}
