package git

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// logFilter chooses the commits that a log shows.
type logFilter struct {
	*call
	f            *flags
	within       []scope
	author, grep *regex.Regexp // nil for any
}

func (g *call) logFilter(f *flags, within []scope) (*logFilter, error) {
	l := &logFilter{call: g, f: f, within: within}
	o := regex.Options{Fold: f.has("i"), Step: func(n int) error { return g.Step(g.ctx, 1+n>>6) }}
	if f.has("E") {
		o.Syntax = regex.Extended
	}
	compile := regex.CompileAny
	if f.has("F") {
		compile = regex.CompileLiterals
	}
	for name, to := range map[string]**regex.Regexp{"author": &l.author, "grep": &l.grep} {
		if !f.has(name) {
			continue
		}
		var err error
		if *to, err = compile(f.given[name], o); err != nil {
			return nil, g.fatal("command line, '%s': %v", f.value(name), err)
		}
	}
	return l, nil
}

// wanted says whether a log shows a commit.
func (l *logFilter) wanted(c *object.Commit) (bool, error) {
	if l.f.has("no-merges") && len(c.ParentHashes) > 1 || l.f.has("merges") && len(c.ParentHashes) < 2 {
		return false, nil
	}
	if l.author != nil {
		if ok, err := l.author.Match([]byte(c.Author.Name + " <" + c.Author.Email + ">")); !ok || err != nil {
			return false, err
		}
	}
	if l.grep != nil {
		if ok, err := l.says(c.Message); !ok || err != nil {
			return false, err
		}
	}
	for name, after := range map[string]bool{"since": true, "until": false} {
		if v := l.f.value(name); v != "" {
			t, err := l.date(v)
			if err != nil {
				return false, l.fatal("invalid date: %s", v)
			}
			if c.Committer.When.Before(t) == after {
				return false, nil
			}
		}
	}
	return l.touches(c)
}

// says whether a line of a message matches.
func (l *logFilter) says(message string) (bool, error) {
	for _, line := range strings.Split(message, "\n") {
		if ok, err := l.grep.Match([]byte(line)); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// touches says whether a commit has what was asked for in another way than each of its parents.
func (l *logFilter) touches(c *object.Commit) (bool, error) {
	if len(l.within) == 0 {
		return true, nil
	}
	parents := c.ParentHashes
	if len(parents) == 0 {
		parents = []plumbing.Hash{plumbing.ZeroHash}
	} else if l.f.has("first-parent") {
		parents = parents[:1]
	}
	for _, p := range parents {
		if same, err := l.sameAs(c, p, l.within); same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameAs says whether a commit has the same within scopes as another.
func (g *call) sameAs(c *object.Commit, other plumbing.Hash, within []scope) (bool, error) {
	old, err := g.commitSnapshot(other)
	if err != nil {
		return false, err
	}
	now, err := g.treeSnapshot(c.TreeHash)
	if err != nil {
		return false, err
	}
	return len(changes(old, now, within, false)) == 0, nil
}
