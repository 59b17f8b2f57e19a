package git

import (
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

var (
	checkoutOptions = []string{"b:", "B:", "d=detach", "f=force", "q=quiet", "t=track", "no-track", "ours", "theirs", "progress", "no-progress"}
	restoreOptions  = []string{"S=staged", "W=worktree", "s:=source", "q=quiet", "ours", "theirs"}
)

// checkout is git checkout.
func (g *call) checkout(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	for _, name := range []string{"b", "B"} {
		if f.has(name) {
			return g.startBranch(f.value(name), f.args, name == "B", f)
		}
	}
	if len(f.args) == 0 && len(f.paths) == 0 {
		f.args = []string{"HEAD"}
	}
	if len(f.paths) == 0 && len(f.args) == 1 {
		name, err := g.previous(f.args[0])
		if err != nil {
			return err
		}
		if name == "HEAD" && !f.has("d") {
			return g.checkoutHead(f)
		}
		if g.hasRef(heads+name) && !f.has("d") {
			return g.toBranch(name, f)
		}
		if c, ok := g.commitNamed(name); ok {
			return g.detach(name, c, f)
		}
		if g.isFile(f.args[0]) {
			return g.checkoutPaths(f)
		}
		if done, err := g.guessBranch(name, f); done || err != nil {
			return err
		}
		if f.dashed {
			return g.fatal("invalid reference: %s", name)
		}
	}
	return g.checkoutPaths(f)
}

// checkoutHead is a checkout of what HEAD is on: with -f it throws away what the user has changed.
func (g *call) checkoutHead(f *flags) error {
	branch, head, err := g.head()
	if err != nil || head.IsZero() {
		return err
	}
	if f.has("f") {
		if err := errors.Join(g.goTo(head, head, true, ""), g.endMerge()); err != nil {
			return err
		}
	}
	if err := g.carried(head, f); err != nil {
		return err
	}
	return g.sayTracking(branch, f)
}

// isFile says whether somebody who names this may mean a file.
func (g *call) isFile(name string) bool {
	if _, err := g.FS.Lstat(g.ctx, name); err == nil {
		return true
	}
	p, err := g.path(name)
	if err != nil {
		return false
	}
	x, err := g.readIndex()
	return err == nil && slices.ContainsFunc(x.Entries, func(e *index.Entry) bool { return scope{path: p}.holds(e.Name) })
}

// checkoutPaths takes files from the index, or from a commit when the first operand is one.
func (g *call) checkoutPaths(f *flags) error {
	args, t := f.args, taking{work: true, ours: f.has("ours"), theirs: f.has("theirs")}
	if len(args) > 0 && (f.dashed || len(args) > 1) {
		if _, ok := g.commitNamed(args[0]); ok {
			t.from, args = args[0], args[1:]
		} else if f.dashed {
			return g.fatal("invalid reference: %s", args[0])
		}
	}
	within, err := g.scopes(append(args, f.paths...))
	if err != nil {
		return err
	}
	t.staged, t.within = t.from != "", within
	n, err := g.take(t)
	if err == nil && !f.dashed && t.from == "" {
		g.say(f, "Updated %s from the index\n", counted(n, "path", "paths"))
	}
	return err
}

// restore is git restore.
func (g *call) restore(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	if len(within) == 0 {
		return g.fatal("you must specify path(s) to restore")
	}
	t := taking{
		from: f.value("s"), within: within, staged: f.has("S"), work: f.has("W") || !f.has("S"), exact: true,
		ours: f.has("ours"), theirs: f.has("theirs"),
	}
	if t.from == "" && f.has("S") {
		t.from = "HEAD"
	}
	_, err = g.take(t)
	return err
}

// taking says which files are taken from where to where.
type taking struct {
	from         string // a commit; "" for the index
	within       []scope
	staged, work bool // to where
	exact        bool // what is not there to take goes
	loose        bool // a path may name nothing
	ours, theirs bool // which side of a file that is not merged
}

// take puts files of a commit, or of the index, into the index and the work tree, and returns how many differed there.
func (g *call) take(t taking) (n int, err error) {
	x, err := g.lockedIndex()
	if err != nil {
		return 0, err
	}
	source := indexSnapshot(x)
	if t.from != "" {
		_, head, err := g.head()
		if err != nil {
			return 0, err
		}
		if t.from != "HEAD" || !head.IsZero() {
			c, ok := g.commitNamed(t.from)
			if !ok {
				return 0, g.fatal("could not resolve %s", t.from)
			}
			head = c.Hash
		}
		if source, err = g.commitSnapshot(head); err != nil {
			return 0, err
		}
	} else if err := g.chooseStage(x, source, t); err != nil {
		return 0, err
	}
	if !t.loose {
		known := x
		if t.from != "" && !t.exact { // what the commit has not is not taken
			known = &index.Index{}
		}
		if err := g.matchAll(source, known, t.within); err != nil {
			return 0, err
		}
	}
	if t.work {

		if n, err = g.takeWork(x, source, t); err != nil {
			return n, err
		}
	}
	if !t.staged {
		return n, nil
	}
	err = g.takeStaged(x, source, t)
	return n, errors.Join(err, g.saveIndex(x))
}

// chooseStage makes the side that was asked for what is taken of files that are not merged.
func (g *call) chooseStage(x *index.Index, source snapshot, t taking) error {
	for name, stages := range unmerged(x) {
		side := stages[stageOurs]
		if t.theirs {
			side = stages[stageTheirs]
		}
		switch {
		case !inScopes(t.within, name):
		case !t.ours && !t.theirs:
			return g.failure("path '%s' is unmerged", name)
		case side.none():
			return g.failure("path '%s' does not have %s version", name, map[bool]string{true: "their", false: "our"}[t.theirs])
		default:
			source[name] = side
		}
	}
	return nil
}

// takeWork brings files into the work tree.
func (g *call) takeWork(x *index.Index, source snapshot, t taking) (n int, err error) {
	now, err := g.workSnapshot(x)
	if err != nil {
		return 0, err
	}
	list := changes(now, source, t.within, false)
	for _, c := range list {
		if !validPath(c.path) {
			return 0, g.failure("invalid path '%s'", c.path)
		}
	}
	if t.exact {
		for _, c := range list {
			if c.to.none() {
				n++
				if err := g.removeFile(c.path); err != nil {
					return n, err
				}
			}
		}
	}
	for _, c := range list {
		if c.to.none() {
			continue
		}
		n++
		if err := g.writeFile(c.path, c.to); err != nil {
			return n, err
		}
	}
	return n, nil
}

// takeStaged brings files into the index.
func (g *call) takeStaged(x *index.Index, source snapshot, t taking) error {
	for name := range unmerged(x) {
		if inScopes(t.within, name) && (t.exact || !source[name].none()) {
			unstage(x, name)
		}
	}
	for _, c := range changes(indexSnapshot(x), source, t.within, false) {
		switch {
		case !c.to.none() && t.work: // which has it now
			if err := g.setEntry(x, c.path, c.to, nil); err != nil {
				return err
			}
		case !c.to.none():
			putEntry(x, c.path, c.to)
		case t.exact:
			unstage(x, c.path)
		}
	}
	return nil
}

// matchAll refuses a scope that no file is in.
func (g *call) matchAll(source snapshot, x *index.Index, within []scope) error {
	for _, s := range within {
		found := slices.ContainsFunc(x.Entries, func(e *index.Entry) bool { return s.holds(e.Name) })
		for name := range source {
			found = found || s.holds(name)
		}
		if !found && s.path != "" && !s.exclude {
			return g.failure("pathspec '%s' did not match any file(s) known to git", s.name)
		}
	}
	return nil
}
