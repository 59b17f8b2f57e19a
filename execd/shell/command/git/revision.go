package git

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// resolve finds what a revision names: an object of any kind. ok is false when it names none.
func (g *call) resolve(text string) (h plumbing.Hash, ok bool) {
	if i := colon(text); i >= 0 {
		return g.resolvePath(text[:i], text[i+1:])
	}
	base, ops := text, ""
	if i := strings.IndexAny(text, "~^"); i >= 0 {
		base, ops = text[:i], text[i:]
	}
	if h, ok = g.resolveName(base); !ok {
		return h, false
	}
	for ops != "" {
		op := ops[0]
		rest := strings.TrimLeft(ops[1:], "0123456789")
		count := ops[1 : len(ops)-len(rest)]
		n := 1
		if count != "" {
			n, _ = strconv.Atoi(count)
		}
		ops = rest
		if strings.HasPrefix(rest, "{") && op == '^' && count == "" {
			kind, after, closed := strings.Cut(rest[1:], "}")
			ops = after
			if h, ok = g.peelTo(h, kind); !ok || !closed {
				return h, false
			}
			continue
		}
		if op != '~' && op != '^' {
			return h, false
		}
		if h, ok = g.ancestor(h, op, n); !ok {
			return h, false
		}
	}
	return h, true
}

// colon is where a revision ends and a path begins, -1 when there is none: not within braces.
func colon(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			if depth <= 0 {
				return i
			}
		}
	}
	return -1
}

// ancestor follows ~n or ^n from a commit.
func (g *call) ancestor(h plumbing.Hash, op byte, n int) (plumbing.Hash, bool) {
	c, ok := g.peel(h)
	if !ok {
		return h, false
	}
	if op == '^' {
		if n == 0 {
			return c.Hash, true
		}
		if n > len(c.ParentHashes) {
			return h, false
		}
		return c.ParentHashes[n-1], true
	}
	for ; n > 0; n-- {
		if len(c.ParentHashes) == 0 {
			return h, false
		}
		if c, ok = g.peel(c.ParentHashes[0]); !ok {
			return h, false
		}
	}
	return c.Hash, true
}

// peelTo follows ^{kind} from an object: an empty kind is whatever a tag leads to.
func (g *call) peelTo(h plumbing.Hash, kind string) (plumbing.Hash, bool) {
	if text, ok := strings.CutPrefix(kind, "/"); ok {
		return g.lastSaying(h, text)
	}
	switch kind {
	case "commit":
		c, ok := g.peel(h)
		if !ok {
			return h, false
		}
		return c.Hash, true
	case "tree":
		if c, ok := g.peel(h); ok {
			return c.TreeHash, true
		}
	case "", "object", "blob", "tag":
	default:
		return h, false
	}
	for {
		o, err := g.object(plumbing.AnyObject, h)
		if err != nil {
			return h, false
		}
		if o.Type().String() == kind || kind == "object" || kind == "" && o.Type() != plumbing.TagObject {
			return h, true
		}
		t, err := g.tagAt(h)
		if err != nil {
			return h, false
		}
		h = t.Target
	}
}

// lastSaying finds the last commit, from one on backwards, whose message matches.
func (g *call) lastSaying(from plumbing.Hash, text string) (plumbing.Hash, bool) {
	c, ok := g.peel(from)
	re, err := regex.Compile(text, regex.Options{Step: func(n int) error { return g.Step(g.ctx, 1+n>>6) }})
	if !ok || err != nil {
		return from, false
	}
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}}
	if err := w.push(c.Hash); err != nil {
		return from, false
	}
	for {
		c, err := w.next()
		if c == nil || err != nil {
			return from, false
		}
		if ok, err := re.Match([]byte(c.Message)); ok && err == nil {
			return c.Hash, true
		}
	}
}

// peel returns the commit that an object is or a tag leads to.
func (g *call) peel(h plumbing.Hash) (*object.Commit, bool) {
	for {
		if c, err := g.commitAt(h); err == nil {
			return c, true
		}
		t, err := g.tagAt(h)
		if err != nil {
			return nil, false
		}
		h = t.Target
	}
}

func (g *call) resolvePath(rev, name string) (plumbing.Hash, bool) {
	if rev == "" {
		x, err := g.readIndex()
		if err != nil {
			return plumbing.ZeroHash, false
		}
		stage := index.Stage(0)
		if len(name) > 2 && name[0] >= '0' && name[0] <= '3' && name[1] == ':' {
			stage, name = index.Stage(name[0]-'0'), name[2:]
		}
		for i, _ := findEntry(x, name); i < len(x.Entries) && x.Entries[i].Name == name; i++ {
			if x.Entries[i].Stage == stage {
				return x.Entries[i].Hash, true
			}
		}
		return plumbing.ZeroHash, false
	}
	h, ok := g.resolve(rev)
	if !ok {
		return h, false
	}
	h, ok = g.peelTo(h, "tree")
	if !ok {
		return h, false
	}
	rest := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		t, err := g.treeAt(h)
		if err != nil {
			return h, false
		}
		i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == part })
		if i < 0 {
			return h, false
		}
		h = t.Entries[i].Hash
	}
	return h, true
}

// resolveName finds HEAD, a reference as it is or was, or a hash, whole or the beginning of it.
func (g *call) resolveName(name string) (plumbing.Hash, bool) {
	if len(name) == 40 && plumbing.IsHash(name) {
		return plumbing.NewHash(name), true
	}
	if base, ago, ok := strings.Cut(name, "@{"); ok && strings.HasSuffix(ago, "}") {
		return g.resolveAgo(base, strings.TrimSuffix(ago, "}"))
	}
	if name == "" {
		name = "HEAD"
	}
	if full, ok := g.refName(name); ok {
		return g.follow(plumbing.ReferenceName(full))
	}
	if len(name) < 4 || len(name) > 40 {
		return plumbing.ZeroHash, false
	}
	first, err := strconv.ParseUint(name[:2], 16, 8)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	all, err := g.hashesLike(byte(first))
	if err != nil {
		return plumbing.ZeroHash, false
	}
	found := map[plumbing.Hash]bool{}
	for _, h := range all {
		if strings.HasPrefix(h.String(), strings.ToLower(name)) {
			found[h] = true
		}
	}
	for h := range found {
		return h, len(found) == 1
	}
	return plumbing.ZeroHash, false
}

// resolveAgo finds what ref@{ago} names: the upstream of a branch, what HEAD was on some switches ago, or what a reference
// led to some changes ago.
func (g *call) resolveAgo(base, ago string) (plumbing.Hash, bool) {
	branch, head, err := g.head()
	if err != nil {
		return plumbing.ZeroHash, false
	}
	if base != "" && base != "HEAD" && base != "@" {
		branch = strings.TrimPrefix(base, heads)
	}
	switch n, err := strconv.Atoi(ago); {
	case ago == "u" || ago == "upstream":
		u, ok := g.upstream(branch)
		if !ok {
			return plumbing.ZeroHash, false
		}
		return g.follow(plumbing.ReferenceName(u.ref))
	case err != nil:
		return plumbing.ZeroHash, false
	case n < 0:
		name, ok := g.left(-n)
		if base != "" || !ok {
			return plumbing.ZeroHash, false
		}
		return g.resolve(name)
	default:
		full, ok := g.refName(base)
		if base == "" && branch != "" {
			full, ok = heads+branch, true
		} else if base == "" {
			full, ok = "HEAD", true
		}
		if n == 0 && full == "HEAD" {
			return head, ok
		}
		if n == 0 {
			return g.follow(plumbing.ReferenceName(full))
		}
		lines, err := g.readLog(full)
		if !ok || err != nil || n > len(lines) {
			return plumbing.ZeroHash, false
		}
		if n == len(lines) {
			return lines[n-1].old, !lines[n-1].old.IsZero()
		}
		return lines[n].new, true
	}
}

// follow returns what a reference leads to.
func (g *call) follow(name plumbing.ReferenceName) (plumbing.Hash, bool) {
	for range 5 {
		ref, err := g.store.Reference(name)
		if err != nil {
			return plumbing.ZeroHash, false
		}
		if ref.Type() == plumbing.HashReference {
			return ref.Hash(), true
		}
		name = ref.Target()
	}
	return plumbing.ZeroHash, false
}

// commitOf finds a commit by the name that somebody gave.
func (g *call) commitOf(name string) (*object.Commit, error) {
	if h, ok := g.resolve(name); ok {
		if c, ok := g.peel(h); ok {
			return c, nil
		}
	}
	return nil, g.badRevision(name)
}

func (g *call) badRevision(name string) error {
	return g.fatal("ambiguous argument '%s': unknown revision or path not in the working tree.\n"+
		"Use '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", name)
}

// revParseOptions are what revParse takes; it looks at them in their order.
var revParseOptions = []string{"short", "abbrev-ref", "verify", "q=quiet", "show-toplevel", "git-dir", "absolute-git-dir", "is-inside-work-tree",
	"is-bare-repository", "show-prefix"}

// revParse is git rev-parse.
func (g *call) revParse(args []string) error {
	short, abbrev, verify, quiet := false, false, false, false
	for _, a := range args {
		switch a {
		case "--short":
			short = true
		case "--abbrev-ref":
			abbrev = true
		case "--verify":
			verify = true
		case "-q", "--quiet":
			quiet = true
		case "--show-toplevel":
			if g.root == "" {
				return g.fatal("this operation must be run in a work tree")
			}
			_ = g.print("%s\n", g.root)
		case "--absolute-git-dir":
			_ = g.print("%s\n", g.dir)
		case "--git-dir":
			name := g.dir
			if g.prefix == "" && g.dir == path.Join(g.root, ".git") {
				name = ".git"
			}
			_ = g.print("%s\n", name)
		case "--is-inside-work-tree":
			_ = g.print("%t\n", g.root != "")
		case "--is-bare-repository":
			_ = g.print("%t\n", g.bare())
		case "--show-prefix":
			_ = g.print("%s\n", strings.TrimPrefix(slash(g.prefix, ""), "/"))
		default:
			h, ok := g.resolve(a)
			if !ok && quiet {
				return tool.Exit(1)
			}
			if !ok && verify {
				return g.fatal("Needed a single revision")
			}
			if !ok {
				_ = g.print("%s\n", a)
				_ = g.Out.Flush()
				return g.badRevision(a)
			}
			text := h.String()
			if short {
				text = g.short(h)
			} else if abbrev {
				text = g.abbreviated(a)
			}
			_ = g.print("%s\n", text)
		}
	}
	return nil
}

func (g *call) abbreviated(name string) string {
	if ago, ok := strings.CutPrefix(name, "@{-"); ok {
		if n, err := strconv.Atoi(strings.TrimSuffix(ago, "}")); err == nil {
			if left, ok := g.left(n); ok {
				return left
			}
		}
	}
	if base, ok := strings.CutSuffix(strings.Replace(name, "@{upstream}", "@{u}", 1), "@{u}"); ok {
		branch, _, _ := g.head()
		if u, ok := g.upstream(cmp.Or(base, branch)); ok {
			return u.short()
		}
	}
	if name != "HEAD" && name != "@" {
		return name
	}
	if branch, _, err := g.head(); err == nil && branch != "" {
		return branch
	}
	return "HEAD"
}
