package git

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// signature is who does something and when, from the environment and the configuration; role is AUTHOR or COMMITTER.
func (g *call) signature(role string) (object.Signature, error) {
	s := g.known(role)
	if s.Email == "" || s.Name == "" {
		word := strings.ToUpper(role[:1]) + strings.ToLower(role[1:])
		g.tell("%s identity unknown\n\n*** Please tell me who you are.\n\nRun\n\n"+
			"  git config --global user.email \"you@example.com\"\n  git config --global user.name \"Your Name\"\n\n"+
			"to set your account's default identity.\nOmit --global to set the identity only in this repository.\n\n", word)
		return s, g.fatal("unable to auto-detect email address")
	}
	if text, _ := g.Getenv("GIT_" + role + "_DATE"); text != "" {
		var err error
		if s.When, err = g.date(text); err != nil {
			return s, g.fatal("invalid date format: %s", text)
		}
	}
	return s, nil
}

// known is what is known of who does something, now.
func (g *call) known(role string) object.Signature {
	pick := func(names ...string) string {
		for _, name := range names {
			value := ""
			if strings.Contains(name, ".") {
				value = g.setting(name)
			} else {
				value, _ = g.Getenv(name)
			}
			if value != "" {
				return withoutCrud(value)
			}
		}
		return ""
	}
	return object.Signature{
		Name:  pick("GIT_"+role+"_NAME", strings.ToLower(role)+".name", "user.name"),
		Email: pick("GIT_"+role+"_EMAIL", strings.ToLower(role)+".email", "user.email", "EMAIL"),
		When:  g.Now().In(g.Zone(g.ctx)),
	}
}

// identity is signature for a log, which does with less.
func (g *call) identity(role string) object.Signature {
	s := g.known(role)
	if text, _ := g.Getenv("GIT_" + role + "_DATE"); text != "" {
		if when, err := g.date(text); err == nil {
			s.When = when
		}
	}
	s.Name, s.Email = cmp.Or(s.Name, "unknown"), cmp.Or(s.Email, "unknown")
	return s
}

// withoutCrud takes out of a name what would end it in an object.
func withoutCrud(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '<' || r == '>' || r == 0 {
			return -1
		}
		return r
	}, text)
	return strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune(".,:;\\\"'", r) })
}

// stamped is git's own form of a time.
var stamped = regexp.MustCompile(`^@?(\d+)(?: ([+-])(\d\d)(\d\d))?$`)

// date reads a time that somebody wrote.
func (g *call) date(text string) (time.Time, error) {
	if m := stamped.FindStringSubmatch(text); m != nil {
		seconds, err := strconv.ParseInt(m[1], 10, 64)
		hours, _ := strconv.Atoi("0" + m[3])
		minutes, _ := strconv.Atoi("0" + m[4])
		offset := hours*3600 + minutes*60
		if m[2] == "-" {
			offset = -offset
		}
		return time.Unix(seconds, 0).In(time.FixedZone("", offset)), err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", time.RFC1123Z, "Mon Jan 2 15:04:05 2006 -0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return datetime.Parse(text, g.Now().In(g.Zone(g.ctx)))
}

var commitOptions = []string{"m:=message", "F:=file", "a=all", "q=quiet", "amend", "allow-empty", "allow-empty-message", "no-edit",
	"author:", "date:", "n=no-verify", "s=signoff", "no-gpg-sign", "o=only", "i=include"}

// commit is git commit.
func (g *call) commit(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	x, err := g.lockedIndex()
	if err != nil {
		return err
	}
	branch, head, err := g.head()
	if err != nil {
		return err
	}
	merging, err := g.mergeHeads()
	if err != nil {
		return err
	}
	going, err := g.underway()
	if err != nil {
		return err
	}
	picking := going.verb == "cherry-pick" && !going.commit.IsZero()
	switch {
	case f.has("a") && len(within) > 0:
		return g.fatal("paths '%s ...' with -a does not make sense", within[0].name)
	case (len(merging) > 0 || picking) && len(within) > 0 && !f.has("i"):
		return g.fatal("cannot do a partial commit during a %s.", going.verb)
	case (len(merging) > 0 || picking) && f.has("amend"):
		return g.fatal("You are in the middle of a %s -- cannot amend.", going.verb)
	}
	staged := x // what is committed: all, or the files that were named alone
	if len(within) > 0 && !f.has("i") {
		if staged, err = g.onlyIndex(x, head, within); err != nil {
			return err
		}
	}
	if f.has("a") || len(within) > 0 {
		if err := g.matchAll(nil, x, within); err != nil {
			return err
		}
		if err := g.stageAll(x, within, nil, false); err != nil {
			return err
		}
		if staged != x {
			if err := g.stageAll(staged, within, nil, false); err != nil {
				return err
			}
		}
	}
	if names := slices.Sorted(maps.Keys(unmerged(staged))); len(names) > 0 {
		for _, name := range names {
			_ = g.print("U\t%s\n", quotePath(name))
		}
		_ = g.Out.Flush()
		return g.notMerged("Committing")
	}
	c := &object.Commit{}
	if err := g.beginCommit(c, head, merging, going, f); err != nil {
		return err
	}
	if c.TreeHash, err = g.writeTree(staged); err != nil {
		return err
	}
	before := plumbing.ZeroHash
	if len(c.ParentHashes) > 0 {
		before = c.ParentHashes[0]
	}
	old, err := g.commitSnapshot(before)
	if err != nil {
		return err
	}
	list, err := g.diffed(old, indexSnapshot(staged), nil)
	if err != nil {
		return err
	}
	if len(list) == 0 && !f.has("allow-empty") && len(c.ParentHashes) < 2 {
		return g.nothing(staged, before, f)
	}
	if err := g.message(c, f); err != nil {
		return err
	}
	if c.Message == "" && !f.has("allow-empty-message") {
		g.tell("Aborting commit due to empty commit message.\n")
		return tool.Exit(1)
	}
	h, err := g.put(c)
	if err != nil {
		return err
	}
	if err := g.moveHead(head, h, whyCommit(c, head, picking, f)); err != nil {
		return err
	}
	if err := errors.Join(g.saveIndex(x), g.endMerge()); err != nil || f.has("q") {
		return err
	}
	if len(c.ParentHashes) > 1 {
		return g.print("[%s %s] %s\n", cmp.Or(branch, "detached HEAD"), g.short(h), subject(c.Message))
	}
	return g.committed(branch, h, c, list, commitLine{root: head.IsZero(), date: f.has("amend") || f.has("date") || picking})
}

// whyCommit is what the log of HEAD says of a commit.
func whyCommit(c *object.Commit, head plumbing.Hash, picking bool, f *flags) string {
	kind := "commit"
	switch {
	case f.has("amend"):
		kind = "commit (amend)"
	case head.IsZero():
		kind = "commit (initial)"
	case len(c.ParentHashes) > 1:
		kind = "commit (merge)"
	case picking:
		kind = "commit (cherry-pick)"
	}
	return kind + ": " + subject(c.Message)
}

// onlyIndex is the index of a commit of some files alone: that of HEAD, with those files as the index knows them.
func (g *call) onlyIndex(x *index.Index, head plumbing.Hash, within []scope) (*index.Index, error) {
	old, err := g.commitSnapshot(head)
	if err != nil {
		return nil, err
	}
	only := &index.Index{Version: 2}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if !inScopes(within, name) {
			only.Entries = append(only.Entries, &index.Entry{Name: name, Mode: old[name].mode, Hash: old[name].hash})
		}
	}
	for _, e := range x.Entries {
		if inScopes(within, e.Name) && e.Stage == 0 {
			same := *e
			*addEntry(only, e.Name) = same
		}
	}
	return only, nil
}

// nothing says that an index has nothing to commit on top of a commit.
func (g *call) nothing(x *index.Index, before plumbing.Hash, f *flags) error {
	s, err := g.lookAt(x, before, nil, true)
	if err != nil {
		return err
	}
	s.committing, s.amending = true, f.has("amend")
	if err := g.longStatus(s, false); err != nil {
		return err
	}
	_ = g.Out.Flush()
	switch {
	case s.amending:
		g.tell("You asked to amend the most recent commit, but doing so would make\nit empty. You can repeat your command with --allow-empty, or you can\n" +
			"remove the commit entirely with \"git reset HEAD^\".\n")
	case s.underway.verb == "cherry-pick" && !s.underway.commit.IsZero():
		g.tell("The previous cherry-pick is now empty, possibly due to conflict resolution.\nIf you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\n")
		if s.underway.sequence {
			g.tell("and then use:\n\n    git cherry-pick --continue\n\nto resume cherry-picking the remaining commits.\n" +
				"If you wish to skip this commit, use:\n\n    git cherry-pick --skip\n\n")
		} else {
			g.tell("Otherwise, please use 'git cherry-pick --skip'\n")
		}
	}
	return tool.Exit(1)
}

// beginCommit fills in who, when, why and on what.
func (g *call) beginCommit(c *object.Commit, head plumbing.Hash, merging []plumbing.Hash, going operation, f *flags) (err error) {
	if c.Author, err = g.signature("AUTHOR"); err != nil {
		return err
	}
	if c.Committer, err = g.signature("COMMITTER"); err != nil {
		return err
	}
	switch {
	case f.has("amend") && head.IsZero():
		return g.fatal("You have nothing to amend.")
	case f.has("amend"):
		old, err := g.commitAt(head)
		if err != nil {
			return err
		}
		c.ParentHashes, c.Author, c.Message = old.ParentHashes, old.Author, old.Message
	case !head.IsZero():
		c.ParentHashes = append([]plumbing.Hash{head}, merging...)
	}
	if going.verb == "cherry-pick" && !going.commit.IsZero() {
		picked, err := g.commitAt(going.commit)
		if err != nil {
			return err
		}
		c.Author = picked.Author
	}
	return g.authored(c, f)
}

// authored takes the options that say who wrote it when.
func (g *call) authored(c *object.Commit, f *flags) (err error) {
	if a := f.value("author"); a != "" {
		name, rest, ok := strings.Cut(a, " <")
		if !ok || !strings.HasSuffix(rest, ">") {
			return g.fatal("--author '%s' is not 'Name <email>' and matches no existing author", a)
		}
		c.Author.Name, c.Author.Email = name, strings.TrimSuffix(rest, ">")
	}
	if d := f.value("date"); d != "" {
		if c.Author.When, err = g.date(d); err != nil {
			return g.fatal("invalid date format: %s", d)
		}
	}
	return nil
}

// message finds what the commit is to say.
func (g *call) message(c *object.Commit, f *flags) error {
	switch {
	case f.has("m"):
		c.Message = strings.Join(f.given["m"], "\n\n")
	case f.has("F"):
		text, err := g.readMessage(f.value("F"))
		if err != nil {
			return err
		}
		c.Message = text
	case f.has("amend"): // its own
	default:
		text, err := g.readNote(mergeMsg)
		if err != nil {
			return err
		}
		if text == "" {
			return g.failure("there is no editor: give the message with -m or -F")
		}
		if c.Message = text; !f.has("no-edit") { // whoever edits it would leave the rest
			c.Message = withoutComments(text)
		}
	}
	c.Message = cleanMessage(c.Message)
	if f.has("s") {
		c.Message = signedOff(c.Message, c.Committer)
	}
	return nil
}

// withoutComments takes the lines out of a message that git wrote for whoever edits it.
func withoutComments(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func (g *call) readMessage(name string) (string, error) {
	if name == "-" {
		b, err := io.ReadAll(io.LimitReader(g.Stdin, maxConfig))
		return string(b), err
	}
	b, err := g.FS.ReadFile(g.ctx, name, maxConfig)
	if err != nil {
		return "", g.fatal("could not read log file '%s': %s", name, reason(err))
	}
	return string(b), nil
}

// cleanMessage takes out blanks at the ends of lines, empty lines at both ends and more than one of them elsewhere.
func cleanMessage(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r\v\f")
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	text = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// commitLine is what is said of a commit besides its subject.
type commitLine struct{ root, date bool }

// committed says what a commit did.
func (g *call) committed(branch string, h plumbing.Hash, c *object.Commit, list []change, line commitLine) error {
	where := branch
	if branch == "" {
		where = "detached HEAD"
	}
	if line.root {
		where += " (root-commit)"
	}
	_ = g.print("[%s %s] %s\n", where, g.short(h), subject(c.Message))
	if c.Author.Name != c.Committer.Name || c.Author.Email != c.Committer.Email {
		_ = g.print(" Author: %s <%s>\n", c.Author.Name, c.Author.Email)
	}
	if line.date {
		_ = g.print(" Date: %s\n", c.Author.When.Format(dateLayout))
	}
	if len(list) == 0 {
		return nil
	}
	if err := g.shortStat(list); err != nil {
		return err
	}
	return g.summary(list)
}

// subject is the first paragraph of a message, on one line.
func subject(message string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n\n")
	return strings.ReplaceAll(strings.TrimRight(first, "\n"), "\n", " ")
}
