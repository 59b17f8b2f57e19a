package git

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// validPath refuses what is never to be in a work tree: a path that leaves it, or gets into the repository.
func validPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || dotGit(part) {
			return false
		}
	}
	return strings.IndexByte(name, 0) < 0
}

// dotGit says whether some filesystem takes a name for .git, as git does: in other letters, in NTFS's short form, or with
// what NTFS leaves out at the end of a name. A workspace may be mirrored to one.
func dotGit(name string) bool {
	name = strings.ToLower(name)
	rest, ok := strings.CutPrefix(name, ".git")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "git~1"); !ok {
			return false
		}
	}
	if i := strings.IndexAny(rest, `\:`); i >= 0 {
		rest = rest[:i]
	}
	return strings.Trim(rest, ". ") == ""
}

// dirs are directories of the work tree that were seen not to be symlinks.
type dirs map[string]bool

// lstat looks at a file of the work tree. What is behind a symlink is not in the work tree, so it is not there. seen, which
// may be nil, saves looking at directories again.
func (g *call) lstat(name string, seen dirs) (vfs.Attr, error) {
	for i := range len(name) {
		if name[i] != '/' || seen[name[:i]] {
			continue
		}
		a, err := g.FS.Lstat(g.ctx, path.Join(g.root, name[:i]))
		if err != nil {
			return a, err
		}
		if a.Type != vfs.TypeDir {
			return a, vfs.ErrNotExist
		}
		if seen != nil {
			seen[name[:i]] = true
		}
	}
	return g.FS.Lstat(g.ctx, path.Join(g.root, name))
}

// beyondLink says whether a path of the work tree leads through a symlink.
func (g *call) beyondLink(name string) bool {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if a, err := g.FS.Lstat(g.ctx, path.Join(g.root, name[:i])); err != nil || a.Type == vfs.TypeSymlink {
			return err == nil
		}
	}
	return false
}

// workSnapshot lists those files of the index that are in the work tree.
func (g *call) workSnapshot(x *index.Index) (snapshot, error) {
	s, seen := snapshot{}, dirs{}
	for _, e := range x.Entries {
		if e.Mode == filemode.Submodule || e.SkipWorktree {
			now := entry{mode: e.Mode, hash: e.Hash}
			if h, ok, err := g.nested(e.Name); err == nil && ok {
				now.hash = h
			}
			s[e.Name] = now
			continue
		}
		now, err := g.workEntry(e.Name, seen)
		if notThere(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		now.mode = g.modeIn(x, e.Name, now.mode)
		s[e.Name] = now
	}
	return s, nil
}

// workEntry looks at a file of the work tree. A directory is no file.
func (g *call) workEntry(name string, seen dirs) (entry, error) {
	a, err := g.lstat(name, seen)
	if err != nil {
		return entry{}, err
	}
	full := path.Join(g.root, name)
	switch a.Type {
	case vfs.TypeSymlink:
		target, err := g.FS.Readlink(g.ctx, full)
		return entry{filemode.Symlink, plumbing.ComputeHash(plumbing.BlobObject, []byte(target)), true}, err
	case vfs.TypeRegular:
		h, err := g.hashFile(name, a)
		return entry{fileMode(a), h, true}, err
	}
	return entry{}, vfs.ErrNotExist
}

func fileMode(a vfs.Attr) filemode.FileMode {
	if a.Mode&0o100 != 0 {
		return filemode.Executable
	}
	return filemode.Regular
}

// hashFile is the name that a file would have as an object.
func (g *call) hashFile(name string, a vfs.Attr) (plumbing.Hash, error) {
	if c, err := g.conversionOf(name); err != nil {
		return plumbing.ZeroHash, err
	} else if c.on {
		data, _, err := g.workFile(name)
		return plumbing.ComputeHash(plumbing.BlobObject, data), err
	}
	in, err := g.Open(g.ctx, path.Join(g.root, name))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer in.Close()
	if err := g.Step(g.ctx, 10); err != nil {
		return plumbing.ZeroHash, err
	}
	h := plumbing.NewHasher(plumbing.BlobObject, int64(a.Size))
	_, err = io.Copy(h, in)
	return h.Sum(), err
}

// workFile reads a file of the work tree as its object would be, the target of a symlink included.
func (g *call) workFile(name string) ([]byte, filemode.FileMode, error) {
	a, err := g.lstat(name, nil)
	if err != nil {
		return nil, 0, err
	}
	full := path.Join(g.root, name)
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
	if err := g.afford(2 * int64(min(a.Size, maxFile))); err != nil { // its object is made of it
		return nil, 0, err
	}
	data, err := g.FS.ReadFile(g.ctx, full, maxFile)
	if err == nil {
		data, err = g.clean(nil, name, data)
	}
	return data, fileMode(a), err
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

// writeFile puts a file into the work tree, in the place of whatever is there; a directory goes with all that is in it.
func (g *call) writeFile(name string, e entry) error {
	if !validPath(name) {
		return g.failure("invalid path '%s'", name)
	}
	full := path.Join(g.root, name)
	if e.mode == filemode.Submodule {
		if err := g.clear(path.Dir(name)); err != nil {
			return err
		}
		if a, err := g.FS.Lstat(g.ctx, full); err == nil && a.Type != vfs.TypeDir {
			if err := g.FS.Remove(g.ctx, full); err != nil {
				return err
			}
		}
		return g.FS.MkdirAll(g.ctx, full, 0o777)
	}
	// What can go wrong does so before anything is lost.
	c, err := g.conversionOf(name)
	if err != nil {
		return err
	}
	r, size, err := g.openBlob(e.hash)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := g.clear(path.Dir(name)); err != nil {
		return err
	}
	if err := g.FS.RemoveAll(g.ctx, full); err != nil {
		return err
	}
	if e.mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(r, maxConfig))
		if err != nil {
			return err
		}
		return g.FS.Symlink(g.ctx, string(target), full)
	}
	mode := uint32(0o666)
	if e.mode == filemode.Executable {
		mode = 0o777
	}
	var from io.Reader = g.Count(g.ctx, r)
	if c.on && c.crlf {
		data, err := g.blob(e.hash)
		if err == nil {
			data, err = g.smudge(name, data)
		}
		if err != nil {
			return err
		}
		from, size = bytes.NewReader(data), int64(len(data))
	}
	to, err := g.FS.OpenFile(g.ctx, full, treepath.Write|treepath.Create|treepath.Exclusive, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err == nil && n != size {
		err = vfs.ErrCorrupt
	}
	g.attributes.forget(name)
	return err
}

// clear makes a directory of the work tree, and those above it. A file or a symlink that is in the way goes.
func (g *call) clear(dir string) error {
	if dir == "." {
		return nil
	}
	if err := g.clear(path.Dir(dir)); err != nil {
		return err
	}
	full := path.Join(g.root, dir)
	a, err := g.FS.Lstat(g.ctx, full)
	switch {
	case err == nil && a.Type == vfs.TypeDir:
		return nil
	case err == nil:
		if err := g.FS.Remove(g.ctx, full); err != nil {
			return err
		}
	case !notThere(err):
		return err
	}
	return g.FS.MkdirAll(g.ctx, full, 0o777)
}

// removeFile removes a file of the work tree, and directories that are empty then, but for the one that the caller is in.
func (g *call) removeFile(name string) error {
	if !validPath(name) {
		return g.failure("invalid path '%s'", name)
	}
	a, err := g.lstat(name, nil)
	if err == nil && a.Type == vfs.TypeDir {
		return nil // another's
	}
	if err == nil {
		err = g.FS.Remove(g.ctx, path.Join(g.root, name))
	}
	if err != nil && !notThere(err) {
		return err
	}
	for dir := path.Dir(name); dir != "." && dir != g.prefix; dir = path.Dir(dir) {
		a, err := g.lstat(dir, nil)
		if notThere(err) {
			continue // it went with the file
		}
		if err != nil || a.Type != vfs.TypeDir || g.FS.Remove(g.ctx, path.Join(g.root, dir)) != nil {
			break // not empty, or no directory of ours
		}
	}
	return nil
}

// nested returns the commit that a repository inside of the work tree is on. ok is false when there is none.
func (g *call) nested(name string) (h plumbing.Hash, ok bool, err error) {
	a, err := g.lstat(name, nil)
	if err != nil || a.Type != vfs.TypeDir {
		return h, false, err
	}
	dir, err := g.repositoryOf(path.Join(g.root, name))
	if err != nil || dir == "" {
		return h, false, err
	}
	_, h, err = (&repo{store: g.storage(dir)}).head()
	if err == nil && h.IsZero() {
		return h, false, g.failure("'%s/' does not have a commit checked out", name)
	}
	return h, true, err
}

// untracked lists files of the work tree that are not in the index; with collapse, a directory without any that are is
// one name that ends in a slash, as one with a repository of its own always is. ignore may be nil.
func (g *call) untracked(x *index.Index, ignore gitignore.Matcher, collapse bool) ([]string, error) {
	u := &untracked{call: g, files: map[string]bool{}, dirs: map[string]bool{}, ignore: ignore, collapse: collapse}
	for _, e := range x.Entries {
		u.files[e.Name] = true
		for dir := path.Dir(e.Name); dir != "." && !u.dirs[dir]; dir = path.Dir(dir) {
			u.dirs[dir] = true
		}
	}
	err := u.walk("")
	slices.Sort(u.names)
	return u.names, err
}

type untracked struct {
	*call
	files    map[string]bool // of the index
	dirs     map[string]bool // with any of them
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
		case !u.files[name] && (e.Type == vfs.TypeRegular || e.Type == vfs.TypeSymlink) && !u.ignores(name, false):
			u.names = append(u.names, name)
		}
	}
	return nil
}

func (u *untracked) ignores(name string, dir bool) bool {
	return u.ignore != nil && u.ignore.Match(strings.Split(name, "/"), dir)
}

func (u *untracked) directory(name string) error {
	if !u.dirs[name] && u.ignores(name, true) {
		return nil
	}
	if inside, err := u.repositoryOf(path.Join(u.root, name)); err == nil && inside != "" {
		if !u.files[name] {
			u.names = append(u.names, name+"/")
		}
		return nil
	}
	if u.dirs[name] || !u.collapse {
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
