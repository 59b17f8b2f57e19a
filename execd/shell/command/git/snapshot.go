package git

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// entry is a file of a snapshot.
type entry struct {
	mode filemode.FileMode
	hash plumbing.Hash
	file bool // its bytes are those of the work tree, and may be in no object
}

// snapshot is the files of a tree, the index or the work tree, by path.
type snapshot map[string]entry

// maxFile bounds a file that git is to hold in memory.
const maxFile = 1 << 30

// treeSnapshot lists a tree; that of no commit is empty.
func (g *call) treeSnapshot(h plumbing.Hash) (snapshot, error) {
	s := snapshot{}
	if h.IsZero() {
		return s, nil
	}
	t, err := object.GetTree(g.store, h)
	if err != nil {
		return nil, err
	}
	w := object.NewTreeWalker(t, true, nil)
	defer w.Close()
	for {
		name, e, err := w.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		if err := g.Step(g.ctx, 1); err != nil {
			return nil, err
		}
		if e.Mode != filemode.Dir {
			s[name] = entry{mode: e.Mode, hash: e.Hash}
		}
	}
}

// commitSnapshot lists the tree of a commit; a zero hash stands for none.
func (g *call) commitSnapshot(h plumbing.Hash) (snapshot, error) {
	if h.IsZero() {
		return snapshot{}, nil
	}
	c, ok := g.peel(h)
	if !ok {
		return g.treeSnapshot(h)
	}
	return g.treeSnapshot(c.TreeHash)
}

func indexSnapshot(x *index.Index) snapshot {
	s := snapshot{}
	for _, e := range x.Entries {
		s[e.Name] = entry{mode: e.Mode, hash: e.Hash}
	}
	return s
}

// workSnapshot lists those files of the index that are in the work tree.
func (g *call) workSnapshot(x *index.Index) (snapshot, error) {
	s := snapshot{}
	for _, e := range x.Entries {
		if e.Mode == filemode.Submodule {
			s[e.Name] = entry{mode: e.Mode, hash: e.Hash}
			continue
		}
		now, err := g.workEntry(e.Name)
		if notThere(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s[e.Name] = now
	}
	return s, nil
}

// workEntry looks at a file of the work tree.
func (g *call) workEntry(name string) (entry, error) {
	data, mode, err := g.workFile(name)
	if err != nil {
		return entry{}, err
	}
	return entry{mode, plumbing.ComputeHash(plumbing.BlobObject, data), true}, nil
}

// workFile reads a file of the work tree, the target of a symlink included.
func (g *call) workFile(name string) ([]byte, filemode.FileMode, error) {
	full := path.Join(g.root, name)
	a, err := g.FS.Lstat(g.ctx, full)
	if err != nil {
		return nil, 0, err
	}
	switch a.Type {
	case vfs.TypeSymlink:
		target, err := g.FS.Readlink(g.ctx, full)
		return []byte(target), filemode.Symlink, err
	case vfs.TypeRegular:
	default:
		return nil, 0, vfs.ErrNotExist
	}
	if err := g.Step(g.ctx, 10+int(a.Size>>10)); err != nil {
		return nil, 0, err
	}
	data, err := g.FS.ReadFile(g.ctx, full, maxFile)
	mode := filemode.Regular
	if a.Mode&0o100 != 0 {
		mode = filemode.Executable
	}
	return data, mode, err
}

// data reads the bytes of an entry.
func (g *call) data(name string, e entry) ([]byte, error) {
	if e.file {
		data, _, err := g.workFile(name)
		return data, err
	}
	if e.mode == filemode.Submodule {
		return []byte("Subproject commit " + e.hash.String() + "\n"), nil
	}
	return g.blob(e.hash)
}

func (g *call) blob(h plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(g.store, h)
	if err != nil {
		return nil, err
	}
	r, err := b.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxFile))
}

// putBlob stores bytes as an object.
func (g *call) putBlob(data []byte) (plumbing.Hash, error) {
	o := g.store.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if g.store.HasEncodedObject(o.Hash()) == nil {
		return o.Hash(), nil
	}
	return g.store.SetEncodedObject(o)
}

// change is how one file differs between two snapshots. A side that has no such file is the zero entry.
type change struct {
	path     string
	old      string // the path before, when it was renamed
	from, to entry
}

// letter is the status that git shows.
func (c change) letter() byte {
	switch {
	case c.old != "":
		return 'R'
	case c.from.mode == 0:
		return 'A'
	case c.to.mode == 0:
		return 'D'
	case c.from.mode&^0o777 != c.to.mode&^0o777:
		return 'T'
	}
	return 'M'
}

// changes compares snapshots, in the order of the paths, within scopes. With renames, a file that went is matched with
// one of the same bytes that came.
func changes(from, to snapshot, within []scope, renames bool) []change {
	var list []change
	for name, a := range from {
		if b := to[name]; (a.hash != b.hash || a.mode != b.mode) && inScopes(within, name) {
			list = append(list, change{path: name, from: a, to: b})
		}
	}
	for name, b := range to {
		if _, ok := from[name]; !ok && inScopes(within, name) {
			list = append(list, change{path: name, to: b})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.path, b.path) })
	if renames {
		list = pairRenames(list)
	}
	return list
}

// pairRenames makes one change of a file that went and one that came with the same bytes.
func pairRenames(list []change) []change {
	gone := map[plumbing.Hash][]int{}
	for i, c := range list {
		if c.to.mode == 0 && c.from.hash != emptyBlob {
			gone[c.from.hash] = append(gone[c.from.hash], i)
		}
	}
	drop := map[int]bool{}
	for i, c := range list {
		if sources := gone[c.to.hash]; c.from.mode == 0 && len(sources) > 0 {
			from := sources[0]
			gone[c.to.hash] = sources[1:]
			list[i].old, list[i].from = list[from].path, list[from].from
			drop[from] = true
		}
	}
	var kept []change
	for i, c := range list {
		if !drop[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

// emptyBlob is the object of no bytes, which says nothing of where a file went.
var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// ignored returns what says which files are ignored.
func (g *call) ignored() (gitignore.Matcher, error) {
	patterns, err := gitignore.ReadPatterns(g.work, nil)
	if err != nil {
		return nil, err
	}
	return gitignore.NewMatcher(patterns), nil
}

// untracked lists files of the work tree that are not in the index; with collapse, a directory without any that are is
// one name that ends in a slash. ignore may be nil.
func (g *call) untracked(x *index.Index, ignore gitignore.Matcher, collapse bool) ([]string, error) {
	u := &untracked{call: g, tracked: map[string]bool{}, ignore: ignore, collapse: collapse}
	for _, e := range x.Entries {
		for name := e.Name; name != "." && !u.tracked[name]; name = path.Dir(name) {
			u.tracked[name] = true
		}
	}
	err := u.walk("")
	slices.Sort(u.names)
	return u.names, err
}

type untracked struct {
	*call
	tracked  map[string]bool // files, and directories with any
	ignore   gitignore.Matcher
	collapse bool
	names    []string
}

func (u *untracked) walk(dir string) error {
	entries, err := u.FS.ReadDir(u.ctx, path.Join(u.root, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := slash(dir, e.Name)
		if err := u.Step(u.ctx, 1); err != nil {
			return err
		}
		switch {
		case e.Name == ".git":
		case e.Type == vfs.TypeDir:
			if err := u.directory(name); err != nil {
				return err
			}
		case !u.tracked[name] && (e.Type == vfs.TypeRegular || e.Type == vfs.TypeSymlink) && !u.ignores(name, false):
			u.names = append(u.names, name)
		}
	}
	return nil
}

func (u *untracked) ignores(name string, dir bool) bool {
	return u.ignore != nil && u.ignore.Match(strings.Split(name, "/"), dir)
}

func (u *untracked) directory(name string) error {
	if !u.tracked[name] && u.ignores(name, true) {
		return nil
	}
	if u.tracked[name] || !u.collapse {
		return u.walk(name)
	}
	before := len(u.names)
	if err := u.walk(name); err != nil {
		return err
	}
	if len(u.names) > before {
		u.names = append(u.names[:before], name+"/")
	}
	return nil
}

func matchGlob(pattern, name string) bool { return tool.Glob(pattern, name, false) }
