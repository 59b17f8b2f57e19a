package git

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Stages of a file that a merge could not decide on. What is merged has the stage 0.
const (
	stageBase   index.Stage = 1
	stageOurs   index.Stage = 2
	stageTheirs index.Stage = 3
)

// readIndex reads the index, an empty one when there is none yet, in the order of names and stages.
func (g *call) readIndex() (*index.Index, error) {
	if a, err := g.FS.Stat(g.ctx, path.Join(g.dir, "index")); err == nil {
		if err := g.afford(4 * int64(min(a.Size, maxFile))); err != nil {
			return nil, err
		}
	}
	x, err := g.store.Index()
	if err != nil {
		return nil, g.fatal("index file %s/index: %v", g.dir, err)
	}
	x.Version, x.Cache, x.ResolveUndo, x.EndOfIndexEntry = 2, nil, nil, nil
	slices.SortFunc(x.Entries, func(a, b *index.Entry) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.Stage - b.Stage)
	})
	return x, nil
}

// lockedIndex reads the index for a change of it, which saveIndex writes. Nobody else changes it meanwhile.
func (g *call) lockedIndex() (*index.Index, error) {
	if g.index == nil {
		l, err := g.lock(path.Join(g.dir, "index"))
		if err != nil {
			return nil, err
		}
		g.index = l
	}
	return g.readIndex()
}

// saveIndex writes what lockedIndex read, and gives up the lock.
func (g *call) saveIndex(x *index.Index) error {
	for _, e := range x.Entries {
		if e.SkipWorktree || e.IntentToAdd {
			x.Version = 3
		}
	}
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(x); err != nil {
		return err
	}
	l := g.index
	g.index = nil
	return l.commit(b.Bytes())
}

// findEntry returns where the first entry of a name is, or would be.
func findEntry(x *index.Index, name string) (int, bool) {
	return slices.BinarySearchFunc(x.Entries, name, func(e *index.Entry, name string) int { return strings.Compare(e.Name, name) })
}

// unstage takes all entries of a name out of the index.
func unstage(x *index.Index, name string) {
	i, ok := findEntry(x, name)
	if !ok {
		return
	}
	end := i
	for end < len(x.Entries) && x.Entries[end].Name == name {
		end++
	}
	x.Entries = slices.Delete(x.Entries, i, end)
}

// unstageDir takes all entries below a directory out of the index.
func unstageDir(x *index.Index, dir string) {
	from, _ := findEntry(x, dir+"/")
	to, _ := findEntry(x, dir+"0") // the byte behind a slash
	x.Entries = slices.Delete(x.Entries, from, to)
}

// putEntry makes the index have a file, whatever the work tree has: without the file's times, by which git would take that
// for the same.
func putEntry(x *index.Index, name string, e entry) {
	to := addEntry(x, name)
	to.Mode, to.Hash = e.mode, e.hash
}

// setEntry makes the index have a file that the work tree has too. a is the attributes of the file before it was read, so that a change
// since is seen by whoever compares them; nil is for those that it has now.
func (g *call) setEntry(x *index.Index, name string, e entry, a *vfs.Attr) error {
	putEntry(x, name, e)
	i, _ := findEntry(x, name)
	to := x.Entries[i]
	if a == nil {
		now, err := g.lstat(name, nil)
		if notThere(err) {
			return nil
		}
		if err != nil {
			return err
		}
		a = &now
	}
	if a.Type != vfs.TypeDir {
		to.Size, to.ModifiedAt, to.CreatedAt = uint32(a.Size), a.Mtime.Go(), a.Ctime.Go()
		to.UID, to.GID, to.Inode = a.UID, a.GID, uint32(a.Ino)
	}
	return nil
}

// addEntry makes a new entry of the index the only one of its name. A file takes the place of a directory, and the other
// way round.
func addEntry(x *index.Index, name string) *index.Entry {
	i, ok := findEntry(x, name)
	if ok && x.Entries[i].Stage == 0 {
		*x.Entries[i] = index.Entry{Name: name}
		return x.Entries[i]
	}
	unstage(x, name)
	unstageDir(x, name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		unstage(x, dir)
	}
	e := &index.Entry{Name: name}
	i, _ = findEntry(x, name)
	x.Entries = slices.Insert(x.Entries, i, e)
	return e
}

// setStages makes a file one that is not merged. Zero entries are left out.
func setStages(x *index.Index, name string, base, ours, theirs entry) {
	unstage(x, name)
	i, _ := findEntry(x, name)
	for _, s := range []struct {
		stage index.Stage
		entry
	}{{stageBase, base}, {stageOurs, ours}, {stageTheirs, theirs}} {
		if !s.none() {
			x.Entries = slices.Insert(x.Entries, i, &index.Entry{Name: name, Mode: s.mode, Hash: s.hash, Stage: s.stage})
			i++
		}
	}
}

// indexSnapshot is what of the index is merged.
func indexSnapshot(x *index.Index) snapshot {
	s := snapshot{}
	for _, e := range x.Entries {
		if e.Stage == 0 {
			s[e.Name] = entry{mode: e.Mode, hash: e.Hash}
		}
	}
	return s
}

// unmerged is the stages of the files that are not merged.
func unmerged(x *index.Index) map[string][4]entry {
	var all map[string][4]entry
	for _, e := range x.Entries {
		if e.Stage != 0 {
			if all == nil {
				all = map[string][4]entry{}
			}
			stages := all[e.Name]
			stages[e.Stage] = entry{mode: e.Mode, hash: e.Hash}
			all[e.Name] = stages
		}
	}
	return all
}

// stage puts a file of the work tree into the index.
func (g *call) stage(x *index.Index, name string) error {
	name = strings.TrimSuffix(name, "/")
	if !validPath(name) {
		g.tell("error: invalid path '%s'\nerror: unable to add '%[1]s' to index\n", name)
		return g.fatal("adding files failed")
	}
	if nested, ok, err := g.nested(name); err != nil || ok {
		if err != nil {
			return err
		}
		return g.setEntry(x, name, entry{mode: filemode.Submodule, hash: nested}, nil)
	}
	a, err := g.lstat(name, nil)
	if err != nil {
		return err
	}
	data, mode, err := g.workFile(name)
	if err != nil {
		return err
	}
	h, err := g.putBlob(data)
	if err != nil {
		return err
	}
	return g.setEntry(x, name, entry{mode: g.modeIn(x, name, mode), hash: h}, &a)
}

// modeIn is the mode of a file of the work tree as the index is to have it: where the work tree's says nothing, as it is.
func (g *call) modeIn(x *index.Index, name string, mode filemode.FileMode) filemode.FileMode {
	if mode == filemode.Symlink || g.enabled("core.filemode", true) {
		return mode
	}
	if i, ok := findEntry(x, name); ok && x.Entries[i].Mode.IsFile() && x.Entries[i].Mode != filemode.Symlink {
		return x.Entries[i].Mode
	}
	return filemode.Regular
}

// writeTree stores the index as trees. All of it is merged.
func (g *call) writeTree(x *index.Index) (plumbing.Hash, error) {
	var entries []*index.Entry
	for _, e := range x.Entries {
		if !validPath(e.Name) {
			return plumbing.ZeroHash, g.failure("invalid path '%s'", e.Name)
		}
		if !e.IntentToAdd {
			entries = append(entries, e)
		}
	}
	h, _, err := g.writeBelow(entries, "")
	return h, err
}

// writeBelow stores the tree of a directory, whose files come first in entries, and returns what follows them.
func (g *call) writeBelow(entries []*index.Entry, dir string) (plumbing.Hash, []*index.Entry, error) {
	if strings.Count(dir, "/") > maxDepth {
		return plumbing.ZeroHash, nil, fmt.Errorf("%s: %w", dir, vfs.ErrTooBig)
	}
	t := &object.Tree{}
	for len(entries) > 0 && strings.HasPrefix(entries[0].Name, dir) {
		if err := g.Step(g.ctx, 1); err != nil {
			return plumbing.ZeroHash, nil, err
		}
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

// indexOf is an index of a snapshot, without anything of the work tree.
func indexOf(s snapshot) *index.Index {
	x := &index.Index{Version: 2}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		x.Entries = append(x.Entries, &index.Entry{Name: name, Mode: s[name].mode, Hash: s[name].hash})
	}
	return x
}
