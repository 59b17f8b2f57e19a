package git

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// resolve finds what a revision names: an object of any kind. ok is false when it names none.
func (r *repo) resolve(text string) (h plumbing.Hash, ok bool) {
	if rev, name, found := strings.Cut(text, ":"); found {
		return r.resolvePath(rev, name)
	}
	base, ops := text, ""
	if i := strings.IndexAny(text, "~^"); i >= 0 {
		base, ops = text[:i], text[i:]
	}
	if h, ok = r.resolveName(base); !ok {
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
		if strings.HasPrefix(rest, "{") && op == '^' {
			_, ops, _ = strings.Cut(rest, "}")
			n = 0
		}
		if h, ok = r.ancestor(h, op, n); !ok {
			return h, false
		}
	}
	return h, true
}

// ancestor follows ~n or ^n from a commit.
func (r *repo) ancestor(h plumbing.Hash, op byte, n int) (plumbing.Hash, bool) {
	c, ok := r.peel(h)
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
		if c, ok = r.peel(c.ParentHashes[0]); !ok {
			return h, false
		}
	}
	return c.Hash, true
}

// peel returns the commit that an object is or a tag leads to.
func (r *repo) peel(h plumbing.Hash) (*object.Commit, bool) {
	for {
		if c, err := r.commitAt(h); err == nil {
			return c, true
		}
		t, err := object.GetTag(r.store, h)
		if err != nil {
			return nil, false
		}
		h = t.Target
	}
}

func (r *repo) resolvePath(rev, name string) (plumbing.Hash, bool) {
	if rev == "" {
		index, err := r.store.Index()
		if err != nil {
			return plumbing.ZeroHash, false
		}
		e, err := index.Entry(name)
		if err != nil {
			return plumbing.ZeroHash, false
		}
		return e.Hash, true
	}
	h, ok := r.resolve(rev)
	if !ok {
		return h, false
	}
	c, ok := r.peel(h)
	if !ok {
		return h, false
	}
	if name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/"); name == "" {
		return c.TreeHash, true
	}
	t, err := c.Tree()
	if err != nil {
		return h, false
	}
	e, err := t.FindEntry(name)
	if err != nil {
		return h, false
	}
	return e.Hash, true
}

// resolveName finds HEAD, a reference or a hash, whole or the beginning of it.
func (r *repo) resolveName(name string) (plumbing.Hash, bool) {
	if name == "@" || name == "" {
		name = "HEAD"
	}
	for _, format := range []string{"%s", "refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s"} {
		full := strings.Replace(format, "%s", name, 1)
		if full != "HEAD" && full != "ORIG_HEAD" && full != "FETCH_HEAD" && !strings.HasPrefix(full, "refs/") {
			continue
		}
		if h, ok := r.follow(plumbing.ReferenceName(full)); ok {
			return h, true
		}
	}
	if len(name) < 4 || len(name) > 40 {
		return plumbing.ZeroHash, false
	}
	if len(name) == 40 && plumbing.IsHash(name) {
		return plumbing.NewHash(name), true
	}
	prefix, err := hex.DecodeString(name[:len(name)/2*2])
	if err != nil {
		return plumbing.ZeroHash, false
	}
	all, err := r.store.HashesWithPrefix(prefix)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	var found []plumbing.Hash
	for _, h := range all {
		if strings.HasPrefix(h.String(), strings.ToLower(name)) {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return plumbing.ZeroHash, false
	}
	return found[0], true
}

// follow returns what a reference leads to.
func (r *repo) follow(name plumbing.ReferenceName) (plumbing.Hash, bool) {
	for range 5 {
		ref, err := r.store.Reference(name)
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

// revParse is git rev-parse.
func (g *call) revParse(args []string) error {
	short, abbrev, verify := false, false, false
	for _, a := range args {
		switch a {
		case "--short":
			short = true
		case "--abbrev-ref":
			abbrev = true
		case "--verify", "-q", "--quiet":
			verify = true
		case "--show-toplevel":
			_ = g.print("%s\n", g.root)
		case "--git-dir":
			name := ".git"
			if g.prefix != "" {
				name = slash(g.root, ".git")
			}
			_ = g.print("%s\n", name)
		case "--is-inside-work-tree":
			_ = g.print("true\n")
		case "--show-prefix":
			_ = g.print("%s\n", strings.TrimPrefix(slash(g.prefix, ""), "/"))
		default:
			h, ok := g.resolve(a)
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
	if name != "HEAD" && name != "@" {
		return name
	}
	if branch, _, err := g.head(); err == nil && branch != "" {
		return branch
	}
	return "HEAD"
}
