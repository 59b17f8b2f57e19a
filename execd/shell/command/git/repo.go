package git

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// repo is a repository with its work tree.
type repo struct {
	root   string // of the work tree, absolute; "" for a bare one
	dir    string // of the repository, absolute: .git in the work tree as a rule
	prefix string // where the caller is below the root
	store  *filesystem.Storage
	config *config.Config // of the repository, over that of the user
	hashes *hashList      // for short; nil before
	opened *[]*pack       // nil before
	recent *cache.ObjectLRU

	shallow    map[plumbing.Hash]bool // commits whose parents are not here; nil before
	attributes *attributes            // nil before
}

// setting is a variable of the configuration, by its whole name.
type setting struct{ name, value string }

// maxConfig bounds a file of the configuration.
const maxConfig = 1 << 20

// keptObjects is how much is kept of the small objects that were read.
const keptObjects = 16 << 20

// elsewhere are the variables that put a part of a repository where we do not look.
var elsewhere = []string{"GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE"}

// open finds the repository around the working directory, or where $GIT_DIR says.
func (g *call) open() error {
	for _, name := range elsewhere {
		if v, _ := g.Getenv(name); v != "" {
			return g.fatal("%s is set, which is not supported here", name)
		}
	}
	here, err := g.FS.RealPath(g.ctx, ".")
	if err != nil {
		return err
	}
	if dir, _ := g.Getenv("GIT_DIR"); dir != "" {
		return g.openNamed(dir, here)
	}
	for dir := here; ; dir = path.Dir(dir) {
		inside, err := g.repositoryOf(dir)
		switch {
		case err != nil:
			return err
		case inside != "":
			return g.use(dir, inside, here)
		case g.isRepository(dir):
			return g.use("", dir, here)
		case dir == "/":
			return g.fatal("not a git repository (or any of the parent directories): .git")
		}
	}
}

// openNamed takes the repository that the environment names.
func (g *call) openNamed(name, here string) error {
	dir, err := g.FS.RealPath(g.ctx, name)
	if err != nil || !g.isRepository(dir) {
		return g.fatal("not a git repository: '%s'", name)
	}
	root := here
	if tree, _ := g.Getenv("GIT_WORK_TREE"); tree != "" {
		if root, err = g.FS.RealPath(g.ctx, tree); err != nil {
			return g.fatal("invalid work tree '%s': %s", tree, reason(err))
		}
	}
	return g.use(root, dir, here)
}

// repositoryOf returns the repository of a work tree: its .git, or what the file .git names. It is empty when there is none.
func (g *call) repositoryOf(root string) (string, error) {
	dir := path.Join(root, ".git")
	a, err := g.FS.Stat(g.ctx, dir)
	if notThere(err) {
		return "", nil
	}
	if err != nil || a.Type == vfs.TypeDir {
		if err == nil && !g.isRepository(dir) {
			return "", nil
		}
		return dir, err
	}
	b, err := g.FS.ReadFile(g.ctx, dir, maxConfig)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("invalid gitfile format: %s", dir)
	}
	if !strings.HasPrefix(to, "/") {
		to = path.Join(root, to)
	}
	if !g.isRepository(to) {
		return "", fmt.Errorf("not a git repository: %s", to)
	}
	return to, nil
}

// isRepository says whether a directory has what git looks for in a repository.
func (g *call) isRepository(dir string) bool {
	if _, err := g.FS.Stat(g.ctx, path.Join(dir, "commondir")); err == nil {
		return true // a linked work tree, which use refuses
	}
	head, err := g.FS.Stat(g.ctx, path.Join(dir, "HEAD"))
	if err != nil || head.Type != vfs.TypeRegular {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if a, err := g.FS.Stat(g.ctx, path.Join(dir, name)); err != nil || a.Type != vfs.TypeDir {
			return false
		}
	}
	return true
}

// use takes a repository. root is its work tree, "" when it has none.
func (g *call) use(root, dir, here string) error {
	if _, err := g.FS.Stat(g.ctx, path.Join(dir, "commondir")); err == nil {
		return g.fatal("'%s' is a linked work tree, which is not supported here", root)
	}
	if a, err := g.FS.Stat(g.ctx, path.Join(dir, alternates)); err == nil && a.Size > 0 {
		return g.fatal("'%s' has objects elsewhere, by %s, which is not supported here", dir, alternates)
	}
	prefix, ok := strings.CutPrefix(here, strings.TrimSuffix(root, "/")+"/")
	if !ok || root == "" {
		prefix = ""
	}
	g.repo = &repo{root: root, dir: dir, prefix: prefix, store: g.storage(dir), recent: cache.NewObjectLRU(keptObjects)}
	var err error
	if g.config, err = g.readConfig(path.Join(dir, "config")); err != nil {
		return err
	}
	return g.checkFormat()
}

func (g *call) disk(dir string) *disk {
	return &disk{ctx: g.ctx, fs: g.FS.At("/"), root: dir, rand: g.Rand}
}

// alternates is the file of a repository that says where it has more objects.
const alternates = "objects/info/alternates"

// storage is go-git's view of a repository, of which its references and its index are used, and loose objects written.
func (g *call) storage(dir string) *filesystem.Storage {
	inside := g.disk(dir)
	inside.repository = true
	return filesystem.NewStorage(inside, cache.NewObjectLRU(cache.MiByte))
}

// checkFormat refuses a repository of a form that we would read wrongly.
func (g *call) checkFormat() error {
	if tree := g.setting("core.worktree"); tree != "" && g.root != "" {
		if !strings.HasPrefix(tree, "/") {
			tree = path.Join(g.dir, tree)
		}
		if real, err := g.FS.RealPath(g.ctx, tree); err != nil || real != g.root {
			return g.fatal("the work tree of '%s' is '%s' by core.worktree, which is not supported here", g.dir, tree)
		}
	}
	if g.enabled("core.sparsecheckout", false) {
		return g.fatal("'%s' has a sparse work tree, which is not supported here", g.dir)
	}
	switch v := g.setting("core.repositoryformatversion"); v {
	case "", "0":
		return nil
	case "1":
	default:
		return g.fatal("Expected git repo version <= 1, found %s", v)
	}
	if !g.config.HasSection("extensions") {
		return nil
	}
	for _, o := range g.config.Section("extensions").Options {
		key, value := strings.ToLower(o.Key), strings.ToLower(o.Value)
		if key == "noop" || key == "preciousobjects" || key == "objectformat" && value == "sha1" || key == "worktreeconfig" && value == "false" {
			continue
		}
		return g.fatal("unknown repository extension found:\n\t%s", key)
	}
	return nil
}

// bare says whether a repository has no work tree of its own.
func (g *call) bare() bool { return g.root == "" || g.setting("core.bare") == "true" }

// readConfig reads a file of the configuration over the user's.
func (g *call) readConfig(file string) (*config.Config, error) {
	c := config.New()
	for _, name := range []string{g.userConfig(), file} {
		b, err := g.FS.ReadFile(g.ctx, name, maxConfig)
		if notThere(err) {
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

// userConfig is the user's own file of the configuration.
func (g *call) userConfig() string {
	home, _ := g.Getenv("HOME")
	return path.Join("/", home, ".gitconfig")
}

// setting returns a variable by its name, empty when it is not set.
func (g *call) setting(name string) string {
	values := g.settings(normalName(name))
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// settings returns all values of a variable, by its normal name, the one that counts last.
func (g *call) settings(name string) (values []string) {
	section, sub, key := splitName(name)
	if g.repo != nil && g.config != nil && g.config.HasSection(section) {
		options := g.config.Section(section).Options
		if sub != "" {
			options = nil
			if s := g.config.Section(section); s.HasSubsection(sub) {
				options = s.Subsection(sub).Options
			}
		}
		for _, o := range options {
			if o.IsKey(key) {
				values = append(values, o.Value)
			}
		}
	}
	for _, o := range g.overrides {
		if o.name == name {
			values = append(values, o.value)
		}
	}
	return values
}

// splitName takes a variable's name apart.
func splitName(name string) (section, sub, key string) {
	section, key, _ = strings.Cut(name, ".")
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		sub, key = key[:i], key[i+1:]
	}
	return strings.ToLower(section), sub, strings.ToLower(key)
}

// normalName is the one spelling of a variable's name: only a subsection has letters of two kinds.
func normalName(name string) string {
	section, sub, key := splitName(name)
	if sub == "" {
		return section + "." + key
	}
	return section + "." + sub + "." + key
}

// enabled says whether a variable that is yes or no says yes; usual is for one that is not set.
func (g *call) enabled(name string, usual bool) bool {
	if values := g.settings(normalName(name)); len(values) > 0 {
		return yes(values[len(values)-1])
	}
	return usual
}

// yes reads a value that is yes or no. A variable without a value is yes.
func yes(value string) bool {
	switch strings.ToLower(value) {
	case "false", "no", "off", "0":
		return false
	}
	return true
}

// path makes a path that the caller names one below the work tree: "" is its root.
func (g *call) path(name string) (string, error) {
	if g.root == "" {
		return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
	}
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
		magic, rest, err := pathMagic(name)
		if err != nil {
			return nil, g.fatal("%v", err)
		}
		from := *g
		if magic.top && g.repo != nil {
			top := *g.repo
			top.prefix, from.repo = "", &top
		}
		p, err := from.path(rest)
		if err != nil {
			return nil, err
		}
		list = append(list, scope{name, p, magic.exclude})
	}
	return list, nil
}

// magic is what a colon before a path says of it: gitglossary(7), pathspec.
type magic struct{ top, exclude bool }

// pathMagic takes what a colon says off a path.
func pathMagic(name string) (m magic, rest string, err error) {
	rest, ok := strings.CutPrefix(name, ":")
	if !ok {
		return m, name, nil
	}
	if words, after, ok := strings.Cut(strings.TrimPrefix(rest, "("), ")"); ok && rest[0] == '(' {
		for word := range strings.SplitSeq(words, ",") {
			switch word {
			case "top":
				m.top = true
			case "exclude":
				m.exclude = true
			case "":
			default:
				return m, "", fmt.Errorf("pathspec magic '%s' in '%s' is not supported here", word, name)
			}
		}
		return m, after, nil
	}
	for rest != "" {
		switch rest[0] {
		case '/':
			m.top = true
		case '!', '^':
			m.exclude = true
		case ':':
			return m, rest[1:], nil
		default:
			return m, rest, nil
		}
		rest = rest[1:]
	}
	return m, rest, nil
}

// scope is what a path names: a file, or all in a directory, or what a pattern matches; or what is not to be among that.
type scope struct {
	name, path string
	exclude    bool
}

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
	some, held := false, false
	for _, s := range list {
		switch holds := s.holds(name); {
		case s.exclude && holds:
			return false
		case !s.exclude:
			some, held = true, held || holds
		}
	}
	return held || !some
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

var initOptions = []string{"q=quiet", "b:=initial-branch", "bare"}

// init makes a repository.
func (g *call) init(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if len(f.args) > 1 {
		g.tell("usage: git init [-q | --quiet] [--bare] [-b <branch-name> | --initial-branch=<branch-name>] [<directory>]\n")
		return tool.Exit(129)
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
	at := dir
	if !f.has("bare") {
		at = path.Join(dir, ".git")
	}
	word := "Initialized empty"
	if g.isRepository(at) {
		word = "Reinitialized existing"
		if f.has("b") {
			g.tell("warning: re-init: ignored --initial-branch=%s\n", f.value("b"))
		}
	} else if err := g.make(at, f.value("b"), f.has("bare")); err != nil {
		return err
	}
	if f.has("q") {
		return nil
	}
	return g.print("%s Git repository in %s/\n", word, strings.TrimSuffix(at, "/"))
}

// make writes what a repository without a commit has.
func (g *call) make(dir, branch string, bare bool) error {
	if branch == "" {
		var err error
		if branch, err = g.defaultBranch(); err != nil {
			return err
		}
	}
	if err := g.checkBranch(branch); err != nil {
		return err
	}
	at := g.FS.At(dir)
	if err := g.FS.MkdirAll(g.ctx, dir, 0o777); err != nil {
		return err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := at.MkdirAll(g.ctx, sub, 0o777); err != nil {
			return err
		}
	}
	logs := "\tlogallrefupdates = true\n"
	if bare {
		logs = ""
	}
	for _, file := range []struct{ name, text string }{
		{"config", fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = %t\n%s", bare, logs)},
		{"description", "Unnamed repository; edit this file 'description' to name the repository.\n"},
		{"info/exclude", "# Patterns of files that are ignored here alone\n"},
		{"HEAD", "ref: refs/heads/" + branch + "\n"}, // the last: it makes it a repository
	} {
		if err := at.WriteFile(g.ctx, file.name, []byte(file.text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// defaultBranch is the branch that a new repository is on.
func (g *call) defaultBranch() (string, error) {
	user, err := g.fileConfig(g.userConfig())
	if err != nil {
		return "", err
	}
	before := g.repo
	defer func() { g.repo = before }()
	g.repo = &repo{config: user}
	return cmp.Or(g.setting("init.defaultbranch"), "master"), nil
}

// notThere says whether an error is that a file or a reference is not there, or what it would be in.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrNotDir) ||
		errors.Is(err, plumbing.ErrReferenceNotFound)
}
