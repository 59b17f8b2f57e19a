package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	heads = "refs/heads/"
	tags  = "refs/tags/"
)

func (g *call) hasRef(name string) bool {
	_, err := g.store.Reference(plumbing.ReferenceName(name))
	return err == nil
}

func (g *call) setRef(name string, h plumbing.Hash) error {
	return g.store.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), h))
}

// checkBranch refuses a name that no branch may have.
func (g *call) checkBranch(name string) error {
	if plumbing.NewBranchReferenceName(name).Validate() != nil || strings.HasPrefix(name, "-") {
		return g.fatal("'%s' is not a valid branch name", name)
	}
	return nil
}

// branch is git branch.
func (g *call) branch(args []string) error {
	f, err := g.flags(args, "d=delete", "D", "m=move", "M", "a=all", "r=remotes", "v=verbose", "show-current", "f=force", "l=list", "no-color", "q=quiet")
	if err != nil {
		return err
	}
	current, head, err := g.head()
	if err != nil {
		return err
	}
	switch {
	case f.has("show-current"):
		if current != "" {
			return g.print("%s\n", current)
		}
		return nil
	case f.has("d") || f.has("D"):
		return g.deleteBranches(f.args, current, head, f.has("D") || f.has("f"))
	case f.has("m") || f.has("M"):
		return g.renameBranch(f.args, current, f.has("M") || f.has("f"))
	case len(f.args) > 0 && !f.has("l"):
		return g.makeBranch(f.args, f.has("f"))
	}
	return g.listBranches(current, head, f)
}

func (g *call) listBranches(current string, head plumbing.Hash, f *flags) error {
	var refs []*plumbing.Reference
	for _, p := range []struct {
		prefix string
		ok     bool
	}{{heads, !f.has("r")}, {"refs/remotes/", f.has("r") || f.has("a")}} {
		list, err := g.references(p.prefix)
		if err != nil {
			return err
		}
		if p.ok {
			refs = append(refs, list...)
		}
	}
	detached := "(HEAD detached at " + g.short(head) + ")"
	width := 0
	for _, ref := range refs {
		width = max(width, len(ref.Name().Short()))
	}
	line := func(mark, name string, h plumbing.Hash) {
		if c, ok := g.peel(h); ok && f.has("v") {
			_ = g.print("%s %-*s %s %s\n", mark, width, name, g.short(h), subject(c.Message))
		} else {
			_ = g.print("%s %s\n", mark, name)
		}
	}
	if current == "" && !f.has("r") {
		width = max(width, len(detached))
		line("*", detached, head)
	}
	for _, ref := range refs {
		name := ref.Name().Short()
		if f.has("a") && !f.has("r") && ref.Name().IsRemote() {
			name = "remotes/" + name
		}
		if len(f.args) > 0 && !slices.ContainsFunc(f.args, func(p string) bool { return matchGlob(p, name) }) {
			continue
		}
		mark := " "
		if ref.Name().IsBranch() && name == current {
			mark = "*"
		}
		line(mark, name, ref.Hash())
	}
	return nil
}

func (g *call) makeBranch(args []string, force bool) error {
	name, start := args[0], "HEAD"
	if err := g.checkBranch(name); err != nil {
		return err
	}
	if len(args) > 1 {
		start = args[1]
	}
	h, ok := g.resolve(start)
	c, isCommit := g.peel(h)
	if !ok || !isCommit {
		return g.fatal("not a valid object name: '%s'", g.startName(start))
	}
	if g.hasRef(heads+name) && !force {
		return g.fatal("A branch named '%s' already exists.", name)
	}
	return g.setRef(heads+name, c.Hash)
}

// startName is how git speaks of a start that is not there: by the branch.
func (g *call) startName(start string) string {
	if branch, _, err := g.head(); err == nil && start == "HEAD" && branch != "" {
		return branch
	}
	return start
}

func (g *call) deleteBranches(names []string, current string, head plumbing.Hash, force bool) error {
	for _, name := range names {
		ref, err := g.store.Reference(plumbing.ReferenceName(heads + name))
		if err != nil {
			g.tell("error: branch '%s' not found.\n", name)
			g.Status = 1
			continue
		}
		if name == current {
			g.tell("error: Cannot delete branch '%s' checked out at '%s'\n", name, g.root)
			g.Status = 1
			continue
		}
		if ok, err := g.reaches(head, ref.Hash()); err != nil {
			return err
		} else if !ok && !force {
			g.tell("error: The branch '%s' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D %s'.\n", name, name)
			g.Status = 1
			continue
		}
		if err := g.store.RemoveReference(ref.Name()); err != nil {
			return err
		}
		_ = g.print("Deleted branch %s (was %s).\n", name, g.short(ref.Hash()))
	}
	return nil
}

// reaches says whether one commit is another or comes after it.
func (g *call) reaches(from, to plumbing.Hash) (bool, error) {
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}}
	if from.IsZero() {
		return false, nil
	}
	if err := w.push(from); err != nil {
		return false, err
	}
	for {
		c, err := w.next()
		if err != nil || c == nil {
			return false, err
		}
		if c.Hash == to {
			return true, nil
		}
	}
}

func (g *call) renameBranch(args []string, current string, force bool) error {
	if len(args) == 0 {
		return g.fatal("branch name required")
	}
	from, to := current, args[len(args)-1]
	if len(args) > 1 {
		from = args[0]
	}
	if err := g.checkBranch(to); err != nil {
		return err
	}
	if g.hasRef(heads+to) && !force && from != to {
		return g.fatal("A branch named '%s' already exists.", to)
	}
	ref, err := g.store.Reference(plumbing.ReferenceName(heads + from))
	if err != nil && from != current {
		return g.fatal("No branch named '%s'.", from)
	}
	if err == nil {
		if err := g.setRef(heads+to, ref.Hash()); err != nil {
			return err
		}
		if from != to {
			if err := g.store.RemoveReference(ref.Name()); err != nil {
				return err
			}
		}
	}
	if from != current {
		return nil
	}
	return g.store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(heads+to)))
}
