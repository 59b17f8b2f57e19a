package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// stage puts a file of the work tree into the index.
func (g *call) stage(x *index.Index, name string) error {
	data, mode, err := g.workFile(name)
	if err != nil {
		return err
	}
	h, err := g.putBlob(data)
	if err != nil {
		return err
	}
	return g.setEntry(x, name, entry{mode: mode, hash: h})
}

// setEntry makes an entry of the index say what the work tree has.
func (g *call) setEntry(x *index.Index, name string, e entry) error {
	i, ok := findEntry(x, name)
	if !ok {
		// A file takes the place of a directory, and the other way round.
		x.Entries = slices.DeleteFunc(x.Entries, func(o *index.Entry) bool {
			return strings.HasPrefix(o.Name, name+"/") || strings.HasPrefix(name, o.Name+"/")
		})
		i, _ = findEntry(x, name)
		x.Entries = slices.Insert(x.Entries, i, &index.Entry{Name: name})
	}
	to := x.Entries[i]
	to.Mode, to.Hash, to.Stage, to.Size = e.mode, e.hash, 0, 0
	if a, err := g.FS.Lstat(g.ctx, path.Join(g.root, name)); err == nil && a.Type != vfs.TypeDir {
		to.Size, to.ModifiedAt, to.CreatedAt = uint32(a.Size), a.Mtime.Go(), a.Ctime.Go()
		to.UID, to.GID, to.Inode = a.UID, a.GID, uint32(a.Ino)
	}
	return nil
}

func findEntry(x *index.Index, name string) (int, bool) {
	return slices.BinarySearchFunc(x.Entries, name, func(e *index.Entry, name string) int { return strings.Compare(e.Name, name) })
}

func unstage(x *index.Index, name string) {
	if i, ok := findEntry(x, name); ok {
		x.Entries = slices.Delete(x.Entries, i, i+1)
	}
}

// readIndex reads the index, an empty one when there is none yet.
func (g *call) readIndex() (*index.Index, error) {
	x, err := g.store.Index()
	if err != nil {
		return nil, err
	}
	x.Version, x.Cache, x.ResolveUndo, x.EndOfIndexEntry = 2, nil, nil, nil
	slices.SortFunc(x.Entries, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	return x, nil
}

// writeTree stores the index as trees.
func (g *call) writeTree(x *index.Index) (plumbing.Hash, error) {
	h, _, err := g.writeBelow(x.Entries, "")
	return h, err
}

// writeBelow stores the tree of a directory, whose files come first in entries, and returns what follows them.
func (g *call) writeBelow(entries []*index.Entry, dir string) (plumbing.Hash, []*index.Entry, error) {
	t := &object.Tree{}
	for len(entries) > 0 && strings.HasPrefix(entries[0].Name, dir) {
		e := entries[0]
		name, _, below := strings.Cut(e.Name[len(dir):], "/")
		if !below {
			t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: e.Mode, Hash: e.Hash})
			entries = entries[1:]
			continue
		}
		h, rest, err := g.writeBelow(entries, dir+name+"/")
		if err != nil {
			return h, nil, err
		}
		t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h})
		entries = rest
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return strings.Compare(treeKey(a), treeKey(b)) })
	h, err := g.put(t)
	return h, entries, err
}

// treeKey is what trees are in the order of.
func treeKey(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// put stores an object that encodes itself.
func (g *call) put(v interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	o := g.store.NewEncodedObject()
	if err := v.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	if g.store.HasEncodedObject(o.Hash()) == nil {
		return o.Hash(), nil
	}
	return g.store.SetEncodedObject(o)
}

// add is git add.
func (g *call) add(args []string) error {
	f, err := g.flags(args, "A=all", "u=update", "f=force", "v=verbose")
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
	x, err := g.readIndex()
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
	return g.store.SetIndex(x)
}

// stageAll puts into the index what differs from it, within scopes.
func (g *call) stageAll(x *index.Index, within []scope, fresh []string, verbose bool) error {
	now, err := g.workSnapshot(x)
	if err != nil {
		return err
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
		if s.path == "" || slices.ContainsFunc(fresh, holds) ||
			slices.ContainsFunc(x.Entries, func(e *index.Entry) bool { return s.holds(e.Name) }) {
			continue
		}
		a, err := g.FS.Lstat(g.ctx, path.Join(g.root, s.path))
		switch {
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
	f, err := g.flags(args, "cached", "f=force", "r", "q=quiet", "ignore-unmatch")
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
	x, err := g.readIndex()
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
				return err
			}
		}
	}
	return g.store.SetIndex(x)
}

// tracked lists the files of the index that scopes hold.
func (g *call) tracked(x *index.Index, within []scope, f *flags) ([]string, error) {
	var names []string
	for _, s := range within {
		found := false
		for _, e := range x.Entries {
			if !s.holds(e.Name) {
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
	var changed, local []string
	for _, name := range names {
		now, err := g.workEntry(name)
		if notThere(err) {
			continue
		}
		if err != nil {
			return err
		}
		differs := now.hash != staged[name].hash
		switch {
		case staged[name].hash != old[name].hash && !cached:
			changed = append(changed, name)
		case differs && !cached:
			local = append(local, name)
		}
	}
	for _, p := range []struct {
		names []string
		what  string
		hint  string
	}{
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
	if len(changed)+len(local) > 0 {
		return tool.Exit(1)
	}
	return nil
}

// removeFile removes a file of the work tree, and directories that are empty then.
func (g *call) removeFile(name string) error {
	if err := g.FS.Remove(g.ctx, path.Join(g.root, name)); err != nil && !notThere(err) {
		return err
	}
	for dir := path.Dir(name); dir != "." && dir != g.prefix; dir = path.Dir(dir) {
		if g.FS.Remove(g.ctx, path.Join(g.root, dir)) != nil {
			break // not empty
		}
	}
	return nil
}

// mv is git mv.
func (g *call) mv(args []string) error {
	f, err := g.flags(args, "f=force", "k", "v=verbose")
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
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	to := names[len(names)-1]
	a, err := g.FS.Stat(g.ctx, path.Join(g.root, to.path))
	into := err == nil && a.Type == vfs.TypeDir
	for _, from := range names[:len(names)-1] {
		target := to.path
		if into {
			target = slash(to.path, path.Base(from.path))
		}
		if err := g.move(x, from, target, to.name, f.has("f")); err != nil {
			return err
		}
	}
	return g.store.SetIndex(x)
}

// move renames a file or a directory in the work tree and in the index.
func (g *call) move(x *index.Index, from scope, target, shown string, force bool) error {
	said := "source=" + from.path + ", destination=" + target
	if _, err := g.FS.Lstat(g.ctx, path.Join(g.root, from.path)); err != nil {
		return g.fatal("bad source, %s", said)
	}
	var moved []*index.Entry
	for _, e := range x.Entries {
		if from.holds(e.Name) {
			moved = append(moved, e)
		}
	}
	if len(moved) == 0 {
		return g.fatal("not under version control, %s", said)
	}
	if _, err := g.FS.Lstat(g.ctx, path.Join(g.root, target)); err == nil && !force {
		return g.fatal("destination exists, %s", said)
	}
	if err := g.FS.Rename(g.ctx, path.Join(g.root, from.path), path.Join(g.root, target)); err != nil {
		return g.fatal("renaming '%s' failed: %s", from.path, reason(err))
	}
	for _, e := range moved {
		old := e.Name
		unstage(x, old)
		if err := g.setEntry(x, target+strings.TrimPrefix(old, from.path), entry{mode: e.Mode, hash: e.Hash}); err != nil {
			return err
		}
	}
	return nil
}

// listFiles is git ls-files.
func (g *call) listFiles(args []string) error {
	f, err := g.flags(args, "c=cached", "o=others", "exclude-standard", "s=stage", "m=modified", "d=deleted")
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	if len(within) == 0 && g.prefix != "" {
		within = []scope{{".", g.prefix}}
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
		return g.printNames(names, within)
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
		return g.printNames(names, nil)
	}
	for _, e := range x.Entries {
		if !inScopes(within, e.Name) {
			continue
		}
		if f.has("s") {
			_ = g.print("%06o %s %d\t", uint32(e.Mode), e.Hash, e.Stage)
		}
		_ = g.print("%s\n", quotePath(g.relative(e.Name)))
	}
	return nil
}

func (g *call) printNames(names []string, within []scope) error {
	for _, name := range names {
		if inScopes(within, name) {
			if err := g.print("%s\n", quotePath(g.relative(name))); err != nil {
				return err
			}
		}
	}
	return nil
}
