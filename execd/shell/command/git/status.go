package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/carrelfs/carrel/execd/shell/command"
)

func reason(err error) string { return command.Reason(err) }

// state is how the index and the work tree differ from the commit.
type state struct {
	branch    string
	head      plumbing.Hash
	commit    plumbing.Hash // that the index is compared with: HEAD's, but when that is amended
	staged    []change
	unstaged  []change
	unmerged  map[string][4]entry
	untracked []string
	underway  operation
	// committing and amending are for what commit says when there is nothing to commit.
	committing, amending bool
}

// look finds the state.
func (g *call) look(within []scope, collapse bool) (*state, error) {
	_, commit, err := g.head()
	if err != nil {
		return nil, err
	}
	x, err := g.readIndex()
	if err != nil {
		return nil, err
	}
	return g.lookAt(x, commit, within, collapse)
}

// lookAt finds the state of an index, which may be one that is only made for a commit, against a commit.
func (g *call) lookAt(x *index.Index, commit plumbing.Hash, within []scope, collapse bool) (*state, error) {
	s := state{commit: commit}
	var err error
	if s.branch, s.head, err = g.head(); err != nil {
		return nil, err
	}
	old, err := g.commitSnapshot(s.commit)
	if err != nil {
		return nil, err
	}
	now, err := g.workSnapshot(x)
	if err != nil {
		return nil, err
	}
	s.unmerged = unmerged(x)
	for name := range s.unmerged {
		delete(old, name)
		delete(now, name)
		if !inScopes(within, name) {
			delete(s.unmerged, name)
		}
	}
	if s.staged, err = g.diffed(old, indexSnapshot(x), within); err != nil {
		return nil, err
	}
	s.unstaged = changes(indexSnapshot(x), now, within, false)
	if s.underway, err = g.underway(); err != nil {
		return nil, err
	}
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

var statusOptions = []string{"s=short", "porcelain?", "b=branch", "u?=untracked-files", "long", "z"}

// status is git status.
func (g *call) status(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if form := f.value("porcelain"); form != "" && form != "v1" && form != "1" {
		return g.fatal("unsupported porcelain version '%s'", form)
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
	if f.has("s") || f.has("porcelain") || f.has("z") && !f.has("long") {
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
		line, err := g.branchLine(s)
		if err != nil {
			return err
		}
		_ = g.print("## %s%s", line, end)
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
	lines := map[string]string{}
	for name, stages := range s.unmerged {
		lines[name] = conflictOf(stages).letters + " " + shown(name)
	}
	for _, c := range s.unstaged {
		lines[c.path] = fmt.Sprintf(" %c %s", c.letter(), shown(c.path))
	}
	for _, c := range s.staged {
		name := shown(c.path)
		switch {
		case c.old != "" && f.has("z"):
			name = c.path + "\x00" + c.old
		case c.old != "":
			name = shown(c.old) + " -> " + name
		}
		lines[c.path] = fmt.Sprintf("%c%c %s", c.letter(), mark(unstaged[c.path]), name)
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		_ = g.print("%s%s", lines[name], end)
	}
	for _, name := range s.untracked {
		_ = g.print("?? %s%s", shown(name), end)
	}
	return nil
}

// conflict is how git speaks of a file that is not merged.
type conflict struct{ letters, words string }

// conflictOf says which sides have a file.
func conflictOf(stages [4]entry) conflict {
	i := 0
	for bit, s := range []entry{stages[stageBase], stages[stageOurs], stages[stageTheirs]} {
		if !s.none() {
			i |= 1 << bit
		}
	}
	return []conflict{
		{"??", "unknown:"}, {"DD", "both deleted:"}, {"AU", "added by us:"}, {"UD", "deleted by them:"},
		{"UA", "added by them:"}, {"DU", "deleted by us:"}, {"AA", "both added:"}, {"UU", "both modified:"},
	}[i]
}

func (g *call) branchLine(s *state) (string, error) {
	switch {
	case s.branch == "":
		return "HEAD (no branch)", nil
	case s.commit.IsZero():
		more, err := g.trackingBrief(s.branch, s.commit)
		return "No commits yet on " + s.branch + more, err
	}
	more, err := g.trackingBrief(s.branch, s.commit)
	return s.branch + more, err
}

// words are those of a change in the long form.
var words = map[byte]string{
	'A': "new file:   ", 'M': "modified:   ", 'D': "deleted:    ", 'R': "renamed:    ", 'T': "typechange: ",
}

func (g *call) longStatus(s *state, hidden bool) error {
	if s.branch == "" {
		_ = g.print("HEAD %s\n", g.detachedFrom(s.head))
	} else {
		_ = g.print("On branch %s\n", s.branch)
	}
	text, err := g.tracking(s.branch, s.head)
	if err != nil {
		return err
	}
	if text != "" {
		_ = g.print("%s\n", text)
	}
	if err := g.operationStatus(s); err != nil {
		return err
	}
	initial := s.commit.IsZero()
	if initial {
		_ = g.print("\n%s\n\n", map[bool]string{true: "Initial commit", false: "No commits yet"}[s.committing])
	}
	if len(s.staged) > 0 {
		undo := "git restore --staged <file>..."
		if initial {
			undo = "git rm --cached <file>..."
		}
		_ = g.print("Changes to be committed:\n")
		if !s.underway.hintless() {
			_ = g.print("  (use \"%s\" to unstage)\n", undo)
		}
		g.longList(s.staged)
	}
	if len(s.unmerged) > 0 {
		g.longConflicts(s)
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

// operationStatus says that something is going on, and what ends it.
func (g *call) operationStatus(s *state) error {
	o := s.underway
	switch {
	case o.verb == "":
		return nil
	case o.verb == "merge" && len(s.unmerged) > 0:
		return g.print("You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n")
	case o.verb == "merge":
		return g.print("All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n")
	}
	how := "all conflicts fixed: run \"git " + o.verb + " --continue\""
	if len(s.unmerged) > 0 {
		how = "fix conflicts and run \"git " + o.verb + " --continue\""
	} else if o.sequence {
		how = "run \"git " + o.verb + " --continue\" to continue"
	}
	if o.sequence {
		_ = g.print("%s currently in progress.\n", map[string]string{"cherry-pick": "Cherry-pick", "revert": "Revert"}[o.verb])
	} else {
		_ = g.print("You are currently %s commit %s.\n", o.doing(), g.short(o.commit))
	}
	return g.print("  (%s)\n  (use \"git %s --skip\" to skip this patch)\n  (use \"git %[2]s --abort\" to cancel the %[2]s operation)\n\n", how, o.verb)
}

func (g *call) longConflicts(s *state) {
	undo, gone := "", false
	if !s.underway.hintless() {
		undo = "  (use \"git restore --staged <file>...\" to unstage)\n"
	}
	for _, stages := range s.unmerged {
		gone = gone || !stages[stageBase].none() && (stages[stageOurs].none() || stages[stageTheirs].none())
	}
	how := "git add <file>..."
	if gone {
		how = "git add/rm <file>..."
	}
	_ = g.print("Unmerged paths:\n%s  (use \"%s\" %s mark resolution)\n", undo, how,
		map[bool]string{true: "as appropriate to", false: "to"}[gone])
	for _, name := range slices.Sorted(maps.Keys(s.unmerged)) {
		_ = g.print("\t%-17s%s\n", conflictOf(s.unmerged[name]).words, quotePath(g.relative(name)))
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
	case s.amending:
		return g.print("No changes\n")
	case len(s.unstaged) > 0 || len(s.unmerged) > 0:
		return g.print("no changes added to commit (use \"git add\" and/or \"git commit -a\")\n")
	case len(s.untracked) > 0:
		return g.print("nothing added to commit but untracked files present (use \"git add\" to track)\n")
	case s.head.IsZero():
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
