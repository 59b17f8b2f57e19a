package git

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/execd/shell/command"
)

func reason(err error) string { return command.Reason(err) }

// state is how the index and the work tree differ from the commit.
type state struct {
	branch    string
	commit    plumbing.Hash
	staged    []change
	unstaged  []change
	untracked []string
}

// look finds the state.
func (g *call) look(within []scope, collapse bool) (*state, error) {
	var s state
	var err error
	if s.branch, s.commit, err = g.head(); err != nil {
		return nil, err
	}
	old, err := g.commitSnapshot(s.commit)
	if err != nil {
		return nil, err
	}
	x, err := g.readIndex()
	if err != nil {
		return nil, err
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return nil, err
	}
	s.staged = changes(old, indexSnapshot(x), within, true)
	s.unstaged = changes(indexSnapshot(x), now, within, false)
	ignore, err := g.ignored()
	if err != nil {
		return nil, err
	}
	all, err := g.untracked(x, ignore, collapse)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if inScopes(within, strings.TrimSuffix(name, "/")) {
			s.untracked = append(s.untracked, name)
		}
	}
	return &s, nil
}

// status is git status.
func (g *call) status(args []string) error {
	f, err := g.flags(args, "s=short", "porcelain?", "b=branch", "u?=untracked-files", "long", "z")
	if err != nil {
		return err
	}
	within, err := g.scopes(append(f.args, f.paths...))
	if err != nil {
		return err
	}
	s, err := g.look(within, f.value("u") != "all")
	if err != nil {
		return err
	}
	if f.value("u") == "no" {
		s.untracked = nil
	}
	if f.has("s") || f.has("porcelain") {
		return g.shortStatus(s, f)
	}
	return g.longStatus(s, f.value("u") == "no")
}

// shortStatus prints a line for each file. For programs, paths are those below the root.
func (g *call) shortStatus(s *state, f *flags) error {
	end, shown := "\n", func(name string) string { return quoteSpaced(g.relative(name)) }
	if f.has("porcelain") {
		shown = quoteSpaced
	}
	if f.has("z") {
		end, shown = "\x00", func(name string) string { return name }
	}
	if f.has("b") {
		_ = g.print("## %s%s", g.branchLine(s), end)
	}
	unstaged := map[string]byte{}
	for _, c := range s.unstaged {
		unstaged[c.path] = c.letter()
	}
	mark := func(b byte) byte {
		if b == 0 {
			return ' '
		}
		return b
	}
	i := 0
	for _, c := range s.staged {
		for ; i < len(s.unstaged) && s.unstaged[i].path < c.path; i++ {
			_ = g.shortLine(' ', s.unstaged[i], shown, end)
		}
		if i < len(s.unstaged) && s.unstaged[i].path == c.path {
			i++
		}
		name := shown(c.path)
		switch {
		case c.old != "" && f.has("z"):
			name = c.path + "\x00" + c.old
		case c.old != "":
			name = shown(c.old) + " -> " + name
		}
		_ = g.print("%c%c %s%s", c.letter(), mark(unstaged[c.path]), name, end)
	}
	for ; i < len(s.unstaged); i++ {
		_ = g.shortLine(' ', s.unstaged[i], shown, end)
	}
	for _, name := range s.untracked {
		_ = g.print("?? %s%s", shown(name), end)
	}
	return nil
}

func (g *call) shortLine(staged byte, c change, shown func(string) string, end string) error {
	return g.print("%c%c %s%s", staged, c.letter(), shown(c.path), end)
}

func (g *call) branchLine(s *state) string {
	switch {
	case s.branch == "":
		return "HEAD (no branch)"
	case s.commit.IsZero():
		return "No commits yet on " + s.branch
	}
	return s.branch
}

// words are those of a change in the long form.
var words = map[byte]string{
	'A': "new file:   ", 'M': "modified:   ", 'D': "deleted:    ", 'R': "renamed:    ", 'T': "typechange: ",
}

func (g *call) longStatus(s *state, hidden bool) error {
	if s.branch == "" {
		_ = g.print("HEAD detached at %s\n", g.short(s.commit))
	} else {
		_ = g.print("On branch %s\n", s.branch)
	}
	initial := s.commit.IsZero()
	if initial {
		_ = g.print("\nNo commits yet\n\n")
	}
	if len(s.staged) > 0 {
		undo := "git restore --staged <file>..."
		if initial {
			undo = "git rm --cached <file>..."
		}
		_ = g.print("Changes to be committed:\n  (use \"%s\" to unstage)\n", undo)
		g.longList(s.staged)
	}
	if len(s.unstaged) > 0 {
		update := "git add"
		for _, c := range s.unstaged {
			if c.to.mode == 0 {
				update = "git add/rm"
			}
		}
		_ = g.print("Changes not staged for commit:\n  (use \"%s <file>...\" to update what will be committed)\n"+
			"  (use \"git restore <file>...\" to discard changes in working directory)\n", update)
		g.longList(s.unstaged)
	}
	if len(s.untracked) > 0 {
		_ = g.print("Untracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n")
		for _, name := range s.untracked {
			_ = g.print("\t%s\n", quotePath(g.relative(name)))
		}
		_ = g.print("\n")
	}
	return g.conclusion(s, hidden)
}

func (g *call) longList(list []change) {
	for _, c := range list {
		name := quotePath(g.relative(c.path))
		if c.old != "" {
			name = quotePath(g.relative(c.old)) + " -> " + name
		}
		_ = g.print("\t%s%s\n", words[c.letter()], name)
	}
	_ = g.print("\n")
}

// conclusion says what a commit would do, when nothing is staged.
func (g *call) conclusion(s *state, hidden bool) error {
	switch {
	case len(s.staged) > 0:
		if hidden {
			return g.print("Untracked files not listed (use -u option to show untracked files)\n")
		}
		return nil
	case len(s.unstaged) > 0:
		return g.print("no changes added to commit (use \"git add\" and/or \"git commit -a\")\n")
	case len(s.untracked) > 0:
		return g.print("nothing added to commit but untracked files present (use \"git add\" to track)\n")
	case s.commit.IsZero():
		return g.print("nothing to commit (create/copy files and use \"git add\" to track)\n")
	case hidden:
		return g.print("nothing to commit (use -u to show untracked files)\n")
	}
	return g.print("nothing to commit, working tree clean\n")
}

// quotePath writes a path as git does where names may have any bytes: in C's way when there are unusual ones.
func quotePath(name string) string {
	plain := true
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if escape, ok := escapes[c]; ok {
			b.WriteString(escape)
			plain = false
			continue
		}
		if c < ' ' || c >= 0x7f {
			fmt.Fprintf(&b, `\%03o`, c)
			plain = false
			continue
		}
		b.WriteByte(c)
	}
	if plain {
		return name
	}
	return `"` + b.String() + `"`
}

var escapes = map[byte]string{
	'"': `\"`, '\\': `\\`, '\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`,
}

// quoteSpaced is quotePath where a space would end the path.
func quoteSpaced(name string) string {
	if q := quotePath(name); q != name || !strings.Contains(name, " ") {
		return q
	}
	return `"` + name + `"`
}
