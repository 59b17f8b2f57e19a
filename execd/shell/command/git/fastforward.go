package git

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// merge is git merge, when it is a fast-forward.
func (g *call) merge(args []string) error {
	f, err := g.flags(args, "ff", "ff-only", "q=quiet", "no-stat", "stat", "no-edit", "m:")
	if err != nil {
		return err
	}
	if len(f.args) != 1 {
		return g.fatal("one branch to merge is needed")
	}
	c, ok := g.commitNamed(f.args[0])
	if !ok {
		g.tell("merge: %s - not something we can merge\n", f.args[0])
		return tool.Exit(1)
	}
	_, head, err := g.head()
	if err != nil {
		return err
	}
	if there, err := g.reaches(head, c.Hash); err != nil || there {
		if err == nil && !f.has("q") {
			err = g.print("Already up to date.\n")
		}
		return err
	}
	if ok, err := g.reaches(c.Hash, head); err != nil {
		return err
	} else if !ok && !head.IsZero() {
		return g.fatal("Not possible to fast-forward, aborting.")
	}
	if !f.has("q") {
		_ = g.print("Updating %s..%s\n", g.short(head), g.short(c.Hash))
	}
	_ = g.Out.Flush()
	if err := g.goTo(head, c.Hash, false, "merge"); err != nil {
		return err
	}
	if err := g.setRef("ORIG_HEAD", head); err != nil {
		return err
	}
	if err := g.setHead(c.Hash); err != nil || f.has("q") {
		return err
	}
	_ = g.print("Fast-forward\n")
	if f.has("no-stat") {
		return nil
	}
	return g.fastForwarded(head, c.Hash)
}

func (g *call) fastForwarded(from, to plumbing.Hash) error {
	old, err := g.commitSnapshot(from)
	if err != nil {
		return err
	}
	now, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	list := changes(old, now, nil, true)
	if err := g.stat(list); err != nil {
		return err
	}
	return g.summary(list)
}
