package git

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var mergeOptions = []string{"ff", "ff-only", "no-ff", "q=quiet", "n=no-stat", "stat", "no-edit", "m:=message", "abort", "continue", "quit", "commit",
	"no-commit"}

// Files of a merge that is not concluded.
const (
	mergeHead = "MERGE_HEAD"
	mergeMsg  = "MERGE_MSG"
	mergeMode = "MERGE_MODE"
)

// merge is git merge.
func (g *call) merge(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	switch {
	case f.has("abort"):
		return g.abortMerge()
	case f.has("quit"):
		return g.endMerge()
	case f.has("continue"):
		return g.continueMerge()
	}
	name := ""
	switch len(f.args) {
	case 0:
		branch, _, err := g.head()
		if err != nil {
			return err
		}
		u, ok := g.upstream(branch)
		if !ok || u.ref == "" {
			return g.fatal("No remote for the current branch.")
		}
		name = u.short()
	case 1:
		name = f.args[0]
	default:
		return g.fatal("more than one branch to merge at once is not supported here")
	}
	c, ok := g.commitNamed(name)
	if !ok {
		g.tell("merge: %s - not something we can merge\n", name)
		return tool.Exit(1)
	}
	return g.mergeCommit(c, join{name: name, message: g.mergeSubject(name)}, f)
}

// join says how a commit is merged.
type join struct {
	name    string // of the commit, in marks and logs
	message string // of the merge
	why     string // what the log begins with; "merge NAME" when empty
}

// mergeSubject is what a merge of something says.
func (g *call) mergeSubject(name string) string {
	what := "commit '" + name + "'"
	branch, back, ok := strings.Cut(name, "~")
	early := back == "" || strings.Trim(back, "0") != ""
	if !ok || strings.Trim(back, "0123456789") != "" {
		branch, early = strings.TrimRight(name, "^"), true
	}
	if branch != name && g.hasRef(heads+branch) {
		what = "branch '" + branch + "'"
		if early {
			what += " (early part)"
		}
		return g.into("Merge " + what)
	}
	if full, ok := g.refName(name); ok {
		switch {
		case strings.HasPrefix(full, heads):
			what = "branch '" + strings.TrimPrefix(full, heads) + "'"
		case strings.HasPrefix(full, tags):
			what = "tag '" + strings.TrimPrefix(full, tags) + "'"
		case strings.HasPrefix(full, remoteHeads):
			what = "remote-tracking branch '" + strings.TrimPrefix(full, remoteHeads) + "'"
		}
	}
	return g.into("Merge " + what)
}

// into adds the branch that something is merged into, as git does for all but the usual ones.
func (g *call) into(message string) string {
	if branch, _, err := g.head(); err == nil && branch != "master" && branch != "main" {
		if branch == "" {
			branch = "HEAD"
		}
		return message + " into " + branch
	}
	return message
}

// mergeCommit merges a commit into the one that HEAD is on.
func (g *call) mergeCommit(c *object.Commit, j join, f *flags) error {
	if j.why == "" {
		j.why = "merge " + j.name
	}
	if m := f.value("m"); m != "" {
		j.message = strings.Join(f.given["m"], "\n\n")
	}
	_, head, err := g.head()
	if err != nil {
		return err
	}
	going, err := g.underway()
	if err != nil {
		return err
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	switch {
	case len(unmerged(x)) > 0:
		return g.notMerged("Merging")
	case going.verb == "merge":
		return g.fatal("You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge.")
	case going.verb == "cherry-pick" && !going.commit.IsZero():
		return g.fatal("You have not concluded your cherry-pick (CHERRY_PICK_HEAD exists).\nPlease, commit your changes before you merge.")
	case head.IsZero():
		return g.fastForward(head, c.Hash, j, f)
	}
	p, err := g.paint(head, c.Hash)
	if err != nil {
		return err
	}
	if err := g.setRef(origHead, head, ""); err != nil {
		return err
	}
	has := func(h plumbing.Hash) bool {
		return slices.ContainsFunc(p.bases, func(b *object.Commit) bool { return b.Hash == h })
	}
	switch {
	case has(c.Hash):
		if f.has("q") {
			return nil
		}
		return g.print("Already up to date.\n")
	case has(head) && !f.has("no-ff"):
		return g.fastForward(head, c.Hash, j, f)
	case f.has("ff-only"):
		return g.fatal("Not possible to fast-forward, aborting.")
	case len(p.bases) == 0:
		return g.fatal("refusing to merge unrelated histories")
	}
	return g.trueMerge(head, c, p.bases, j, f)
}

// fastForward moves the branch to a commit that comes after it.
func (g *call) fastForward(head, to plumbing.Hash, j join, f *flags) error {
	if !f.has("q") && !head.IsZero() {
		_ = g.print("Updating %s..%s\n", g.short(head), g.short(to))
	}
	_ = g.Out.Flush()
	if err := g.goTo(head, to, false, "merge"); err != nil {
		return err
	}
	if err := g.moveHead(head, to, j.why+": Fast-forward"); err != nil || f.has("q") || head.IsZero() {
		return err
	}
	_ = g.print("Fast-forward\n")
	return g.mergeStat(head, to, f)
}

// mergeStat says what a merge has changed.
func (g *call) mergeStat(from, to plumbing.Hash, f *flags) error {
	if f.has("n") {
		return nil
	}
	old, err := g.commitSnapshot(from)
	if err != nil {
		return err
	}
	now, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	list, err := g.diffed(old, now, nil)
	if err != nil {
		return err
	}
	if err := g.stat(list); err != nil {
		return err
	}
	return g.summary(list)
}

// trueMerge makes a commit of two, or leaves what clashes to the user.
func (g *call) trueMerge(head plumbing.Hash, c *object.Commit, bases []*object.Commit, j join, f *flags) error {
	committer, err := g.signature("COMMITTER")
	if err != nil {
		return err
	}
	author, err := g.signature("AUTHOR")
	if err != nil {
		return err
	}
	ours, err := g.commitSnapshot(head)
	if err != nil {
		return err
	}
	if err := g.indexIsClean(ours); err != nil {
		return err
	}
	theirs, err := g.treeSnapshot(c.TreeHash)
	if err != nil {
		return err
	}
	base, err := g.baseOf(bases, 0)
	if err != nil {
		return err
	}
	m := &merging{call: g, names: [2]string{"HEAD", j.name}}
	if err := m.merge(base, ours, theirs); err != nil {
		return err
	}
	if err := m.apply(ours); err != nil {
		var exit tool.Exit
		if errors.As(err, &exit) && exit == 1 {
			g.tell("Merge with strategy ort failed.\n")
			return tool.Exit(2)
		}
		return err
	}
	m.tellAll()
	if len(m.clash) > 0 || f.has("no-commit") {
		return g.leaveMerge(m, c.Hash, j, f)
	}
	made := &object.Commit{Author: author, Committer: committer, Message: cleanMessage(j.message), ParentHashes: []plumbing.Hash{head, c.Hash}}
	if made.TreeHash, err = g.snapshotTree(m.target); err != nil {
		return err
	}
	h, err := g.put(made)
	if err != nil {
		return err
	}
	if err := g.moveHead(head, h, j.why+": Merge made by the 'ort' strategy."); err != nil || f.has("q") {
		return err
	}
	_ = g.print("Merge made by the 'ort' strategy.\n")
	return g.mergeStat(head, h, f)
}

// indexIsClean refuses a merge into an index that has more than the commit.
func (g *call) indexIsClean(commit snapshot) error {
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	list := changes(commit, indexSnapshot(x), nil, false)
	if len(list) == 0 {
		return nil
	}
	_ = g.Out.Flush()
	g.tell("error: Your local changes to the following files would be overwritten by merge:\n")
	for _, c := range list {
		g.tell("  %s\n", c.path)
	}
	g.tell("Merge with strategy ort failed.\n")
	return tool.Exit(2)
}

// leaveMerge notes a merge that the user is to conclude.
func (g *call) leaveMerge(m *merging, commit plumbing.Hash, j join, f *flags) error {
	text := cleanMessage(j.message) + m.conflicts()
	mode := ""
	if f.has("no-ff") {
		mode = "no-ff"
	}
	err := errors.Join(g.writeNote(mergeMsg, text), g.writeNote(mergeMode, mode), g.writeNote(mergeHead, commit.String()+"\n"))
	if err != nil {
		return err
	}
	if len(m.clash) == 0 {
		_ = g.Out.Flush()
		g.tell("Automatic merge went well; stopped before committing as requested\n")
		return nil
	}
	_ = g.print("Automatic merge failed; fix conflicts and then commit the result.\n")
	return tool.Exit(1)
}

// conflicts is what the message of something that clashed says of that, for whoever concludes it.
func (m *merging) conflicts() string {
	text := ""
	for _, c := range m.clash {
		text += "#\t" + c.path + "\n"
	}
	if text == "" {
		return ""
	}
	return "\n# Conflicts:\n" + text
}

// mergeHeads are the commits that a merge which is not concluded is of.
func (g *call) mergeHeads() ([]plumbing.Hash, error) {
	text, err := g.readNote(mergeHead)
	if err != nil {
		return nil, err
	}
	var list []plumbing.Hash
	for _, line := range strings.Fields(text) {
		if !plumbing.IsHash(line) {
			return nil, fmt.Errorf("%s: invalid line '%s'", mergeHead, line)
		}
		list = append(list, plumbing.NewHash(line))
	}
	return list, nil
}

// endMerge forgets a merge, and the pick of a commit with what follows it when that is nothing.
func (g *call) endMerge() error {
	err := g.endPick()
	return errors.Join(err, g.removeNotes(mergeHead, mergeMsg, mergeMode, "SQUASH_MSG"))
}

func (g *call) continueMerge() error {
	if going, err := g.mergeHeads(); err != nil {
		return err
	} else if len(going) == 0 {
		return g.fatal("There is no merge in progress (MERGE_HEAD missing).")
	}
	g.verb = "commit"
	return g.commit(nil)
}

// abortMerge puts back what the merge has changed. Files that it has not touched stay as they are.
func (g *call) abortMerge() error {
	going, err := g.mergeHeads()
	if err != nil {
		return err
	}
	if len(going) == 0 {
		return g.fatal("There is no merge to abort (MERGE_HEAD missing).")
	}
	_, head, err := g.head()
	if err != nil {
		return err
	}
	if err := g.resetMerge(head, "HEAD"); err != nil {
		return err
	}
	return g.endMerge()
}

// resetMerge is git reset --merge: it makes the index and the work tree those of a commit where the index is another, and
// keeps what the user has changed elsewhere. Files with both are refused. Files that are not merged are not asked for.
func (g *call) resetMerge(to plumbing.Hash, name string) error {
	target, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	u := &unpack{call: g, x: x, staged: indexSnapshot(x), write: map[string]entry{}}
	for _, c := range changes(u.staged, target, nil, false) {
		if c.to.none() {
			u.remove = append(u.remove, c.path)
		} else {
			u.write[c.path] = c.to
		}
	}
	slices.Sort(u.remove)
	clashes := unmerged(x)
	for name := range clashes {
		delete(u.write, name)
	}
	if err := u.checkWork(); err != nil {
		return err
	}
	if names := slices.Concat(u.local, u.fresh, u.lost); len(names) > 0 {
		g.tell("error: Entry '%s' not uptodate. Cannot merge.\n", slices.Min(names))
		return g.fatal("Could not reset index file to revision '%s'.", name)
	}
	for name := range clashes {
		if e := target[name]; e.none() {
			u.remove = append(u.remove, name)
		} else {
			u.write[name] = e
		}
	}
	slices.Sort(u.remove)
	return u.run()
}
