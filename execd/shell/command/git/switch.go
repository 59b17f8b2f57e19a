package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var switchOptions = []string{"c:=create", "C:=force-create", "d=detach", "f=force=discard-changes", "q=quiet", "t=track", "no-track", "no-guess",
	"progress", "no-progress"}

// switchBranch is git switch.
func (g *call) switchBranch(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if going, err := g.underway(); err != nil {
		return err
	} else if going.verb != "" {
		return g.fatal("cannot switch branch while %s\nConsider \"git %s --quit\" or \"git worktree add\".", going.doing(), going.verb)
	}
	for _, name := range []string{"c", "C"} {
		if f.has(name) {
			return g.startBranch(f.value(name), f.args, name == "C", f)
		}
	}
	if len(f.args) == 0 && f.has("d") {
		f.args = []string{"HEAD"}
	}
	if len(f.args) != 1 {
		return g.fatal("missing branch or commit argument")
	}
	name, err := g.previous(f.args[0])
	if err != nil {
		return err
	}
	if g.hasRef(heads+name) && !f.has("d") {
		return g.toBranch(name, f)
	}
	c, ok := g.commitNamed(name)
	if !ok {
		if done, err := g.guessBranch(name, f); done || err != nil {
			return err
		}
		return g.fatal("invalid reference: %s", name)
	}
	if !f.has("d") {
		g.tell("fatal: a branch is expected, got commit '%s'\n"+
			"hint: If you want to detach HEAD at the commit, try again with the --detach option.\n", name)
		return tool.Exit(statusFatal)
	}
	return g.detach(name, c, f)
}

func (g *call) commitNamed(name string) (*object.Commit, bool) {
	h, ok := g.resolve(name)
	if !ok {
		return nil, false
	}
	return g.peel(h)
}

// leaving begins what the log of HEAD says of a switch.
const leaving = "checkout: moving from "

// previous is what was left n switches ago for "@{-n}", by the log of HEAD, or for "-" last. Any other name is as it is.
func (g *call) previous(name string) (string, error) {
	if name == "-" {
		name = "@{-1}"
	}
	digits, ok := strings.CutPrefix(name, "@{-")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, "}"))
	if !ok || err != nil {
		return name, nil
	}
	if name, ok := g.left(n); ok {
		return name, nil
	}
	return "", g.fatal("invalid reference: %s", name)
}

// left is what HEAD was on n switches ago.
func (g *call) left(n int) (string, bool) {
	lines, err := g.readLog("HEAD")
	if err != nil {
		return "", false
	}
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l.why, leaving); ok {
			if n--; n == 0 {
				from, _, _ := strings.Cut(rest, " ")
				return from, true
			}
		}
	}
	return "", false
}

// detachedFrom says by what a HEAD that is on no branch got there, by its log, and whether it is still there.
func (g *call) detachedFrom(head plumbing.Hash) string {
	lines, err := g.readLog("HEAD")
	i := slices.IndexFunc(lines, func(l logLine) bool { return strings.HasPrefix(l.why, leaving) })
	if err != nil || i < 0 {
		return "detached at " + g.short(head)
	}
	at, name := lines[i].new, lines[i].why[strings.LastIndexByte(lines[i].why, ' ')+1:]
	shown := g.short(at)
	if full, ok := g.refName(name); ok && full != "HEAD" {
		if h, ok := g.follow(plumbing.ReferenceName(full)); ok {
			if c, ok := g.peel(h); ok && c.Hash == at {
				shown = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(full, tags), remoteHeads), heads)
			}
		}
	}
	if at != head {
		return "detached from " + shown
	}
	return "detached at " + shown
}

// whySwitch is what the log of HEAD says of a switch.
func whySwitch(branch string, head plumbing.Hash, to string) string {
	if branch == "" {
		branch = head.String()
	}
	return leaving + branch + " to " + to
}

// guessBranch makes a branch of the one that a single remote has by that name, and switches to it.
func (g *call) guessBranch(name string, f *flags) (done bool, err error) {
	if f.has("d") || f.has("no-guess") || name == "" {
		return false, nil
	}
	refs, err := g.references(remoteHeads)
	if err != nil {
		return false, err
	}
	var found []string
	for _, ref := range refs {
		short := strings.TrimPrefix(ref.Name().String(), remoteHeads)
		if _, branch, ok := strings.Cut(short, "/"); ok && branch == name {
			found = append(found, short)
		}
	}
	if len(found) == 0 {
		return false, nil
	}
	if len(found) > 1 {
		return true, g.fatal("'%s' matched multiple (%d) remote tracking branches", name, len(found))
	}
	return true, g.startBranch(name, found, false, f)
}

func (g *call) toBranch(name string, f *flags) error {
	current, head, err := g.head()
	if err != nil {
		return err
	}
	ref, err := g.store.Reference(plumbing.ReferenceName(heads + name))
	if err != nil {
		return err
	}
	if err := g.goTo(head, ref.Hash(), f.has("f"), "checkout"); err != nil {
		return err
	}
	if err := g.carried(ref.Hash(), f); err != nil {
		return err
	}
	if current == name {
		g.say(f, "Already on '%s'\n", name)
		if err := g.logRef("HEAD", head, head, whySwitch(current, head, name)); err != nil {
			return err
		}
		return g.sayTracking(name, f)
	}
	if current == "" && head != ref.Hash() {
		if c, err := g.commitAt(head); err == nil {
			g.say(f, "Previous HEAD position was %s %s\n", g.short(head), subject(c.Message))
		}
	}
	if err := g.switchHead(name, ref.Hash(), whySwitch(current, head, name)); err != nil {
		return err
	}
	if err := g.endMerge(); err != nil {
		return err
	}
	g.say(f, "Switched to branch '%s'\n", name)
	return g.sayTracking(name, f)
}

// carried lists the changes of the user's that a switch to a commit has kept.
func (g *call) carried(to plumbing.Hash, f *flags) error {
	if f.has("q") {
		return nil
	}
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	target, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
	}
	return g.names(changes(target, now, nil, false), true)
}

// say is tell, unless it is to be quiet.
func (g *call) say(f *flags, format string, args ...any) {
	if !f.has("q") {
		g.tell(format, args...)
	}
}

// startBranch makes a branch and switches to it.
func (g *call) startBranch(name string, args []string, force bool, f *flags) error {
	if err := g.checkBranch(name); err != nil {
		return err
	}
	if g.hasRef(heads+name) && !force {
		return g.fatal("A branch named '%s' already exists.", name)
	}
	branch, head, err := g.head()
	if err != nil {
		return err
	}
	to, start := head, "HEAD"
	if len(args) > 0 {
		start = args[0]
		c, ok := g.commitNamed(args[0])
		if !ok {
			return g.fatal("'%s' is not a commit and a branch '%s' cannot be created from it", args[0], name)
		}
		to = c.Hash
	}
	if err := g.goTo(head, to, f.has("f"), "checkout"); err != nil {
		return err
	}
	if to != head {
		if err := g.carried(to, f); err != nil {
			return err
		}
	}
	if !to.IsZero() {
		if err := g.setRef(heads+name, to, "branch: Created from "+start); err != nil {
			return err
		}
	}
	if err := g.switchHead(name, to, whySwitch(branch, head, name)); err != nil {
		return err
	}
	if to != head {
		if err := g.endMerge(); err != nil {
			return err
		}
	}
	g.say(f, "Switched to a new branch '%s'\n", name)
	return g.trackStart(name, start, f)
}

// detach puts HEAD on a commit.
func (g *call) detach(name string, c *object.Commit, f *flags) error {
	branch, head, err := g.head()
	if err != nil {
		return err
	}
	if err := g.goTo(head, c.Hash, f.has("f"), "checkout"); err != nil {
		return err
	}
	if err := g.carried(c.Hash, f); err != nil {
		return err
	}
	if err := g.switchHead("", c.Hash, whySwitch(branch, head, name)); err != nil {
		return err
	}
	if err := g.endMerge(); err != nil {
		return err
	}
	switch {
	case branch == "":
		if old, err := g.commitAt(head); err == nil && head != c.Hash {
			g.say(f, "Previous HEAD position was %s %s\n", g.short(head), subject(old.Message))
		}
	case !f.has("d"):
		g.say(f, "Note: switching to '%s'.\n\nHEAD is on no branch now: commits that are made here belong to none.\n"+
			"To keep them, make one:\n\n  git switch -c <new-branch-name>\n\n", name)
	}
	g.say(f, "HEAD is now at %s %s\n", g.short(c.Hash), subject(c.Message))
	return nil
}
