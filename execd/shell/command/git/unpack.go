package git

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// unpack moves the index and the work tree from one commit to another. What the user has changed is kept where both commits
// have the same, and where they do not nothing at all is moved: see twoWay.
type unpack struct {
	*call
	x      *index.Index
	staged snapshot
	ignore gitignore.Matcher

	remove []string
	write  map[string]entry

	local []string // changed by the user, and in the way
	fresh []string // not known to git, and in the way
	extra []string // no more known to git, where the new commit has no file either
	lost  []string // directories with such files where a file is to be
}

// goTo makes the index and the work tree of one commit those of another. Changes of the user's are kept, and refused where
// they are in the way, unless force throws them away. what is what is done, for the refusal.
func (g *call) goTo(from, to plumbing.Hash, force bool, what string) error {
	old, err := g.commitSnapshot(from)
	if err != nil {
		return err
	}
	target, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	u := &unpack{call: g, x: x, staged: indexSnapshot(x), write: map[string]entry{}}
	if force {
		err = u.force(target)
	} else {
		err = u.careful(old, target, what)
	}
	if err != nil {
		return err
	}
	return u.run()
}

// careful plans a move that loses nothing.
func (u *unpack) careful(old, target snapshot, what string) error {
	if names := slices.Sorted(maps.Keys(unmerged(u.x))); len(names) > 0 {
		if what == "merge" {
			return u.notMerged("Merging")
		}
		for _, name := range names {
			_ = u.print("%s: needs merge\n", name)
		}
		_ = u.Out.Flush()
		return u.failure("you need to resolve your current index first")
	}
	if err := u.twoWay(old, target); err != nil {
		return err
	}
	if err := u.checkWork(); err != nil {
		return err
	}
	return u.refused(what)
}

// twoWay decides on every file by what it is in the old commit, in the new one and in the index: the table of
// git-read-tree(1).
func (u *unpack) twoWay(old, target snapshot) error {
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range target {
		names[name] = true
	}
	for name := range names {
		if err := u.Step(u.ctx, 1); err != nil {
			return err
		}
		o, t, i := old[name], target[name], u.staged[name]
		switch {
		case o.is(t): // nothing to do
		case t.none() && i.none():
			if err := u.checkExtra(name); err != nil {
				return err
			}
		case i.is(t): // it has been done
		case !o.is(i):
			u.local = append(u.local, name)
		case t.none():
			u.remove = append(u.remove, name)
		default:
			u.write[name] = t
		}
	}
	slices.Sort(u.remove)
	return nil
}

// checkWork looks for what the plan would destroy in the work tree.
func (u *unpack) checkWork() error {
	for _, name := range u.remove {
		if err := u.checkClean(name); err != nil {
			return err
		}
	}
	for name, t := range u.write {
		if !validPath(name) {
			return u.failure("invalid path '%s'", name)
		}
		var err error
		if _, tracked := u.staged[name]; tracked {
			err = u.checkClean(name)
		} else {
			err = u.checkAbsent(name, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkClean notes a file of the index that the work tree has in another way. One that is gone is no loss.
func (u *unpack) checkClean(name string) error {
	a, err := u.lstat(name, nil)
	if notThere(err) {
		// What somebody has put behind a symlink is none of git's, but a reason to ask.
		if _, err := u.FS.Lstat(u.ctx, path.Join(u.root, name)); err == nil {
			u.local = append(u.local, name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if a.Type == vfs.TypeDir {
		if u.staged[name].mode.IsFile() {
			u.local = append(u.local, name)
		}
		return nil
	}
	now, err := u.workEntry(name, nil)
	if err == nil {
		now.mode = u.modeIn(u.x, name, now.mode)
		if !now.is(u.staged[name]) {
			u.local = append(u.local, name)
		}
	}
	if notThere(err) { // a device or the like
		u.local = append(u.local, name)
		err = nil
	}
	return err
}

// checkAbsent notes what is in the place of a file that git has not known.
func (u *unpack) checkAbsent(name string, t entry) error {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		dir := name[:i]
		a, err := u.FS.Lstat(u.ctx, path.Join(u.root, dir))
		if notThere(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if a.Type != vfs.TypeDir {
			return u.checkStray(dir, entry{})
		}
	}
	a, err := u.FS.Lstat(u.ctx, path.Join(u.root, name))
	switch {
	case notThere(err):
		return nil
	case err != nil:
		return err
	case a.Type != vfs.TypeDir:
		return u.checkStray(name, t)
	case !t.mode.IsFile(): // a submodule
		return nil
	}
	holds, err := u.holdsStrays(name)
	if holds {
		u.lost = append(u.lost, name)
	}
	return err
}

// checkExtra notes a file that the index has no more and the work tree still has, where the move is to remove it.
func (u *unpack) checkExtra(name string) error {
	a, err := u.lstat(name, nil)
	if notThere(err) || err == nil && a.Type == vfs.TypeDir {
		return nil
	}
	if err != nil {
		return err
	}
	ok, err := u.ignores(name, false)
	if err == nil && !ok {
		u.extra = append(u.extra, name)
	}
	return err
}

// checkStray notes a file that git does not know, unless it is ignored or has the very bytes that are to come.
func (u *unpack) checkStray(name string, t entry) error {
	if _, tracked := u.staged[name]; tracked {
		if !u.goes(name) { // only the user has it there
			u.local = append(u.local, name)
		}
		return nil
	}
	if ok, err := u.ignores(name, false); ok || err != nil {
		return err
	}
	now, err := u.workEntry(name, nil)
	if err != nil && !notThere(err) {
		return err
	}
	if now.none() || now.hash != t.hash {
		u.fresh = append(u.fresh, name)
	}
	return nil
}

// goes says whether a file is to be removed, which is checked where it is.
func (u *unpack) goes(name string) bool {
	_, ok := slices.BinarySearch(u.remove, name)
	return ok
}

// holdsStrays says whether a directory has files that are to stay: those that git does not know and does not ignore.
func (u *unpack) holdsStrays(dir string) (bool, error) {
	if ok, err := u.ignores(dir, true); ok || err != nil {
		return false, err
	}
	entries, err := u.FS.ReadDir(u.ctx, path.Join(u.root, dir))
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		name := slash(dir, e.Name)
		holds := false
		if e.Type == vfs.TypeDir && e.Name != ".git" {
			if holds, err = u.holdsStrays(name); err != nil {
				return false, err
			}
		} else if _, tracked := u.staged[name]; tracked {
			holds = !u.goes(name)
		} else {
			ok, err := u.ignores(name, false)
			if err != nil {
				return false, err
			}
			holds = !ok
		}
		if holds {
			return true, nil
		}
	}
	return false, nil
}

func (u *unpack) ignores(name string, dir bool) (bool, error) {
	if u.ignore == nil {
		var err error
		if u.ignore, err = u.ignored(); err != nil {
			return false, err
		}
	}
	return u.ignore.Match(strings.Split(name, "/"), dir), nil
}

// refused says what is in the way, if anything is.
func (u *unpack) refused(what string) error {
	if len(u.local)+len(u.fresh)+len(u.extra)+len(u.lost) == 0 {
		return nil
	}
	then := map[string]string{"checkout": "switch branches", "merge": "merge"}[what]
	list := func(names []string) string {
		slices.Sort(names)
		return strings.Join(slices.Compact(names), "\n\t")
	}
	_ = u.Out.Flush()
	if len(u.local) > 0 {
		u.tell("error: Your local changes to the following files would be overwritten by %s:\n\t%s\n"+
			"Please commit your changes or stash them before you %s.\n", what, list(u.local), then)
	}
	for _, p := range []struct {
		done  string
		names []string
	}{{"removed", u.extra}, {"overwritten", u.fresh}} {
		if len(p.names) > 0 {
			u.tell("error: The following untracked working tree files would be %s by %s:\n\t%s\n"+
				"Please move or remove them before you %s.\n", p.done, what, list(p.names), then)
		}
	}
	if len(u.lost) > 0 {
		u.tell("error: Updating the following directories would lose untracked files in them:\n\t%s\n\n", list(u.lost))
	}
	u.tell("Aborting\n")
	return tool.Exit(1)
}

// force plans a move that throws away what the user has changed in files that git knows.
func (u *unpack) force(target snapshot) error {
	now, err := u.workSnapshot(u.x)
	if err != nil {
		return err
	}
	unmergedNames := unmerged(u.x)
	for name := range unmergedNames {
		if target[name].none() {
			u.remove = append(u.remove, name)
		}
	}
	for name := range u.staged {
		if target[name].none() {
			u.remove = append(u.remove, name)
		}
	}
	for name, t := range target {
		if !validPath(name) {
			return u.failure("invalid path '%s'", name)
		}
		_, conflict := unmergedNames[name]
		if conflict || !now[name].is(t) || !u.staged[name].is(t) {
			u.write[name] = t
		}
	}
	slices.Sort(u.remove)
	return nil
}

// run does what was planned: what goes first, so that there is room for what comes. The index says how far it got.
func (u *unpack) run() error {
	err := u.apply()
	return errors.Join(err, u.saveIndex(u.x))
}

func (u *unpack) apply() error {
	for _, name := range u.remove {
		if err := u.Step(u.ctx, 1); err != nil {
			return err
		}
		if err := u.removeFile(name); err != nil {
			return err
		}
		unstage(u.x, name)
	}
	for _, name := range slices.Sorted(maps.Keys(u.write)) {
		if err := u.Step(u.ctx, 1); err != nil {
			return err
		}
		if err := u.writeFile(name, u.write[name]); err != nil {
			return err
		}
		if err := u.setEntry(u.x, name, u.write[name], nil); err != nil {
			return err
		}
	}
	return nil
}

// notMerged says that something cannot be done while files are not merged.
func (g *call) notMerged(what string) error {
	g.tell("error: %s is not possible because you have unmerged files.\n"+
		"hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"+
		"hint: as appropriate to mark resolution and make a commit.\n"+
		"fatal: Exiting because of an unresolved conflict.\n", what)
	return tool.Exit(statusFatal)
}
