package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// checkout is git checkout.
func (g *call) checkout(args []string) error {
	f, err := g.flags(args, "b:", "B:", "d=detach", "f=force", "q=quiet")
	if err != nil {
		return err
	}
	for _, name := range []string{"b", "B"} {
		if f.has(name) {
			return g.startBranch(f.value(name), f.args, name == "B", f)
		}
	}
	if len(f.args) == 0 && len(f.paths) == 0 {
		return nil
	}
	if !f.dashed && len(f.args) == 1 {
		name, err := g.previous(f.args[0])
		if err != nil {
			return err
		}
		if g.hasRef(heads+name) && !f.has("d") {
			return g.toBranch(name, f)
		}
		if c, ok := g.commitNamed(name); ok {
			return g.detach(name, c, f)
		}
	}
	return g.checkoutPaths(f)
}

// checkoutPaths takes files from the index, or from a commit when the first operand is one.
func (g *call) checkoutPaths(f *flags) error {
	args, from := f.args, ""
	if len(args) > 0 && (f.dashed || len(args) > 1) {
		if _, ok := g.commitNamed(args[0]); ok {
			from, args = args[0], args[1:]
		}
	}
	within, err := g.scopes(append(args, f.paths...))
	if err != nil {
		return err
	}
	n, err := g.take(from, within, from != "", true)
	if err == nil && !f.dashed && from == "" {
		g.say(f, "Updated %s from the index\n", counted(n, "path", "paths"))
	}
	return err
}

// restore is git restore.
func (g *call) restore(args []string) error {
	f, err := g.flags(args, "S=staged", "W=worktree", "s:=source", "q=quiet")
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
	from := f.value("s")
	if from == "" && f.has("S") {
		from = "HEAD"
	}
	_, err = g.take(from, within, f.has("S"), f.has("W") || !f.has("S"))
	return err
}

// take puts files of a commit, or of the index when from is empty, into the index and the work tree, and returns how many
// differed there.
func (g *call) take(from string, within []scope, staged, work bool) (n int, err error) {
	x, err := g.readIndex()
	if err != nil {
		return 0, err
	}
	source := indexSnapshot(x)
	if from != "" {
		_, head, err := g.head()
		if err != nil {
			return 0, err
		}
		if from != "HEAD" || !head.IsZero() {
			c, ok := g.commitNamed(from)
			if !ok {
				return 0, g.fatal("could not resolve %s", from)
			}
			head = c.Hash
		}
		if source, err = g.commitSnapshot(head); err != nil {
			return 0, err
		}
	}
	if err := g.matchAll(source, x, within); err != nil {
		return 0, err
	}
	if work {
		now, err := g.workSnapshot(x)
		if err != nil {
			return 0, err
		}
		for _, c := range changes(now, source, within, false) {
			n++
			if c.to.mode == 0 {
				err = g.removeFile(c.path)
			} else {
				err = g.writeFile(c.path, c.to)
			}
			if err != nil {
				return n, err
			}
		}
	}
	if !staged {
		return n, nil
	}
	for _, c := range changes(indexSnapshot(x), source, within, false) {
		if c.to.mode == 0 {
			unstage(x, c.path)
		} else if err := g.setEntry(x, c.path, c.to); err != nil {
			return n, err
		}
	}
	return n, g.store.SetIndex(x)
}

// matchAll refuses a scope that no file is in.
func (g *call) matchAll(source snapshot, x *index.Index, within []scope) error {
	for _, s := range within {
		found := slices.ContainsFunc(x.Entries, func(e *index.Entry) bool { return s.holds(e.Name) })
		for name := range source {
			found = found || s.holds(name)
		}
		if !found && s.path != "" {
			return g.failure("pathspec '%s' did not match any file(s) known to git", s.name)
		}
	}
	return nil
}

// writeFile puts a file into the work tree.
func (g *call) writeFile(name string, e entry) error {
	if e.mode == filemode.Submodule {
		return g.FS.MkdirAll(g.ctx, path.Join(g.root, name), 0o777)
	}
	data, err := g.blob(e.hash)
	if err != nil {
		return err
	}
	full := path.Join(g.root, name)
	if err := g.clear(name); err != nil {
		return err
	}
	if e.mode == filemode.Symlink {
		return g.FS.Symlink(g.ctx, string(data), full)
	}
	mode := uint32(0o666)
	if e.mode == filemode.Executable {
		mode = 0o777
	}
	return g.FS.WriteFile(g.ctx, full, data, mode)
}

// clear makes room for a file: nothing is there afterwards, and its directory is.
func (g *call) clear(name string) error {
	full := path.Join(g.root, name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if a, err := g.FS.Lstat(g.ctx, path.Join(g.root, dir)); err == nil && !(info{attr: a}).IsDir() {
			if err := g.FS.Remove(g.ctx, path.Join(g.root, dir)); err != nil {
				return err
			}
		}
	}
	if err := g.FS.MkdirAll(g.ctx, path.Dir(full), 0o777); err != nil {
		return err
	}
	if err := g.FS.Remove(g.ctx, full); err != nil && !notThere(err) {
		return err
	}
	return nil
}

// goTo makes the index and the work tree of one commit those of another. Changes of the user's are kept, and refused where
// they are in the way, unless force throws them away.
func (g *call) goTo(from, to plumbing.Hash, force bool, what string) error {
	old, err := g.commitSnapshot(from)
	if err != nil {
		return err
	}
	target, err := g.commitSnapshot(to)
	if err != nil {
		return err
	}
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	staged := indexSnapshot(x)
	if force {
		old = staged
	}
	list := changes(old, target, nil, false)
	if force {
		now, err := g.workSnapshot(x)
		if err != nil {
			return err
		}
		list = append(list, changes(now, target, nil, false)...)
	} else if err := g.inTheWay(list, staged, what); err != nil {
		return err
	}
	for _, c := range list {
		if c.to.mode == 0 {
			unstage(x, c.path)
			err = g.removeFile(c.path)
		} else if err = g.writeFile(c.path, c.to); err == nil {
			err = g.setEntry(x, c.path, c.to)
		}
		if err != nil {
			return err
		}
	}
	return g.store.SetIndex(x)
}

// inTheWay refuses changes to files that the user has changed.
func (g *call) inTheWay(list []change, staged snapshot, what string) error {
	var local, fresh []string
	for _, c := range list {
		now, err := g.workEntry(c.path)
		missing := notThere(err)
		if err != nil && !missing {
			return err
		}
		in, tracked := staged[c.path]
		switch {
		case tracked && in.hash == c.to.hash && (missing || now.hash == c.to.hash):
		case tracked && (in.hash != c.from.hash || !missing && now.hash != in.hash):
			local = append(local, c.path)
		case !tracked && !missing && now.hash != c.to.hash:
			fresh = append(fresh, c.path)
		}
	}
	then := map[string]string{"checkout": "switch branches", "merge": "merge"}[what]
	if len(local) > 0 {
		g.tell("error: Your local changes to the following files would be overwritten by %s:\n\t%s\n"+
			"Please commit your changes or stash them before you %s.\n", what, strings.Join(local, "\n\t"), then)
	}
	if len(fresh) > 0 {
		g.tell("error: The following untracked working tree files would be overwritten by %s:\n\t%s\n"+
			"Please move or remove them before you %s.\n", what, strings.Join(fresh, "\n\t"), then)
	}
	if len(local)+len(fresh) > 0 {
		g.tell("Aborting\n")
		return tool.Exit(1)
	}
	return nil
}
