package git

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

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
		case 'n', 'N':
			return who.Name, 2
		case 'e', 'E':
			return who.Email, 2
		}
		if style, ok := styles[text[1]]; ok {
			return g.dated(who.When, style), 2
		}
	}
	if strings.HasPrefix(text, "C(") {
		return "", strings.IndexByte(text, ')') + 1
	}
	for _, colour := range []string{"Creset", "Cred", "Cgreen", "Cblue", "e"} { // there are none, and one encoding
		if strings.HasPrefix(text, colour) {
			return "", len(colour)
		}
	}
	if len(text) > 2 && text[0] == 'x' {
		if b, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
			return string([]byte{byte(b)}), 3
		}
	}
	if text != "" && text[0] == 'm' {
		return ">", 1
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
