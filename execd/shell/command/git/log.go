package git

import (
	"fmt"
	"slices"
	"strings"

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

	combined bool // with what a merge has in another way than all of its parents
	date     string
	within   []scope
}

var logOptions = append([]string{"n:=max-count=<n>", "reverse", "all", "author:", "grep:", "i=regexp-ignore-case",
	"E=extended-regexp", "F=fixed-strings", "no-merges", "merges",
	"first-parent", "skip:", "since:=after", "until:=before"}, listingOptions...)

var listingOptions = append([]string{"oneline", "format:=pretty", "abbrev-commit", "date:", "no-color", "U:=unified", "decorate?", "no-decorate"}, shapes...)

func (g *call) listingOf(f *flags, usual ...string) (*listing, error) {
	s, err := g.shapeOf(f, usual...)
	l := &listing{shape: s, format: "medium", abbrev: f.has("abbrev-commit"), date: f.value("date")}
	if f.has("decorate") && !f.has("no-decorate") {
		how := f.value("decorate")
		l.names = how == "" || how == "short"
	}
	if f.has("oneline") {
		l.format, l.abbrev = "oneline", true
	}
	if f.has("format") {
		l.format = f.value("format")
	}
	if err := checkListing(f); err != nil {
		return l, g.fatal("%v", err)
	}
	return l, err
}

// checkListing refuses a form of commits that is git's and not ours.
func checkListing(f *flags) error {
	switch how := f.value("decorate"); how {
	case "", "short", "no", "auto":
	default:
		return fmt.Errorf("--decorate=%s is not supported here", how)
	}
	if how := f.value("date"); !slices.Contains(dateStyles, how) {
		return fmt.Errorf("--date=%s is not supported here", how)
	}
	format := f.value("format")
	if !strings.Contains(format, "%") && !strings.Contains(format, "format:") {
		if !slices.Contains(formats, format) {
			return fmt.Errorf("--format=%s is not supported here", format)
		}
		return nil
	}
	for rest := format; ; {
		_, after, ok := strings.Cut(rest, "%")
		if !ok || after == "" {
			return nil
		}
		for _, foreign := range foreignPlaceholders {
			if strings.HasPrefix(after, foreign) {
				return fmt.Errorf("%%%s in --format is not supported here", foreign)
			}
		}
		rest = after[1:]
	}
}

// formats are the names of forms, and dateStyles those of times.
var (
	formats    = []string{"", "oneline", "short", "medium", "full", "fuller"}
	dateStyles = []string{
		"", "default", "short", "iso", "iso8601", "iso-strict", "iso8601-strict", "rfc", "rfc2822", "unix", "raw", "relative",
	}
)

// foreignPlaceholders are how those begin that git fills in and we do not.
var foreignPlaceholders = []string{"G", "g", "N", "S", "f", "w(", "<", ">", "+", "-", " ", "(", "ah", "al", "aL", "ch", "cl", "cL"}

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
	if len(c.ParentHashes) > 1 && l.combined {
		return g.printMerged(c, l)
	}
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
