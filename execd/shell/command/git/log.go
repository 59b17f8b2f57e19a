package git

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing/object"
)

const dateLayout = "Mon Jan 2 15:04:05 2006 -0700"

// listing is how a log is printed.
type listing struct {
	shape
	format string // of --format, or a name of git's
	abbrev bool
	names  bool // with the references that lead to each
	merges bool // with what a merge has changed for its first parent
	date   string
	within []scope
}

var logOptions = append([]string{"n:=max-count=<n>", "reverse", "all", "author:", "grep:", "i=regexp-ignore-case",
	"E=extended-regexp", "F=fixed-strings", "no-merges", "merges",
	"first-parent", "skip:", "since:=after", "until:=before"}, listingOptions...)

var listingOptions = append([]string{"oneline", "format:=pretty", "abbrev-commit", "date:", "no-color", "U:=unified", "decorate?", "no-decorate"}, shapes...)

func (g *call) listingOf(f *flags, usual ...string) (*listing, error) {
	s, err := g.shapeOf(f, usual...)
	l := &listing{shape: s, format: "medium", abbrev: f.has("abbrev-commit"), date: f.value("date")}
	if f.has("decorate") && !f.has("no-decorate") {
		switch how := f.value("decorate"); how {
		case "", "short":
			l.names = true
		case "no", "auto":
		default:
			return l, g.fatal("--decorate=%s is not supported here", how)
		}
	}
	if f.has("oneline") {
		l.format, l.abbrev = "oneline", true
	}
	if f.has("format") {
		l.format = f.value("format")
	}
	return l, err
}

// log is git log.
func (g *call) log(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	l, err := g.listingOf(f)
	if err != nil {
		return err
	}
	revs, within, err := g.revisionsAndPaths(f)
	if err != nil {
		return err
	}
	l.within, l.merges = within, f.has("first-parent")
	list, err := g.history(revs, within, f)
	if err != nil {
		return err
	}
	for i, c := range list {
		if err := g.logEntry(c, l, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// logEntry prints a commit, and what it changed.
func (g *call) logEntry(c *object.Commit, l *listing, follows bool) error {
	g.describe(c, l, follows)
	if len(l.kinds) == 0 || len(c.ParentHashes) > 1 && !l.merges {
		return nil
	}
	list, err := g.commitChanges(c, l.within)
	if err != nil || len(list) == 0 {
		return err
	}
	switch {
	case len(l.kinds) > 1 && slices.Contains(l.kinds, "p") && l.format != "oneline":
		_ = g.print("---\n")
	case l.format != "oneline" && l.format != "":
		_ = g.print("\n")
	}
	return g.printChanges(list, l.shape)
}
