package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// repo is a repository with its work tree.
type repo struct {
	root   string // of the work tree, absolute
	prefix string // where the caller is below it
	work   *disk
	store  *filesystem.Storage
	config *config.Config // of the repository, over that of the user
}

// setting is a variable of the configuration, by its whole name.
type setting struct{ name, value string }

// maxConfig bounds a file of the configuration.
const maxConfig = 1 << 20

// open finds the repository around the working directory.
func (g *call) open() error {
	here, err := g.FS.RealPath(g.ctx, ".")
	if err != nil {
		return err
	}
	for dir := here; ; dir = path.Dir(dir) {
		if a, err := g.FS.Stat(g.ctx, path.Join(dir, ".git/HEAD")); err == nil && a.Type == vfs.TypeRegular {
			return g.use(dir, here)
		}
		if dir == "/" {
			return g.fatal("not a git repository (or any of the parent directories): .git")
		}
	}
}

// use takes the repository in a directory.
func (g *call) use(root, here string) error {
	prefix := strings.TrimPrefix(strings.TrimPrefix(here, root), "/")
	d := &disk{ctx: g.ctx, fs: g.FS.At("/"), root: root, rand: g.Rand}
	inside, err := d.Chroot(".git")
	if err != nil {
		return err
	}
	g.repo = &repo{
		root: root, prefix: prefix, work: d, store: filesystem.NewStorage(inside, cache.NewObjectLRU(16*cache.MiByte)),
	}
	g.config, err = g.readConfig(path.Join(root, ".git/config"))
	return err
}

// readConfig reads a file of the configuration over the user's.
func (g *call) readConfig(file string) (*config.Config, error) {
	c := config.New()
	home, _ := g.Getenv("HOME")
	for _, name := range []string{path.Join("/", home, ".gitconfig"), file} {
		b, err := g.FS.ReadFile(g.ctx, name, maxConfig)
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := config.NewDecoder(bytes.NewReader(b)).Decode(c); err != nil {
			return nil, g.fatal("bad config file %s: %v", name, err)
		}
	}
	return c, nil
}

// setting returns a variable by its name, empty when it is not set.
func (g *call) setting(name string) string {
	for _, o := range slices.Backward(g.overrides) {
		if o.name == name {
			return o.value
		}
	}
	if g.repo == nil {
		return ""
	}
	section, sub, key := splitName(name)
	if sub != "" {
		return g.config.Section(section).Subsection(sub).Option(key)
	}
	return g.config.Section(section).Option(key)
}

// splitName takes a variable's name apart.
func splitName(name string) (section, sub, key string) {
	section, key, _ = strings.Cut(name, ".")
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		sub, key = key[:i], key[i+1:]
	}
	return strings.ToLower(section), sub, strings.ToLower(key)
}

// path makes a path that the caller names one below the work tree: "" is its root.
func (g *call) path(name string) (string, error) {
	full := path.Clean(g.FS.Abs(name))
	if !strings.HasPrefix(name, "/") {
		full = path.Join(g.root, g.prefix, name)
	}
	if full == g.root {
		return "", nil
	}
	below, ok := strings.CutPrefix(full, strings.TrimSuffix(g.root, "/")+"/")
	if !ok {
		return "", g.fatal("%s: '%s' is outside repository at '%s'", name, name, g.root)
	}
	return below, nil
}

// scopes makes paths that the caller names scopes of names.
func (g *call) scopes(names []string) ([]scope, error) {
	var list []scope
	for _, name := range names {
		p, err := g.path(name)
		if err != nil {
			return nil, err
		}
		list = append(list, scope{name, p})
	}
	return list, nil
}

// scope is what a path names: a file, or all in a directory, or what a pattern matches.
type scope struct{ name, path string }

func (s scope) holds(name string) bool {
	if s.path == "" || name == s.path || strings.HasPrefix(name, s.path+"/") {
		return true
	}
	if !strings.ContainsAny(s.path, "*?[") {
		return false
	}
	return matchGlob(s.path, name)
}

func inScopes(list []scope, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s scope) bool { return s.holds(name) })
}

// relative is a path as the caller sees it.
func (g *call) relative(name string) string {
	if g.prefix == "" {
		return name
	}
	up, from := 0, g.prefix
	for !strings.HasPrefix(name+"/", from+"/") {
		up++
		if from = path.Dir(from); from == "." {
			return strings.Repeat("../", up) + name
		}
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
	if rest == "" && up == 0 {
		return "./"
	}
	return strings.Repeat("../", up) + rest
}

// head returns the branch that HEAD is on, empty when it is on none, and its commit, zero when there is none yet.
func (r *repo) head() (branch string, commit plumbing.Hash, err error) {
	ref, err := r.store.Reference(plumbing.HEAD)
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	if ref.Type() == plumbing.HashReference {
		return "", ref.Hash(), nil
	}
	at, err := r.store.Reference(ref.Target())
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return ref.Target().Short(), plumbing.ZeroHash, nil
	}
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	return ref.Target().Short(), at.Hash(), nil
}

// setHead moves what HEAD is on to a commit.
func (r *repo) setHead(commit plumbing.Hash) error {
	ref, err := r.store.Reference(plumbing.HEAD)
	if err != nil {
		return err
	}
	name := plumbing.HEAD
	if ref.Type() == plumbing.SymbolicReference {
		name = ref.Target()
	}
	return r.store.SetReference(plumbing.NewHashReference(name, commit))
}

func (r *repo) commitAt(h plumbing.Hash) (*object.Commit, error) { return object.GetCommit(r.store, h) }

// short is a hash as people are told it: the shortest of at least seven digits that is that object's alone.
func (r *repo) short(h plumbing.Hash) string {
	text := h.String()
	n := 7
	near, err := r.store.HashesWithPrefix(h[:3])
	if err != nil {
		return text
	}
	for _, other := range near {
		for other != h && n < len(text) && strings.HasPrefix(other.String(), text[:n]) {
			n++
		}
	}
	return text[:n]
}

// references lists those below a prefix, in the order of their names.
func (r *repo) references(prefix string) ([]*plumbing.Reference, error) {
	iter, err := r.store.IterReferences()
	if err != nil {
		return nil, err
	}
	var list []*plumbing.Reference
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if strings.HasPrefix(ref.Name().String(), prefix) && ref.Type() == plumbing.HashReference {
			list = append(list, ref)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *plumbing.Reference) int { return strings.Compare(a.Name().String(), b.Name().String()) })
	return list, err
}

// init makes a repository.
func (g *call) init(args []string) error {
	f, err := g.flags(args, "q=quiet", "b:=initial-branch")
	if err != nil {
		return err
	}
	if len(f.args) > 1 {
		g.tell("usage: git init [-q | --quiet] [-b <branch-name> | --initial-branch=<branch-name>] [<directory>]\n")
		return fmt.Errorf("too many arguments")
	}
	dir := g.FS.Abs(".")
	if len(f.args) == 1 {
		dir = path.Clean(g.FS.Abs(f.args[0]))
		if err := g.FS.MkdirAll(g.ctx, dir, 0o777); err != nil {
			return err
		}
	}
	if dir, err = g.FS.RealPath(g.ctx, dir); err != nil {
		return err
	}
	word := "Initialized empty"
	if _, err := g.FS.Stat(g.ctx, path.Join(dir, ".git/HEAD")); err == nil {
		word = "Reinitialized existing"
		if f.has("b") {
			g.tell("warning: re-init: ignored --initial-branch=%s\n", f.value("b"))
		}
	} else if err := g.make(g.ctx, dir, f.value("b")); err != nil {
		return err
	}
	if f.has("q") {
		return nil
	}
	return g.print("%s Git repository in %s/.git/\n", word, strings.TrimSuffix(dir, "/"))
}

// make writes what a repository without a commit has.
func (g *call) make(ctx context.Context, dir, branch string) error {
	if branch == "" {
		user, err := g.readConfig("/.gitconfig")
		if err != nil {
			return err
		}
		g.repo = &repo{config: user}
		if branch = g.setting("init.defaultbranch"); branch == "" {
			branch = "master"
		}
	}
	at := g.FS.At(path.Join(dir, ".git"))
	if err := g.FS.MkdirAll(ctx, at.Dir, 0o777); err != nil {
		return err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := at.MkdirAll(ctx, sub, 0o777); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"config":       "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
		"description":  "Unnamed repository; edit this file 'description' to name the repository.\n",
		"info/exclude": "# Patterns of files that are ignored here alone\n",
		"HEAD":         "ref: refs/heads/" + branch + "\n",
	} {
		if err := at.WriteFile(ctx, name, []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// notThere says whether an error is that a file or a reference is not there.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotExist) || errors.Is(err, plumbing.ErrReferenceNotFound)
}
