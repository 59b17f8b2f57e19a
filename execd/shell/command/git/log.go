package git

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
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

// history lists commits that options choose, the newest first.
func (g *call) history(revs []string, within []scope, f *flags) ([]*object.Commit, error) {
	limit, skip := -1, 0
	for name, to := range map[string]*int{"n": &limit, "skip": &skip} {
		if v := f.value(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, g.fatal("'%s': not an integer", v)
			}
			*to = n
		}
	}
	from, not, err := g.ends(revs, f.has("all"))
	if err != nil {
		return nil, err
	}
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}, hidden: map[plumbing.Hash]bool{}, first: f.has("first-parent")}
	filter, err := g.logFilter(f, within)
	if err != nil {
		return nil, err
	}
	w.within = within
	if err := w.hide(not); err != nil {
		return nil, err
	}
	if err := w.push(from...); err != nil {
		return nil, err
	}
	var list []*object.Commit
	for limit < 0 || len(list) < limit {
		c, err := w.next()
		if err != nil || c == nil {
			return ordered(list, f), err
		}
		ok, err := filter.wanted(c)
		if err != nil {
			return nil, err
		}
		if ok && skip > 0 {
			skip--
		} else if ok {
			list = append(list, c)
		}
	}
	return ordered(list, f), nil
}

func ordered(list []*object.Commit, f *flags) []*object.Commit {
	if f.has("reverse") {
		slices.Reverse(list)
	}
	return list
}

// ends returns the commits that a log begins at and those that it leaves out, with all before them.
func (g *call) ends(revs []string, all bool) (from, not []plumbing.Hash, err error) {
	add := func(name string, to *[]plumbing.Hash) error {
		c, err := g.commitOf(name)
		if err == nil {
			*to = append(*to, c.Hash)
		}
		return err
	}
	for _, r := range revs {
		parts := rangeParts(r)
		switch {
		case len(parts) == 2 && strings.Contains(r, "..."):
			err = g.symmetric(parts, &from, &not)
		case len(parts) == 2:
			err = errors.Join(add(parts[0], &not), add(parts[1], &from))
		case strings.HasPrefix(r, "^"):
			err = add(r[1:], &not)
		default:
			err = add(r, &from)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	branch, head, err := g.head()
	if err != nil {
		return nil, nil, err
	}
	if all {
		refs, err := g.references("refs/")
		if err != nil {
			return nil, nil, err
		}
		for _, ref := range refs {
			if c, ok := g.peel(ref.Hash()); ok {
				from = append(from, c.Hash)
			}
		}
	}
	if len(from) == 0 {
		if head.IsZero() {
			return nil, nil, g.fatal("your current branch '%s' does not have any commits yet", branch)
		}
		from = append(from, head)
	}
	return from, not, nil
}

// symmetric adds the ends of a...b: what one of the two has alone.
func (g *call) symmetric(parts []string, from, not *[]plumbing.Hash) error {
	var ends [2]plumbing.Hash
	for i, name := range parts {
		c, err := g.commitOf(name)
		if err != nil {
			return err
		}
		ends[i] = c.Hash
	}
	p, err := g.paint(ends[0], ends[1])
	if err != nil {
		return err
	}
	*from = append(*from, ends[:]...)
	for _, c := range p.bases {
		*not = append(*not, c.Hash)
	}
	return nil
}

// walk goes through history, the newest commit first; those of one time in the order in which they were found.
type walk struct {
	*call
	queue  []*object.Commit
	seen   map[plumbing.Hash]bool
	hidden map[plumbing.Hash]bool
	first  bool // only first parents
	within []scope
}

func (w *walk) push(all ...plumbing.Hash) error {
	for _, h := range all {
		if w.seen[h] || w.hidden[h] {
			continue
		}
		w.seen[h] = true
		c, err := w.commitAt(h)
		if err != nil {
			return err
		}
		i := len(w.queue)
		for i > 0 && w.queue[i-1].Committer.When.Before(c.Committer.When) {
			i--
		}
		w.queue = slices.Insert(w.queue, i, c)
	}
	return nil
}

// next returns the next commit, nil after the last.
func (w *walk) next() (*object.Commit, error) {
	if len(w.queue) == 0 {
		return nil, nil
	}
	if err := w.Step(w.ctx, 1); err != nil {
		return nil, err
	}
	c := w.queue[0]
	w.queue = w.queue[1:]
	parents := c.ParentHashes
	if w.first && len(parents) > 1 {
		parents = parents[:1]
	}
	if len(w.within) > 0 && len(parents) > 1 {
		// What a merge has as one of its parents has it, came from there.
		for _, p := range parents {
			same, err := w.sameAs(c, p, w.within)
			if err != nil {
				return nil, err
			}
			if same {
				parents = []plumbing.Hash{p}
				break
			}
		}
	}
	return c, w.push(parents...)
}

// hide takes commits and all before them out.
func (w *walk) hide(all []plumbing.Hash) error {
	for len(all) > 0 {
		h := all[len(all)-1]
		all = all[:len(all)-1]
		if w.hidden[h] {
			continue
		}
		w.hidden[h] = true
		c, err := w.commitAt(h)
		if err != nil {
			return err
		}
		all = append(all, c.ParentHashes...)
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

// describe prints a commit itself.
func (g *call) describe(c *object.Commit, l *listing, follows bool) {
	if l.format == "" {
		return
	}
	hash := c.Hash.String()
	if l.abbrev {
		hash = g.short(c.Hash)
	}
	if l.names {
		hash += g.decoration(c.Hash, " (", ")")
	}
	format, terminated := l.format, true
	if text, ok := strings.CutPrefix(format, "format:"); ok {
		format, terminated = text, false
	} else if text, ok := strings.CutPrefix(format, "tformat:"); ok {
		format = text
	}
	switch {
	case format == "oneline":
		_ = g.print("%s %s\n", hash, subject(c.Message))
	case strings.Contains(format, "%") || format != l.format:
		if follows && !terminated {
			_ = g.print("\n")
		}
		_ = g.print("%s", g.formatted(c, format, l))
		if terminated || len(l.kinds) > 0 {
			_ = g.print("\n")
		}
	default:
		if follows {
			_ = g.print("\n")
		}
		g.header(c, hash, format, l)
	}
}

// header prints a commit in one of git's named forms.
func (g *call) header(c *object.Commit, hash, format string, l *listing) {
	_ = g.print("commit %s\n", hash)
	if len(c.ParentHashes) > 1 {
		_ = g.print("Merge:")
		for _, p := range c.ParentHashes {
			_ = g.print(" %s", g.short(p))
		}
		_ = g.print("\n")
	}
	who := func(role string, s object.Signature) { _ = g.print("%-12s%s <%s>\n", role+":", s.Name, s.Email) }
	switch format {
	case "full":
		_ = g.print("Author: %s <%s>\nCommit: %s <%s>\n", c.Author.Name, c.Author.Email, c.Committer.Name, c.Committer.Email)
	case "fuller":
		who("Author", c.Author)
		_ = g.print("AuthorDate: %s\n", g.dated(c.Author.When, l.date))
		who("Commit", c.Committer)
		_ = g.print("CommitDate: %s\n", g.dated(c.Committer.When, l.date))
	default:
		_ = g.print("Author: %s <%s>\n", c.Author.Name, c.Author.Email)
		if format != "short" {
			_ = g.print("Date:   %s\n", g.dated(c.Author.When, l.date))
		}
	}
	text := strings.TrimRight(c.Message, "\n")
	if format == "short" {
		text = subject(text)
	}
	_ = g.print("\n")
	for _, line := range strings.Split(text, "\n") {
		_ = g.print("    %s\n", line)
	}
	if format == "short" {
		_ = g.print("\n")
	}
}

// dated writes a time as --date asks.
func (g *call) dated(t time.Time, style string) string {
	switch {
	case style == "short":
		return t.Format("2006-01-02")
	case style == "iso" || style == "iso8601":
		return t.Format("2006-01-02 15:04:05 -0700")
	case style == "iso-strict" || style == "iso8601-strict":
		return t.Format("2006-01-02T15:04:05-07:00")
	case style == "rfc" || style == "rfc2822":
		return t.Format("Mon, 2 Jan 2006 15:04:05 -0700")
	case style == "unix":
		return strconv.FormatInt(t.Unix(), 10)
	case style == "raw":
		return fmt.Sprintf("%d %s", t.Unix(), t.Format("-0700"))
	case style == "relative":
		return ago(g.Now().Sub(t))
	}
	return t.Format(dateLayout)
}

// ago says how long ago something was.
func ago(d time.Duration) string {
	seconds := int64(d.Seconds())
	for _, u := range []struct {
		most, unit int64
		name       string
	}{
		{90, 1, "second"}, {90 * 60, 60, "minute"}, {36 * 3600, 3600, "hour"}, {14 * 86400, 86400, "day"},
		{70 * 86400, 7 * 86400, "week"}, {365 * 86400, 30 * 86400, "month"}, {1 << 62, 365 * 86400, "year"},
	} {
		if seconds < u.most {
			n := max(seconds+u.unit/2, 0) / u.unit
			return counted(int(n), u.name, u.name+"s") + " ago"
		}
	}
	return ""
}

// formatted fills in a format.
func (g *call) formatted(c *object.Commit, format string, l *listing) string {
	var b strings.Builder
	for {
		text, rest, ok := strings.Cut(format, "%")
		b.WriteString(text)
		if !ok {
			return b.String()
		}
		value, n := g.placeholder(c, rest, l)
		if n == 0 {
			b.WriteByte('%')
		}
		b.WriteString(value)
		format = rest[n:]
	}
}

// placeholder returns what a placeholder stands for and how long it is; 0 when there is none.
func (g *call) placeholder(c *object.Commit, text string, l *listing) (string, int) {
	simple := map[byte]func() string{
		'H': c.Hash.String, 'h': func() string { return g.short(c.Hash) },
		'T': c.TreeHash.String, 't': func() string { return g.short(c.TreeHash) },
		'P': func() string { return joinHashes(c.ParentHashes, plumbing.Hash.String) },
		'p': func() string { return joinHashes(c.ParentHashes, g.short) },
		's': func() string { return subject(c.Message) },
		'b': func() string { return body(c.Message) },
		'B': func() string { return strings.TrimRight(c.Message, "\n") + "\n" },
		'd': func() string { return g.decoration(c.Hash, " (", ")") }, 'D': func() string { return g.decoration(c.Hash, "", "") },
		'n': func() string { return "\n" }, '%': func() string { return "%" },
	}
	if len(text) > 1 && (text[0] == 'a' || text[0] == 'c') {
		who := c.Author
		if text[0] == 'c' {
			who = c.Committer
		}
		styles := map[byte]string{
			'd': l.date, 'i': "iso", 'I': "iso-strict", 't': "unix", 's': "short", 'r': "relative", 'D': "rfc",
		}
		switch text[1] {
		case 'n':
			return who.Name, 2
		case 'e':
			return who.Email, 2
		}
		if style, ok := styles[text[1]]; ok {
			return g.dated(who.When, style), 2
		}
	}
	if strings.HasPrefix(text, "C(") {
		return "", strings.IndexByte(text, ')') + 1
	}
	if text != "" && simple[text[0]] != nil {
		return simple[text[0]](), 1
	}
	return "", 0
}

func joinHashes(all []plumbing.Hash, text func(plumbing.Hash) string) string {
	var words []string
	for _, h := range all {
		words = append(words, text(h))
	}
	return strings.Join(words, " ")
}

// body is a message without its subject.
func body(message string) string {
	_, rest, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n\n")
	return strings.TrimLeft(rest, "\n")
}

// decoration lists the references to a commit.
func (g *call) decoration(h plumbing.Hash, open, end string) string {
	branch, head, err := g.head()
	if err != nil {
		return ""
	}
	var names []string
	if head == h {
		names = append(names, "HEAD")
	}
	refs, err := g.allReferences("refs/")
	if err != nil {
		return ""
	}
	var tags, others []string
	for _, ref := range slices.Backward(refs) { // as git has them
		to, ok := g.follow(ref.Name())
		if !ok {
			continue
		}
		c, ok := g.peel(to)
		switch name := ref.Name(); {
		case !ok || c.Hash != h:
		case name.IsTag():
			tags = append(tags, "tag: "+name.Short())
		case name.IsBranch() && name.Short() == branch && len(names) > 0:
			names[0] = "HEAD -> " + branch
		default:
			others = append(others, name.Short())
		}
	}
	if names = append(append(names, tags...), others...); len(names) == 0 {
		return ""
	}
	return open + strings.Join(names, ", ") + end
}

// show is git show.
func (g *call) show(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	l, err := g.listingOf(f, "p")
	if err != nil {
		return err
	}
	l.merges = !slices.Contains(l.kinds, "p")
	names := f.args
	if len(names) == 0 {
		names = []string{"HEAD"}
	}
	if l.within, err = g.scopes(f.paths); err != nil {
		return err
	}
	for i, name := range names {
		h, ok := g.resolve(name)
		if !ok {
			return g.notShown(name)
		}
		if err := g.showObject(name, h, l, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func (g *call) notShown(name string) error {
	if rev, file, ok := strings.Cut(name, ":"); ok {
		if _, found := g.resolve(rev); found {
			return g.fatal("path '%s' does not exist in '%s'", file, rev)
		}
		return g.fatal("invalid object name '%s'.", rev)
	}
	return g.badRevision(name)
}

// showObject prints an object of any kind.
func (g *call) showObject(name string, h plumbing.Hash, l *listing, follows bool) error {
	o, err := g.object(plumbing.AnyObject, h)
	if err != nil {
		return g.fatal("bad object %s", name)
	}
	switch o.Type() {
	case plumbing.CommitObject:
		c, err := object.DecodeCommit(g.store, o)
		if err != nil {
			return err
		}
		return g.logEntry(c, l, follows)
	case plumbing.TagObject:
		t, err := object.DecodeTag(g.store, o)
		if err != nil {
			return err
		}
		_ = g.print("tag %s\nTagger: %s <%s>\nDate:   %s\n\n%s\n", t.Name, t.Tagger.Name, t.Tagger.Email, g.dated(t.Tagger.When, l.date), t.Message)
		return g.showObject(name, t.Target, l, false)
	case plumbing.TreeObject:
		t, err := object.DecodeTree(g.store, o)
		if err != nil {
			return err
		}
		_ = g.print("tree %s\n\n", name)
		for _, e := range t.Entries {
			mark := ""
			if e.Mode == filemode.Dir {
				mark = "/"
			}
			_ = g.print("%s%s\n", quotePath(e.Name), mark)
		}
		return nil
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(g.Out, r)
	return err
}
