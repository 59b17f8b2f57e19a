package git

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// stashRef leads to what was stashed last; its log to what was before.
const stashRef = "refs/stash"

var stashOptions = []string{"m:=message", "u=include-untracked", "k=keep-index", "no-keep-index", "q=quiet", "index", "p=patch", "stat"}

// stash is git stash. A stash is a commit of the work tree, whose parents are the commit it was on, one of the index, and
// with -u one of the files that git did not know.
func (g *call) stash(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	verb := "push"
	if len(f.args) > 0 {
		verb, f.args = f.args[0], f.args[1:]
	}
	switch verb {
	case "push":
		return g.stashPush(f)
	case "save":
		if len(f.args) > 0 {
			f.given["m"], f.args = []string{strings.Join(f.args, " ")}, nil
		}
		return g.stashPush(f)
	case "list":
		return g.stashList()
	case "show":
		return g.stashShow(f)
	case "apply", "pop":
		return g.stashApply(f, verb == "pop")
	case "drop":
		return g.stashDrop(f)
	case "clear":
		if !g.hasRef(stashRef) {
			return nil
		}
		return g.removeRef(stashRef)
	}
	return g.fatal("subcommand wasn't specified; 'push' can't be assumed due to unexpected token '%s'", verb)
}

// stashPush puts the changes of the work tree away.
func (g *call) stashPush(f *flags) error {
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	branch, head, err := g.head()
	if err != nil {
		return err
	}
	if head.IsZero() {
		g.tell("You do not have the initial commit yet\n")
		return tool.Exit(1)
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	if len(unmerged(x)) > 0 {
		return g.notMerged("Stashing")
	}
	if err := g.matchAll(nil, x, within); err != nil {
		return err
	}
	old, err := g.commitSnapshot(head)
	if err != nil {
		return err
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
	}
	var fresh []string
	if f.has("u") {
		if fresh, err = g.strays(x, within); err != nil {
			return err
		}
	}
	staged := indexSnapshot(x)
	if len(fresh)+len(changes(old, staged, within, false))+len(changes(staged, now, within, false)) == 0 {
		if f.has("q") {
			return nil
		}
		return g.print("No local changes to save\n")
	}
	commit, text, err := g.stashCommit(x, branch, head, old, within, fresh, f)
	if err != nil {
		return err
	}
	if err := g.putStash(commit, text); err != nil {
		return err
	}
	if err := g.stashAway(x, old, staged, within, fresh, f); err != nil {
		return err
	}
	if len(within) == 0 { // git has it done by git reset --hard
		why := "reset: moving to HEAD"
		if err := errors.Join(g.setRef(origHead, head, ""), g.logRef("HEAD", head, head, why)); err != nil {
			return err
		}
	}
	if f.has("q") {
		return nil
	}
	return g.print("Saved working directory and index state %s\n", text)
}

// strays are the files that git does not know, within scopes.
func (g *call) strays(x *index.Index, within []scope) ([]string, error) {
	ignore, err := g.ignored()
	if err != nil {
		return nil, err
	}
	all, err := g.untracked(x, ignore, false)
	return slices.DeleteFunc(all, func(name string) bool {
		return strings.HasSuffix(name, "/") || !inScopes(within, name) // a repository of its own stays
	}), err
}

// stashCommit makes the commits of a stash, and what it is called.
func (g *call) stashCommit(x *index.Index, branch string, head plumbing.Hash, old snapshot, within []scope, fresh []string, f *flags) (plumbing.Hash, string, error) {
	on := branch
	if on == "" {
		on = "(no branch)"
	}
	at, err := g.commitAt(head)
	if err != nil {
		return head, "", err
	}
	place := on + ": " + g.short(head) + " " + subject(at.Message)
	text := "WIP on " + place
	if f.has("m") {
		text = "On " + on + ": " + f.value("m")
	}
	store := func(x *index.Index, message string, parents ...plumbing.Hash) (plumbing.Hash, error) {
		tree, err := g.writeTree(x)
		if err != nil {
			return tree, err
		}
		c := &object.Commit{Author: g.identity("AUTHOR"), Committer: g.identity("COMMITTER"), Message: message, TreeHash: tree, ParentHashes: parents}
		return g.put(c)
	}
	parents := []plumbing.Hash{head}
	staged, err := store(x, "index on "+place+"\n", head)
	if err != nil {
		return staged, "", err
	}
	parents = append(parents, staged)
	if f.has("u") { // as git has it, for no files too
		only := &index.Index{Version: 2}
		for _, name := range fresh {
			if err := g.stage(only, name); err != nil {
				return head, "", err
			}
		}
		strays, err := store(only, "untracked files on "+place+"\n")
		if err != nil {
			return strays, "", err
		}
		parents = append(parents, strays)
	}
	whole := &index.Index{Version: 2}
	for _, e := range x.Entries {
		same := *e
		whole.Entries = append(whole.Entries, &same)
	}
	if err := g.stageAll(whole, within, g.unstagedOf(old, x, within), false); err != nil {
		return head, "", err
	}
	h, err := store(whole, text, parents...) // which has no newline, as git's has none
	return h, text, err
}

// unstagedOf are the files of the commit that the index has no more and the work tree still has: what is put away puts back
// the commit's.
func (g *call) unstagedOf(old snapshot, x *index.Index, within []scope) (names []string) {
	for name := range old {
		if _, ok := findEntry(x, name); ok || !inScopes(within, name) {
			continue
		}
		if a, err := g.lstat(name, nil); err == nil && a.Type != vfs.TypeDir {
			names = append(names, name)
		}
	}
	return names
}

// putStash makes a stash the last one.
func (g *call) putStash(h plumbing.Hash, text string) error {
	return g.setRef(stashRef, h, text)
}

// stashAway makes the work tree and the index those of the commit, or with --keep-index those of the index.
func (g *call) stashAway(x *index.Index, old, staged snapshot, within []scope, fresh []string, f *flags) error {
	target := old
	if f.has("k") && !f.has("no-keep-index") {
		target = staged
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
	}
	u := &unpack{call: g, x: x, staged: staged, write: map[string]entry{}}
	for name := range staged {
		if inScopes(within, name) && target[name].none() {
			u.remove = append(u.remove, name)
		}
	}
	for name, t := range target {
		if inScopes(within, name) && (!now[name].is(t) || !staged[name].is(t)) {
			u.write[name] = t
		}
	}
	slices.Sort(u.remove)
	for _, name := range fresh {
		if err := g.removeFile(name); err != nil {
			return err
		}
	}
	return u.run()
}

// stashes are all that there are, the last first.
func (g *call) stashes() ([]logLine, error) {
	if !g.hasRef(stashRef) {
		return nil, nil
	}
	return g.readLog(stashRef)
}

func (g *call) stashList() error {
	all, err := g.stashes()
	for i, l := range all {
		_ = g.print("stash@{%d}: %s\n", i, l.why)
	}
	return err
}

// chosen finds the stash that somebody names, the last one without a name.
func (g *call) chosen(f *flags) (n int, l logLine, err error) {
	all, err := g.stashes()
	if err != nil {
		return 0, l, err
	}
	if len(f.args) > 1 {
		return 0, l, g.fatal("Too many revisions specified: %s", strings.Join(f.args, " "))
	}
	if len(f.args) == 1 {
		text := f.args[0]
		if inner, ok := strings.CutPrefix(text, "stash@{"); ok {
			text = strings.TrimSuffix(inner, "}")
		} else if inner, ok := strings.CutPrefix(text, stashRef+"@{"); ok {
			text = strings.TrimSuffix(inner, "}")
		} else if text == "stash" || text == stashRef {
			text = "0"
		}
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			return 0, l, g.failure("%s is not a valid reference", f.args[0])
		}
	}
	switch {
	case len(all) == 0:
		g.tell("No stash entries found.\n")
		return 0, l, tool.Exit(1)
	case n >= len(all):
		return 0, l, g.fatal("log for 'stash' only has %d entries", len(all))
	}
	return n, all[n], nil
}

// stashed is the commits of a stash.
type stashed struct {
	commit, base, index *object.Commit
	strays              *object.Commit // nil for none
}

func (g *call) stashedAt(h plumbing.Hash) (*stashed, error) {
	s := &stashed{}
	var err error
	if s.commit, err = g.commitAt(h); err != nil {
		return nil, err
	}
	for i, to := range []**object.Commit{&s.base, &s.index, &s.strays} {
		if i >= len(s.commit.ParentHashes) {
			break
		}
		if *to, err = g.commitAt(s.commit.ParentHashes[i]); err != nil {
			return nil, err
		}
	}
	if s.index == nil {
		return nil, g.fatal("'%s' is not a stash-like commit", h)
	}
	return s, nil
}

func (g *call) stashShow(f *flags) error {
	_, l, err := g.chosen(f)
	if err != nil {
		return err
	}
	s, err := g.stashedAt(l.new)
	if err != nil {
		return err
	}
	from, err := g.treeSnapshot(s.base.TreeHash)
	if err != nil {
		return err
	}
	to, err := g.treeSnapshot(s.commit.TreeHash)
	if err != nil {
		return err
	}
	shown := shape{kinds: []string{"stat"}, context: 3}
	if f.has("p") {
		shown.kinds = []string{"p"}
	}
	list, err := g.diffed(from, to, nil)
	if err != nil {
		return err
	}
	return g.printChanges(list, shown)
}

// stashApply brings a stash back; drop is for one that is not needed any more then.
func (g *call) stashApply(f *flags, drop bool) error {
	n, l, err := g.chosen(f)
	if err != nil {
		return err
	}
	s, err := g.stashedAt(l.new)
	if err != nil {
		return err
	}
	whole, err := g.unstash(s, f)
	if err != nil {
		return err
	}
	if !f.has("q") {
		state, err := g.look(nil, true)
		if err != nil {
			return err
		}
		if err := g.longStatus(state, false); err != nil {
			return err
		}
	}
	if !whole {
		_ = g.Out.Flush()
		if drop {
			_ = g.print("The stash entry is kept in case you need it again.\n")
		}
		return tool.Exit(1)
	}
	if drop {
		return g.dropStash(n, l, f)
	}
	return nil
}

// unstash brings a stash back. It is not whole when that clashed, or was refused for what is in the way: then what is wrong
// was said, and the rest of it was brought.
func (g *call) unstash(s *stashed, f *flags) (whole bool, err error) {
	x, err := g.lockedIndex()
	if err != nil {
		return false, err
	}
	if len(unmerged(x)) > 0 {
		return false, g.notMerged("Applying a stash")
	}
	whole, err = g.unstashTracked(s, indexSnapshot(x), f)
	if err != nil && !refusal(err) {
		return false, err
	}
	if s.strays == nil {
		return whole, nil
	}
	if err := g.checkStrays(s); err != nil {
		if refusal(err) {
			err = nil
		}
		return false, err
	}
	return whole, g.eachStray(s, g.writeFile)
}

// refusal says whether an error is that something is in the way, which was said.
func refusal(err error) bool {
	var exit tool.Exit
	return errors.As(err, &exit) && exit == 1
}

// unstashTracked merges the files that git knew into the index and the work tree, and says whether nothing clashed.
func (g *call) unstashTracked(s *stashed, ours snapshot, f *flags) (bool, error) {
	base, err := g.treeSnapshot(s.base.TreeHash)
	if err != nil {
		return false, err
	}
	theirs, err := g.treeSnapshot(s.commit.TreeHash)
	if err != nil {
		return false, err
	}
	after := ours // the index, when nothing clashes
	if f.has("index") {
		if after, err = g.stashedIndex(s, base, ours); err != nil {
			return false, err
		}
	}
	m := &merging{call: g, names: [2]string{"Updated upstream", "Stashed changes"}}
	if err := m.merge(base, ours, theirs); err != nil {
		return false, err
	}
	if err := m.apply(ours); err != nil {
		if refusal(err) && f.has("index") {
			g.tell("Index was not unstashed.\n")
		}
		return false, err
	}
	if !f.has("q") {
		m.tellAll()
		if s.commit.TreeHash == s.base.TreeHash {
			_ = g.print("Already up to date.\n")
		}
	}
	if len(m.clash) > 0 {
		if f.has("index") {
			_ = g.Out.Flush()
			g.tell("Index was not unstashed.\n")
		}
		return false, nil
	}
	return true, g.settleIndex(after, f.has("index"))
}

// stashedIndex is the index that a stash has kept, which is taken as it is where nothing else has changed it.
func (g *call) stashedIndex(s *stashed, base, ours snapshot) (snapshot, error) {
	kept, err := g.treeSnapshot(s.index.TreeHash)
	if err != nil {
		return nil, err
	}
	m := &merging{call: g, names: [2]string{"Updated upstream", "Stashed changes"}}
	if err := m.merge(base, ours, kept); err != nil {
		return nil, err
	}
	if len(m.clash) > 0 {
		return nil, g.fatal("conflicts in index. Try without --index.")
	}
	return m.target, nil
}

// settleIndex takes the changes that a stash has brought out of the index again, but for new files, which would be unknown
// to git then. whole is for an index that is to be as after has it.
func (g *call) settleIndex(after snapshot, whole bool) error {
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	for _, c := range changes(indexSnapshot(x), after, nil, false) {
		switch {
		case !c.to.none():
			putEntry(x, c.path, c.to)
		case whole:
			unstage(x, c.path)
		}
	}
	return g.saveIndex(x)
}

func (g *call) eachStray(s *stashed, f func(name string, e entry) error) error {
	all, err := g.treeSnapshot(s.strays.TreeHash)
	if err != nil {
		return err
	}
	for _, c := range changes(nil, all, nil, false) {
		if err := f(c.path, c.to); err != nil {
			return err
		}
	}
	return nil
}

// checkStrays refuses to bring back files in whose place others are.
func (g *call) checkStrays(s *stashed) error {
	var there []string
	err := g.eachStray(s, func(name string, _ entry) error {
		if !validPath(name) {
			return g.failure("invalid path '%s'", name)
		}
		for at := name; at != "."; at = path.Dir(at) {
			a, err := g.FS.Lstat(g.ctx, path.Join(g.root, at))
			if notThere(err) {
				continue
			}
			if err != nil {
				return err
			}
			if at == name || !(info{attr: a}).IsDir() {
				there = append(there, at)
			}
			break
		}
		return nil
	})
	if err != nil || len(there) == 0 {
		return err
	}
	for _, name := range slices.Compact(there) {
		g.tell("%s already exists, no checkout\n", name)
	}
	return g.failure("could not restore untracked files from stash")
}

func (g *call) stashDrop(f *flags) error {
	n, l, err := g.chosen(f)
	if err != nil {
		return err
	}
	return g.dropStash(n, l, f)
}

// dropStash forgets the n-th stash.
func (g *call) dropStash(n int, l logLine, f *flags) error {
	all, err := g.stashes()
	if err != nil {
		return err
	}
	if n >= len(all) || all[n].new != l.new {
		return g.fatal("stash@{%d} has changed meanwhile", n)
	}
	rest := slices.Delete(slices.Clone(all), n, n+1)
	if len(rest) == 0 {
		err = g.removeRef(stashRef)
	} else {
		if n > 0 {
			rest[n-1].old = all[n].old // the line above follows on the one below
		}
		err = g.writeLog(stashRef, rest)
		if n == 0 && err == nil {
			err = g.putReference(plumbing.NewHashReference(stashRef, rest[0].new), nil)
		}
	}
	if err != nil || f.has("q") {
		return err
	}
	shown := fmt.Sprintf("%s@{%d}", stashRef, n)
	if len(f.args) > 0 && strings.Contains(f.args[0], "@") {
		shown = f.args[0]
	}
	return g.print("Dropped %s (%s)\n", shown, l.new)
}
