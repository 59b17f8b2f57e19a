package git

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var (
	addOptions       = []string{"A=all", "u=update", "f=force", "v=verbose"}
	rmOptions        = []string{"cached", "f=force", "r", "q=quiet", "ignore-unmatch"}
	mvOptions        = []string{"f=force", "k", "v=verbose"}
	listFilesOptions = []string{"c=cached", "o=others", "exclude-standard", "s=stage", "m=modified", "d=deleted", "u=unmerged", "z"}
)

// add is git add.
func (g *call) add(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	names := append(f.args, f.paths...)
	if len(names) == 0 && !f.has("A") && !f.has("u") {
		g.tell("Nothing specified, nothing added.\nhint: Maybe you wanted to say 'git add .'?\n" +
			"hint: Turn this message off by running\nhint: \"git config advice.addEmptyPathspec false\"\n")
		return nil
	}
	within, err := g.scopes(names)
	if err != nil {
		return err
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	ignore, err := g.ignored()
	if err != nil {
		return err
	}
	if f.has("f") {
		ignore = nil
	}
	var fresh []string
	if !f.has("u") {
		if fresh, err = g.untracked(x, ignore, false); err != nil {
			return err
		}
	}
	if err := g.checkScopes(x, fresh, within); err != nil {
		return err
	}
	if err := g.stageAll(x, within, fresh, f.has("v")); err != nil {
		return err
	}
	return g.saveIndex(x)
}

// stageAll puts into the index what differs from it, within scopes.
func (g *call) stageAll(x *index.Index, within []scope, fresh []string, verbose bool) error {
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
	}
	for name := range unmerged(x) {
		if now[name].none() && inScopes(within, name) {
			unstage(x, name)
		}
	}
	for _, c := range changes(indexSnapshot(x), now, within, false) {
		word := "add"
		if c.to.mode == 0 {
			unstage(x, c.path)
			word = "remove"
		} else if err := g.stage(x, c.path); err != nil {
			return err
		}
		if verbose {
			_ = g.print("%s '%s'\n", word, c.path)
		}
	}
	for _, name := range fresh {
		if !inScopes(within, name) {
			continue
		}
		if err := g.stage(x, name); err != nil {
			return err
		}
		if verbose {
			_ = g.print("add '%s'\n", name)
		}
	}
	return nil
}

// checkScopes refuses a scope that nothing is in.
func (g *call) checkScopes(x *index.Index, fresh []string, within []scope) error {
	var hidden []string
	for _, s := range within {
		holds := func(name string) bool { return s.holds(name) }
		if s.path == "" || s.exclude || slices.ContainsFunc(fresh, holds) ||
			slices.ContainsFunc(x.Entries, func(e *index.Entry) bool { return s.holds(e.Name) }) {
			continue
		}
		a, err := g.lstat(s.path, nil)
		switch {
		case err != nil && g.beyondLink(s.path):
			return g.fatal("pathspec '%s' is beyond a symbolic link", s.name)
		case err != nil:
			return g.fatal("pathspec '%s' did not match any files", s.name)
		case a.Type != vfs.TypeDir || g.hasFiles(s.path):
			hidden = append(hidden, s.path)
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	g.tell("The following paths are ignored by one of your .gitignore files:\n%s\nhint: Use -f if you really want to add them.\n"+
		"hint: Turn this message off by running\nhint: \"git config advice.addIgnoredFile false\"\n", strings.Join(hidden, "\n"))
	g.Status = 1
	return nil
}

func (g *call) hasFiles(dir string) bool {
	entries, err := g.FS.ReadDir(g.ctx, path.Join(g.root, dir))
	return err == nil && len(entries) > 0
}

// rm is git rm.
func (g *call) rm(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	if len(within) == 0 {
		return g.fatal("No pathspec was given. Which files should I remove?")
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	names, err := g.tracked(x, within, f)
	if err != nil {
		return err
	}
	if !f.has("f") {
		if err := g.checkRemoval(x, names, f.has("cached")); err != nil {
			return err
		}
	}
	for _, name := range names {
		unstage(x, name)
		if !f.has("q") {
			_ = g.print("rm '%s'\n", name)
		}
		if !f.has("cached") {
			if err := g.removeFile(name); err != nil {
				return errors.Join(err, g.saveIndex(x))
			}
		}
	}
	return g.saveIndex(x)
}

// tracked lists the files of the index that scopes hold.
func (g *call) tracked(x *index.Index, within []scope, f *flags) ([]string, error) {
	var names []string
	for _, s := range within {
		found := s.exclude
		for _, e := range x.Entries {
			if s.exclude || !s.holds(e.Name) || !inScopes(within, e.Name) {
				continue
			}
			found = true
			if e.Name != s.path && !strings.ContainsAny(s.path, "*?[") && !f.has("r") {
				return nil, g.fatal("not removing '%s' recursively without -r", s.name)
			}
			names = append(names, e.Name)
		}
		if !found && !f.has("ignore-unmatch") {
			return nil, g.fatal("pathspec '%s' did not match any files", s.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkRemoval refuses to remove what is nowhere else.
func (g *call) checkRemoval(x *index.Index, names []string, cached bool) error {
	_, commit, err := g.head()
	if err != nil {
		return err
	}
	old, err := g.commitSnapshot(commit)
	if err != nil {
		return err
	}
	staged := indexSnapshot(x)
	var both, changed, local []string
	for _, name := range names {
		now, err := g.workEntry(name, nil)
		if notThere(err) {
			continue
		}
		if err != nil {
			return err
		}
		now.mode = g.modeIn(x, name, now.mode)
		file, commit := !now.is(staged[name]), !staged[name].is(old[name])
		switch {
		case staged[name].none(): // not merged
		case file && commit:
			both = append(both, name)
		case cached:
		case commit:
			changed = append(changed, name)
		case file:
			local = append(local, name)
		}
	}
	for _, p := range []struct {
		names []string
		what  string
		hint  string
	}{
		{both, "staged content different from both the\nfile and the HEAD", "use -f to force removal"},
		{changed, "changes staged in the index", "use --cached to keep the file, or -f to force removal"},
		{local, "local modifications", "use --cached to keep the file, or -f to force removal"},
	} {
		if len(p.names) == 0 {
			continue
		}
		verb, noun := "has", "file"
		if len(p.names) > 1 {
			verb, noun = "have", "files"
		}
		g.tell("error: the following %s %s %s:\n    %s\n(%s)\n", noun, verb, p.what, strings.Join(p.names, "\n    "), p.hint)
	}
	if len(both)+len(changed)+len(local) > 0 {
		return tool.Exit(1)
	}
	return nil
}

// mv is git mv.
func (g *call) mv(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	names, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	if len(names) < 2 {
		g.tell("usage: git mv [<options>] <source>... <destination>\n")
		return tool.Exit(129)
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	to := names[len(names)-1]
	a, err := g.lstat(to.path, nil)
	into := err == nil && a.Type == vfs.TypeDir
	if len(names) > 2 && !into {
		return g.fatal("destination '%s' is not a directory", to.name)
	}
	var list []*moving
	for _, from := range names[:len(names)-1] {
		target := to.path
		if into {
			target = slash(to.path, path.Base(from.path))
		}
		m, err := g.planMove(x, from, target, f.has("f"))
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	for _, m := range list {
		if err := g.move(x, m); err != nil {
			return errors.Join(err, g.saveIndex(x))
		}
		if f.has("v") {
			_ = g.print("Renaming %s to %s\n", m.from, m.to)
		}
	}
	return g.saveIndex(x)
}

// moving is what git mv is to do with one operand.
type moving struct {
	from, to string
	entries  []*index.Entry // of the file, or of all in the directory
}

// planMove refuses what cannot be moved before anything is.
func (g *call) planMove(x *index.Index, from scope, target string, force bool) (*moving, error) {
	said := "source=" + from.path + ", destination=" + target
	if _, err := g.lstat(from.path, nil); err != nil {
		return nil, g.fatal("bad source, %s", said)
	}
	if target == from.path || strings.HasPrefix(target, from.path+"/") {
		return nil, g.fatal("can not move directory into itself, %s", said)
	}
	m := &moving{from: from.path, to: target}
	for _, e := range x.Entries {
		switch {
		case e.Name != from.path && !strings.HasPrefix(e.Name, from.path+"/"):
		case e.Stage != 0:
			return nil, g.fatal("conflicted, %s", said)
		default:
			m.entries = append(m.entries, e)
		}
	}
	if len(m.entries) == 0 {
		return nil, g.fatal("not under version control, %s", said)
	}
	if _, err := g.lstat(target, nil); err == nil && !force {
		return nil, g.fatal("destination exists, %s", said)
	}
	return m, nil
}

// move renames a file or a directory in the work tree and in the index.
func (g *call) move(x *index.Index, m *moving) error {
	if err := g.FS.Rename(g.ctx, path.Join(g.root, m.from), path.Join(g.root, m.to)); err != nil {
		return g.fatal("renaming '%s' failed: %s", m.from, reason(err))
	}
	for _, e := range m.entries {
		moved := *e // with the times: what was not staged is not staged now
		unstage(x, e.Name)
		moved.Name = m.to + strings.TrimPrefix(moved.Name, m.from)
		*addEntry(x, moved.Name) = moved
	}
	return nil
}

// listFiles is git ls-files.
func (g *call) listFiles(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	if len(within) == 0 && g.prefix != "" {
		within = []scope{{name: ".", path: g.prefix}}
	}
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	if f.has("o") {
		ignore, err := g.ignored()
		if err != nil {
			return err
		}
		if !f.has("exclude-standard") {
			ignore = nil
		}
		names, err := g.untracked(x, ignore, false)
		if err != nil {
			return err
		}
		return g.printNames(names, within, f)
	}
	if f.has("m") || f.has("d") {
		now, err := g.workSnapshot(x)
		if err != nil {
			return err
		}
		var names []string
		for _, c := range changes(indexSnapshot(x), now, within, false) {
			if f.has("m") || c.to.mode == 0 {
				names = append(names, c.path)
			}
		}
		return g.printNames(names, nil, f)
	}
	for _, e := range x.Entries {
		if !inScopes(within, e.Name) || f.has("u") && e.Stage == 0 {
			continue
		}
		if f.has("s") || f.has("u") {
			_ = g.print("%06o %s %d\t", uint32(e.Mode), e.Hash, e.Stage)
		}
		_ = g.listName(e.Name, f)
	}
	return nil
}

func (g *call) printNames(names []string, within []scope, f *flags) error {
	for _, name := range names {
		if inScopes(within, name) {
			if err := g.listName(name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *call) listName(name string, f *flags) error {
	if f.has("z") {
		return g.print("%s\x00", g.relative(name))
	}
	return g.print("%s\n", quotePath(g.relative(name)))
}
