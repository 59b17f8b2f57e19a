package git

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pickOptions = []string{"n=no-commit", "x", "s=signoff", "m:=mainline", "ff", "no-edit", "allow-empty", "allow-empty-message",
	"keep-redundant-commits", "abort", "continue", "skip", "quit"}

// picker is one run of git cherry-pick or git revert. Either is a merge into what HEAD is on:
//
//	             base        theirs
//	cherry-pick  its parent  the commit
//	revert       the commit  its parent
type picker struct {
	*call
	f    *flags
	verb string
}

func (g *call) cherryPick(args []string) error { return g.pick("cherry-pick", args) }

func (g *call) revert(args []string) error { return g.pick("revert", args) }

func (g *call) pick(verb string, args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	p := &picker{g, f, verb}
	switch {
	case f.has("quit"):
		return g.quitPicks()
	case f.has("abort"):
		return p.abort()
	case f.has("skip"):
		return p.skip()
	case f.has("continue"):
		return p.resume()
	case len(f.args) == 0:
		g.tell("usage: git %s [-n] [-m <parent-number>] [-s] <commit>...\n   or: git %[1]s (--continue | --skip | --abort | --quit)\n", verb)
		return tool.Exit(129)
	}
	for i, name := range f.args {
		if f.args[i], err = g.previous(name); err != nil {
			return err
		}
	}
	list, one, err := p.chosen()
	if err != nil {
		return err
	}
	if !one {
		return p.begin(list)
	}
	return p.apply(list[0])
}

// failed says why nothing was done, and that.
func (p *picker) failed(format string, args ...any) error {
	if format != "" {
		p.tell("error: "+format+"\n", args...)
	}
	return p.fatal("%s failed", p.verb)
}

// chosen are the commits that were named, in the order in which they are applied: as they were named, but for a range, which
// is picked from its beginning and reverted from its end. one is for a single one, which is no sequence.
func (p *picker) chosen() (list []*object.Commit, one bool, err error) {
	ranges := false
	for _, name := range p.f.args {
		ranges = ranges || len(rangeParts(name)) > 1 || strings.HasPrefix(name, "^")
		for _, part := range rangeParts(strings.TrimPrefix(name, "^")) {
			h, ok := p.resolve(part)
			if !ok {
				return nil, false, p.fatal("bad revision '%s'", name)
			}
			c, ok := p.peel(h)
			if !ok {
				o, err := p.object(plumbing.AnyObject, h)
				if err != nil {
					return nil, false, p.fatal("bad object %s", name)
				}
				return nil, false, p.failed("%s: can't %s a %s", part, p.verb, o.Type())
			}
			if !slices.ContainsFunc(list, func(o *object.Commit) bool { return o.Hash == c.Hash }) {
				list = append(list, c)
			}
		}
	}
	if !ranges {
		return list, len(p.f.args) == 1, nil
	}
	order := &flags{given: map[string][]string{}}
	if p.verb == "cherry-pick" {
		order.given["reverse"] = []string{""}
	}
	if list, err = p.history(p.f.args, nil, order); err == nil && len(list) == 0 {
		err = p.failed("empty commit set passed")
	}
	return list, false, err
}

// pickLabel is how marks, and the list of what is to be done, name a commit.
func (g *call) pickLabel(c *object.Commit) (label, subject string) {
	subject, _, _ = strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return g.short(c.Hash), subject
}

// parentOf is the parent that a commit is taken as a change of: the only one, or that which -m says. It is zero for none.
func (p *picker) parentOf(c *object.Commit) (h plumbing.Hash, err error) {
	n := 0
	if text := p.f.value("m"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			return h, p.failure("option `mainline' expects a number greater than zero")
		}
	}
	switch parents := c.ParentHashes; {
	case len(parents) == 0:
		return h, nil
	case len(parents) > 1 && n == 0:
		return h, p.failed("commit %s is a merge but no -m option was given.", c.Hash)
	case n > len(parents):
		return h, p.failed("commit %s does not have parent %d", c.Hash, n)
	default:
		return parents[max(n, 1)-1], nil
	}
}

// apply picks or reverts one commit.
func (p *picker) apply(c *object.Commit) error {
	_, head, err := p.head()
	if err != nil {
		return err
	}
	x, err := p.lockedIndex()
	if err != nil {
		return err
	}
	ours, err := p.commitSnapshot(head)
	if err != nil {
		return err
	}
	switch {
	case len(unmerged(x)) > 0 && p.f.has("n"):
		return p.failed("your index file is unmerged.")
	case len(unmerged(x)) > 0:
		p.tell("error: %s is not possible because you have unmerged files.\n"+
			"hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"+
			"hint: as appropriate to mark resolution and make a commit.\n", map[string]string{"cherry-pick": "Cherry-picking", "revert": "Reverting"}[p.verb])
		return p.failed("")
	case p.f.has("n"):
		ours = indexSnapshot(x)
	case len(changes(ours, indexSnapshot(x), nil, false)) > 0:
		p.tell("error: your local changes would be overwritten by %s.\nhint: commit your changes or stash them to proceed.\n", p.verb)
		return p.failed("")
	}
	parent, err := p.parentOf(c)
	if err != nil {
		return err
	}
	if p.f.has("ff") && parent == head {
		if err := p.goTo(head, c.Hash, false, "merge"); err != nil {
			return err
		}
		return errors.Join(p.moveHead(head, c.Hash, p.verb+": fast-forward"), p.noteHead())
	}
	m, err := p.mergeChange(c, parent, ours)
	if err != nil {
		return err
	}
	text := p.messageOf(c, parent)
	if err := p.writeNote(mergeMsg, text+m.conflicts()); err != nil {
		return err
	}
	clashes := len(m.clash) > 0
	note := cherryPickHead
	noted := !p.f.has("n")
	if p.verb == "revert" {
		note, noted = revertHead, clashes != p.f.has("n")
	}
	if noted {
		if err := p.writeNote(note, c.Hash.String()+"\n"); err != nil {
			return err
		}
	}
	switch {
	case clashes:
		return p.clashed(c)
	case p.f.has("n"):
		return nil
	}
	return p.conclude(c, head, text, m)
}

// mergeChange brings what a commit has changed, or the reverse, into the index and the work tree.
func (p *picker) mergeChange(c *object.Commit, parent plumbing.Hash, ours snapshot) (*merging, error) {
	before, err := p.commitSnapshot(parent)
	if err != nil {
		return nil, err
	}
	after, err := p.treeSnapshot(c.TreeHash)
	if err != nil {
		return nil, err
	}
	short, subject := p.pickLabel(c)
	label := short + " (" + subject + ")"
	if p.verb == "revert" {
		before, after, label = after, before, "parent of "+label
	}
	m := &merging{call: p.call, names: [2]string{"HEAD", label}}
	if err := m.merge(before, ours, after); err != nil {
		return nil, err
	}
	if err := m.apply(ours); err != nil {
		var exit tool.Exit
		if errors.As(err, &exit) && exit == 1 { // what is in the way was said
			return nil, p.failed("")
		}
		return nil, err
	}
	m.tellAll()
	return m, nil
}

// messageOf is what a commit that was picked or reverted says.
func (p *picker) messageOf(c *object.Commit, parent plumbing.Hash) string {
	text := c.Message
	if p.verb == "revert" {
		_, subject := p.pickLabel(c)
		text = "Revert \"" + subject + "\"\n\nThis reverts commit " + c.Hash.String()
		if len(c.ParentHashes) > 1 {
			text += ", reversing\nchanges made to " + parent.String()
		}
		text += ".\n"
	} else if p.f.has("x") {
		text = withNewline(text)
		if !hasTrailers(text) {
			text += "\n"
		}
		text += pickedFrom + c.Hash.String() + ")\n"
	}
	if p.f.has("s") {
		text = signedOff(text, p.identity("COMMITTER"))
	}
	return text
}

// clashed says that a commit could not be applied as it is, and what can be done.
func (p *picker) clashed(c *object.Commit) error {
	_ = p.Out.Flush()
	short, subject := p.pickLabel(c)
	p.tell("error: could not %s %s... %s\n", map[string]string{"cherry-pick": "apply", "revert": "revert"}[p.verb], short, subject)
	if p.f.has("n") {
		p.tell("hint: after resolving the conflicts, mark the corrected paths\nhint: with 'git add <paths>' or 'git rm <paths>'\n")
	} else {
		p.tell("hint: After resolving the conflicts, mark them with\nhint: \"git add/rm <pathspec>\", then run\nhint: \"git %s --continue\".\n"+
			"hint: You can instead skip this commit with \"git %[1]s --skip\".\n"+
			"hint: To abort and get back to the state before \"git %[1]s\",\nhint: run \"git %[1]s --abort\".\n", p.verb)
	}
	return tool.Exit(1)
}

// conclude makes the commit.
func (p *picker) conclude(c *object.Commit, head plumbing.Hash, text string, m *merging) error {
	committer, err := p.signature("COMMITTER")
	if err != nil {
		return err
	}
	made := &object.Commit{Author: c.Author, Committer: committer, Message: text}
	if p.verb == "revert" {
		if made.Author, err = p.signature("AUTHOR"); err != nil {
			return err
		}
	}
	if !head.IsZero() {
		made.ParentHashes = []plumbing.Hash{head}
	}
	old, err := p.commitSnapshot(head)
	if err != nil {
		return err
	}
	list, err := p.diffed(old, m.target, nil)
	if err != nil {
		return err
	}
	if ok, err := p.mayBeEmpty(c); err != nil {
		return err
	} else if len(list) == 0 && !ok {
		x, err := p.lockedIndex()
		if err != nil {
			return err
		}
		return p.nothing(x, head, p.f)
	}
	if strings.TrimSpace(text) == "" && !p.f.has("allow-empty-message") {
		p.tell("Aborting commit due to empty commit message.\n")
		return tool.Exit(1)
	}
	if made.TreeHash, err = p.snapshotTree(m.target); err != nil {
		return err
	}
	h, err := p.put(made)
	if err != nil {
		return err
	}
	if err := p.moveHead(head, h, p.verb+": "+subject(text)); err != nil {
		return err
	}
	branch, _, err := p.head()
	if err := errors.Join(err, p.removeNotes(cherryPickHead, revertHead, mergeMsg), p.noteHead()); err != nil {
		return err
	}
	return p.committed(branch, h, made, list, commitLine{root: head.IsZero(), date: true})
}

// mayBeEmpty says whether a commit may change nothing where it is applied.
func (p *picker) mayBeEmpty(c *object.Commit) (bool, error) {
	if p.f.has("keep-redundant-commits") || !p.f.has("allow-empty") {
		return p.f.has("keep-redundant-commits"), nil
	}
	if len(c.ParentHashes) == 0 {
		return false, nil
	}
	parent, err := p.commitAt(c.ParentHashes[0])
	return err == nil && parent.TreeHash == c.TreeHash, err
}
