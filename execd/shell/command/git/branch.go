package git

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

var branchOptions = []string{"d=delete", "D", "m=move", "M", "a=all", "r=remotes", "v=verbose", "show-current", "f=force", "l=list",
	"no-color", "q=quiet", "t=track", "no-track", "u:=set-upstream-to", "unset-upstream"}

// checkBranch refuses a name that no branch may have.
func (g *call) checkBranch(name string) error {
	if plumbing.NewBranchReferenceName(name).Validate() != nil || strings.HasPrefix(name, "-") {
		return g.fatal("'%s' is not a valid branch name", name)
	}
	return nil
}

// branch is git branch.
func (g *call) branch(args []string) error {
	f, err := g.flags(args)
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
	case f.has("u"), f.has("unset-upstream"):
		name := current
		if len(f.args) > 0 {
			name = f.args[0]
		}
		if f.has("u") {
			return g.setUpstream(name, f.value("u"))
		}
		return g.unsetUpstream(name)
	case f.has("d") || f.has("D"):
		return g.deleteBranches(f, current, head)
	case f.has("m") || f.has("M"):
		return g.renameBranch(f.args, current, f.has("M") || f.has("f"))
	case len(f.args) > 0 && !f.has("l"):
		return g.makeBranch(f, current, head)
	}
	return g.listBranches(current, head, f)
}

func (g *call) listBranches(current string, head plumbing.Hash, f *flags) error {
	var refs []*plumbing.Reference
	for _, p := range []struct {
		prefix string
		ok     bool
	}{{heads, !f.has("r")}, {remoteHeads, f.has("r") || f.has("a")}} {
		list, err := g.allReferences(p.prefix)
		if err != nil {
			return err
		}
		if p.ok {
			refs = append(refs, list...)
		}
	}
	detached := "(HEAD " + g.detachedFrom(head) + ")"
	width := 0
	for _, ref := range refs {
		width = max(width, len(ref.Name().Short()))
	}
	line := func(mark, name string, h plumbing.Hash) {
		if c, ok := g.peel(h); ok && f.has("v") {
			_ = g.print("%s %-*s %s %s%s\n", mark, width, name, g.short(h), g.trackingNote(name, h, len(f.given["v"]) > 1), subject(c.Message))
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
		if ref.Type() == plumbing.SymbolicReference {
			_ = g.print("%s %s -> %s\n", mark, name, ref.Target().Short())
			continue
		}
		line(mark, name, ref.Hash())
	}
	return nil
}

func (g *call) makeBranch(f *flags, current string, head plumbing.Hash) error {
	name, start := f.args[0], cmp.Or(current, "HEAD")
	if err := g.checkBranch(name); err != nil {
		return err
	}
	h, ok := head, !head.IsZero()
	if len(f.args) > 1 {
		start = f.args[1]
		h, ok = g.resolve(start)
	}
	c, isCommit := g.peel(h)
	if !ok || !isCommit {
		return g.fatal("not a valid object name: '%s'", start)
	}
	why := "branch: Created from " + start
	if g.hasRef(heads + name) {
		if !f.has("f") {
			return g.fatal("A branch named '%s' already exists.", name)
		}
		if name == current && g.root != "" {
			return g.fatal("Cannot force update the branch '%s' checked out at '%s'", name, g.root)
		}
		why = "branch: Reset to " + start
	}
	if err := g.setRef(heads+name, c.Hash, why); err != nil {
		return err
	}
	return g.trackStart(name, start, f)
}

func (g *call) deleteBranches(f *flags, current string, head plumbing.Hash) error {
	prefix, word := heads, "branch"
	if f.has("r") {
		prefix, word, current = remoteHeads, "remote-tracking branch", ""
	}
	force := f.has("D") || f.has("f") || f.has("r")
	for _, name := range f.args {
		ref, err := g.store.Reference(plumbing.ReferenceName(prefix + name))
		if err != nil {
			g.tell("error: %s '%s' not found.\n", word, name)
			g.Status = 1
			continue
		}
		if name == current && g.root != "" {
			g.tell("error: Cannot delete branch '%s' checked out at '%s'\n", name, g.root)
			g.Status = 1
			continue
		}
		merged := force
		if !force {
			if merged, err = g.reaches(g.mergedInto(name, head), ref.Hash()); err != nil {
				return err
			}
		}
		if !merged {
			g.tell("error: The branch '%s' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D %s'.\n", name, name)
			g.Status = 1
			continue
		}
		if err := g.removeRef(prefix + name); err != nil {
			return err
		}
		if !f.has("r") {
			if err := g.forgetBranch(name); err != nil {
				return err
			}
		}
		if !f.has("q") {
			_ = g.print("Deleted %s %s (was %s).\n", word, name, g.short(ref.Hash()))
		}
	}
	return nil
}

// mergedInto is the commit that a branch must be in to be no loss: that of its upstream, or HEAD's.
func (g *call) mergedInto(name string, head plumbing.Hash) plumbing.Hash {
	if up, ok := g.upstream(name); ok {
		if h, ok := g.follow(plumbing.ReferenceName(up.ref)); ok {
			return h
		}
	}
	return head
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
		if from == to {
			return nil
		}
		if err := g.renameRef(from, to, ref.Hash()); err != nil {
			return err
		}
	}
	if from != current {
		return nil
	}
	if err := g.putReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(heads+to)), nil); err != nil {
		return err
	}
	h, why := ref.Hash(), renamed(from, to)
	if err != nil {
		return nil // there was no commit on it
	}
	return errors.Join(g.logRef("HEAD", h, plumbing.ZeroHash, why), g.logRef("HEAD", plumbing.ZeroHash, h, why))
}

// renamed is what logs say of a branch that has another name now.
func renamed(from, to string) string { return "Branch: renamed " + heads + from + " to " + heads + to }

// renameRef gives a branch another name, with its log and its upstream. The new one is there before the old one goes,
// unless one is below the other.
func (g *call) renameRef(from, to string, h plumbing.Hash) error {
	lines, err := g.readLog(heads + from)
	if err != nil {
		return err
	}
	above := strings.HasPrefix(to, from+"/") || strings.HasPrefix(from, to+"/")
	if above {
		if err := g.removeRef(heads + from); err != nil {
			return err
		}
	}
	if err := g.putReference(plumbing.NewHashReference(plumbing.ReferenceName(heads+to), h), nil); err != nil {
		return err
	}
	if !above {
		if err := g.removeRef(heads + from); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		if err := g.writeLog(heads+to, lines); err != nil {
			return err
		}
	}
	if err := g.logRef(heads+to, h, h, renamed(from, to)); err != nil {
		return err
	}
	return g.renameBranchConfig(from, to)
}
