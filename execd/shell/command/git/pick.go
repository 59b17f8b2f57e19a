package git

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pickOptions = []string{"n=no-commit", "x", "s=signoff", "m:=mainline", "ff", "no-edit", "allow-empty", "allow-empty-message",
	"keep-redundant-commits", "abort", "continue", "skip", "quit"}

// picker is one run of git cherry-pick or git revert. Either is a merge into what HEAD is on:
//
//	             base        theirs
//	cherry-pick  its parent  the commit
//	revert       the commit  its parent
type picker struct {
	*call
	f    *flags
	verb string
}

func (g *call) cherryPick(args []string) error { return g.pick("cherry-pick", args) }

func (g *call) revert(args []string) error { return g.pick("revert", args) }

func (g *call) pick(verb string, args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	p := &picker{g, f, verb}
	switch {
	case f.has("quit"):
		return g.quitPicks()
	case f.has("abort"):
		return p.abort()
	case f.has("skip"):
		return p.skip()
	case f.has("continue"):
		return p.resume()
	case len(f.args) == 0:
		g.tell("usage: git %s [-n] [-m <parent-number>] [-s] <commit>...\n   or: git %[1]s (--continue | --skip | --abort | --quit)\n", verb)
		return tool.Exit(129)
	}
	for i, name := range f.args {
		if f.args[i], err = g.previous(name); err != nil {
			return err
		}
	}
	list, one, err := p.chosen()
	if err != nil {
		return err
	}
	if !one {
		return p.begin(list)
	}
	return p.apply(list[0])
}

// failed says why nothing was done, and that.
func (p *picker) failed(format string, args ...any) error {
	if format != "" {
		p.tell("error: "+format+"\n", args...)
	}
	return p.fatal("%s failed", p.verb)
}

// chosen are the commits that were named, in the order in which they are applied: as they were named, but for a range, which
// is picked from its beginning and reverted from its end. one is for a single one, which is no sequence.
func (p *picker) chosen() (list []*object.Commit, one bool, err error) {
	ranges := false
	for _, name := range p.f.args {
		ranges = ranges || len(rangeParts(name)) > 1 || strings.HasPrefix(name, "^")
		for _, part := range rangeParts(strings.TrimPrefix(name, "^")) {
			h, ok := p.resolve(part)
			if !ok {
				return nil, false, p.fatal("bad revision '%s'", name)
			}
			c, ok := p.peel(h)
			if !ok {
				o, err := p.object(plumbing.AnyObject, h)
				if err != nil {
					return nil, false, p.fatal("bad object %s", name)
				}
				return nil, false, p.failed("%s: can't %s a %s", part, p.verb, o.Type())
			}
			if !slices.ContainsFunc(list, func(o *object.Commit) bool { return o.Hash == c.Hash }) {
				list = append(list, c)
			}
		}
	}
	if !ranges {
		return list, len(p.f.args) == 1, nil
	}
	order := &flags{given: map[string][]string{}}
	if p.verb == "cherry-pick" {
		order.given["reverse"] = []string{""}
	}
	if list, err = p.history(p.f.args, nil, order); err == nil && len(list) == 0 {
		err = p.failed("empty commit set passed")
	}
	return list, false, err
}

// pickLabel is how marks, and the list of what is to be done, name a commit.
func (g *call) pickLabel(c *object.Commit) (label, subject string) {
	subject, _, _ = strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return g.short(c.Hash), subject
}

// parentOf is the parent that a commit is taken as a change of: the only one, or that which -m says. It is zero for none.
func (p *picker) parentOf(c *object.Commit) (h plumbing.Hash, err error) {
	n := 0
	if text := p.f.value("m"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			return h, p.failure("option `mainline' expects a number greater than zero")
		}
	}
	switch parents := c.ParentHashes; {
	case len(parents) == 0:
		return h, nil
	case len(parents) > 1 && n == 0:
		return h, p.failed("commit %s is a merge but no -m option was given.", c.Hash)
	case n > len(parents):
		return h, p.failed("commit %s does not have parent %d", c.Hash, n)
	default:
		return parents[max(n, 1)-1], nil
	}
}

// apply picks or reverts one commit.
func (p *picker) apply(c *object.Commit) error {
	_, head, err := p.head()
	if err != nil {
		return err
	}
	x, err := p.lockedIndex()
	if err != nil {
		return err
	}
	ours, err := p.commitSnapshot(head)
	if err != nil {
		return err
	}
	switch {
	case len(unmerged(x)) > 0 && p.f.has("n"):
		return p.failed("your index file is unmerged.")
	case len(unmerged(x)) > 0:
		p.tell("error: %s is not possible because you have unmerged files.\n"+
			"hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"+
			"hint: as appropriate to mark resolution and make a commit.\n", map[string]string{"cherry-pick": "Cherry-picking", "revert": "Reverting"}[p.verb])
		return p.failed("")
	case p.f.has("n"):
		ours = indexSnapshot(x)
	case len(changes(ours, indexSnapshot(x), nil, false)) > 0:
		p.tell("error: your local changes would be overwritten by %s.\nhint: commit your changes or stash them to proceed.\n", p.verb)
		return p.failed("")
	}
	parent, err := p.parentOf(c)
	if err != nil {
		return err
	}
	if p.f.has("ff") && parent == head {
		if err := p.goTo(head, c.Hash, false, "merge"); err != nil {
			return err
		}
		return errors.Join(p.moveHead(head, c.Hash, p.verb+": fast-forward"), p.noteHead())
	}
	m, err := p.mergeChange(c, parent, ours)
	if err != nil {
		return err
	}
	text := p.messageOf(c, parent)
	if err := p.writeNote(mergeMsg, text+m.conflicts()); err != nil {
		return err
	}
	clashes := len(m.clash) > 0
	note := cherryPickHead
	noted := !p.f.has("n")
	if p.verb == "revert" {
		note, noted = revertHead, clashes != p.f.has("n")
	}
	if noted {
		if err := p.writeNote(note, c.Hash.String()+"\n"); err != nil {
			return err
		}
	}
	switch {
	case clashes:
		return p.clashed(c)
	case p.f.has("n"):
		return nil
	}
	return p.conclude(c, head, text, m)
}

// mergeChange brings what a commit has changed, or the reverse, into the index and the work tree.
func (p *picker) mergeChange(c *object.Commit, parent plumbing.Hash, ours snapshot) (*merging, error) {
	before, err := p.commitSnapshot(parent)
	if err != nil {
		return nil, err
	}
	after, err := p.treeSnapshot(c.TreeHash)
	if err != nil {
		return nil, err
	}
	short, subject := p.pickLabel(c)
	label := short + " (" + subject + ")"
	if p.verb == "revert" {
		before, after, label = after, before, "parent of "+label
	}
	m := &merging{call: p.call, names: [2]string{"HEAD", label}}
	if err := m.merge(before, ours, after); err != nil {
		return nil, err
	}
	if err := m.apply(ours); err != nil {
		var exit tool.Exit
		if errors.As(err, &exit) && exit == 1 { // what is in the way was said
			return nil, p.failed("")
		}
		return nil, err
	}
	m.tellAll()
	return m, nil
}

// messageOf is what a commit that was picked or reverted says.
func (p *picker) messageOf(c *object.Commit, parent plumbing.Hash) string {
	text := c.Message
	if p.verb == "revert" {
		_, subject := p.pickLabel(c)
		text = "Revert \"" + subject + "\"\n\nThis reverts commit " + c.Hash.String()
		if len(c.ParentHashes) > 1 {
			text += ", reversing\nchanges made to " + parent.String()
		}
		text += ".\n"
	} else if p.f.has("x") {
		text = withNewline(text)
		if !hasTrailers(text) {
			text += "\n"
		}
		text += pickedFrom + c.Hash.String() + ")\n"
	}
	if p.f.has("s") {
		text = signedOff(text, p.identity("COMMITTER"))
	}
	return text
}

// clashed says that a commit could not be applied as it is, and what can be done.
func (p *picker) clashed(c *object.Commit) error {
	_ = p.Out.Flush()
	short, subject := p.pickLabel(c)
	p.tell("error: could not %s %s... %s\n", map[string]string{"cherry-pick": "apply", "revert": "revert"}[p.verb], short, subject)
	if p.f.has("n") {
		p.tell("hint: after resolving the conflicts, mark the corrected paths\nhint: with 'git add <paths>' or 'git rm <paths>'\n")
	} else {
		p.tell("hint: After resolving the conflicts, mark them with\nhint: \"git add/rm <pathspec>\", then run\nhint: \"git %s --continue\".\n"+
			"hint: You can instead skip this commit with \"git %[1]s --skip\".\n"+
			"hint: To abort and get back to the state before \"git %[1]s\",\nhint: run \"git %[1]s --abort\".\n", p.verb)
	}
	return tool.Exit(1)
}

// conclude makes the commit.
func (p *picker) conclude(c *object.Commit, head plumbing.Hash, text string, m *merging) error {
	committer, err := p.signature("COMMITTER")
	if err != nil {
		return err
	}
	made := &object.Commit{Author: c.Author, Committer: committer, Message: text}
	if p.verb == "revert" {
		if made.Author, err = p.signature("AUTHOR"); err != nil {
			return err
		}
	}
	if !head.IsZero() {
		made.ParentHashes = []plumbing.Hash{head}
	}
	old, err := p.commitSnapshot(head)
	if err != nil {
		return err
	}
	list, err := p.diffed(old, m.target, nil)
	if err != nil {
		return err
	}
	if ok, err := p.mayBeEmpty(c); err != nil {
		return err
	} else if len(list) == 0 && !ok {
		x, err := p.lockedIndex()
		if err != nil {
			return err
		}
		return p.nothing(x, head, p.f)
	}
	if strings.TrimSpace(text) == "" && !p.f.has("allow-empty-message") {
		p.tell("Aborting commit due to empty commit message.\n")
		return tool.Exit(1)
	}
	if made.TreeHash, err = p.snapshotTree(m.target); err != nil {
		return err
	}
	h, err := p.put(made)
	if err != nil {
		return err
	}
	if err := p.moveHead(head, h, p.verb+": "+subject(text)); err != nil {
		return err
	}
	branch, _, err := p.head()
	if err := errors.Join(err, p.removeNotes(cherryPickHead, revertHead, mergeMsg), p.noteHead()); err != nil {
		return err
	}
	return p.committed(branch, h, made, list, commitLine{root: head.IsZero(), date: true})
}

// mayBeEmpty says whether a commit may change nothing where it is applied.
func (p *picker) mayBeEmpty(c *object.Commit) (bool, error) {
	if p.f.has("keep-redundant-commits") || !p.f.has("allow-empty") {
		return p.f.has("keep-redundant-commits"), nil
	}
	if len(c.ParentHashes) == 0 {
		return false, nil
	}
	parent, err := p.commitAt(c.ParentHashes[0])
	return err == nil && parent.TreeHash == c.TreeHash, err
}

// withNewline ends a text with a newline, unless there is none.
func withNewline(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// Lines at the end of a message that git itself writes.
const (
	signedOffBy = "Signed-off-by: "
	pickedFrom  = "(cherry picked from commit "
)

// hasTrailers says whether a message ends with lines such as Signed-off-by, after another paragraph: git-interpret-trailers(1).
func hasTrailers(text string) bool {
	lines := strings.Split(strings.TrimRight(text, " \t\n"), "\n")
	trailers, others, folded, known := 0, 0, 0, false
	for i, line := range slices.Backward(lines) {
		token, _, named := strings.Cut(line, ":")
		token = strings.TrimRight(token, " \t")
		switch {
		case strings.TrimSpace(line) == "":
			return i > 0 && trailers > 0 && (others+folded == 0 || known && trailers*3 >= others+folded)
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, signedOffBy), strings.HasPrefix(line, pickedFrom):
			known = true
			trailers, folded = trailers+1, 0
		case line[0] == ' ' || line[0] == '\t':
			folded++
		case named && token != "" && strings.Trim(token, trailerLetters) == "":
			trailers, folded = trailers+1, 0
		default:
			others, folded = others+1+folded, 0
		}
	}
	return false // there is only one paragraph
}

const trailerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

// signedOff adds who signs off a message, unless that is its last line.
func signedOff(text string, who object.Signature) string {
	line := signedOffBy + who.Name + " <" + who.Email + ">\n"
	text = withNewline(text)
	switch {
	case text == "":
		return "\n\n" + line
	case text == line, hasTrailers(text) && strings.HasSuffix(text, "\n"+line):
		return text
	case !hasTrailers(text) && !strings.HasSuffix(text, "\n\n"):
		text += "\n"
	}
	return text + line
}

// Files that say which commit is being picked or reverted.
const (
	cherryPickHead = "CHERRY_PICK_HEAD"
	revertHead     = "REVERT_HEAD"
)

// operation is what was begun and not concluded.
type operation struct {
	verb     string        // "merge", "cherry-pick" or "revert"; "" for nothing
	commit   plumbing.Hash // that is picked or reverted; zero for none, as between two of a sequence
	sequence bool
}

// doing is the verb as people are told it.
func (o operation) doing() string {
	return map[string]string{"merge": "merging", "cherry-pick": "cherry-picking", "revert": "reverting"}[o.verb]
}

// hintless says whether the status keeps to itself how files are unstaged.
func (o operation) hintless() bool {
	return o.verb == "merge" || o.verb == "cherry-pick" && !o.commit.IsZero()
}

// underway finds what is going on.
func (g *call) underway() (o operation, err error) {
	if merging, err := g.mergeHeads(); err != nil || len(merging) > 0 {
		return operation{verb: "merge"}, err
	}
	for _, n := range []struct{ verb, note string }{{"revert", revertHead}, {"cherry-pick", cherryPickHead}} {
		text, err := g.readNote(n.note)
		if err != nil {
			return o, err
		}
		if text = strings.TrimSpace(text); plumbing.IsHash(text) {
			o.verb, o.commit = n.verb, plumbing.NewHash(text)
		}
	}
	todo, err := g.todo()
	if err == nil && len(todo) > 0 {
		if verb := verbOf(todo[0]); verb != "" {
			o.verb, o.sequence = verb, true
		}
	}
	return o, err
}

// A sequence of picks is noted in a directory of the repository, in the form that git has for it, so that either goes on
// with what the other has begun:
//
//	todo          what is left, the one that is being applied first: pick|revert COMMIT SUBJECT
//	head          where HEAD was before the first
//	abort-safety  where the last one left it: an abort from elsewhere moves nothing
//	opts          the options
const sequencer = "sequencer"

func sequenceFile(name string) string { return path.Join(sequencer, name) }

// todo is what is left of a sequence, line by line.
func (g *call) todo() ([]string, error) {
	text, err := g.readNote(sequenceFile("todo"))
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" || line[0] == '#' }), err
}

// verbOf is the command that a line of a sequence is one of.
func verbOf(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return map[string]string{"pick": "cherry-pick", "p": "cherry-pick", "revert": "revert"}[word]
}

// begin notes a sequence, and goes through it.
func (p *picker) begin(list []*object.Commit) error {
	going, err := p.underway()
	if err != nil {
		return err
	}
	if _, err := p.FS.Lstat(p.ctx, path.Join(p.dir, sequencer)); err == nil {
		skip := ""
		if !going.commit.IsZero() {
			skip = "--skip | "
		}
		p.tell("error: %s is already in progress\nhint: try \"git %s (--continue | %s--abort | --quit)\"\n", going.verb, going.verb, skip)
		return p.failed("")
	}
	_, head, err := p.head()
	if err != nil {
		return err
	}
	if head.IsZero() && p.verb == "revert" {
		return p.failed("can't revert as initial commit")
	}
	word := map[string]string{"cherry-pick": "pick", "revert": "revert"}[p.verb]
	var lines []string
	for _, c := range list {
		short, subject := p.pickLabel(c)
		lines = append(lines, word+" "+short+" "+subject)
	}
	at := head.String() + "\n"
	err = errors.Join(p.writeNote(sequenceFile("head"), at), p.writeNote(sequenceFile("abort-safety"), at))
	if text := p.optionText(); err == nil && text != "" {
		err = p.writeNote(sequenceFile("opts"), text)
	}
	if err != nil {
		return err
	}
	return p.goOn(lines)
}

// pickSettings are the options that a sequence keeps, as it spells them.
var pickSettings = []struct{ option, key string }{
	{"n", "no-commit"}, {"s", "signoff"}, {"x", "record-origin"}, {"ff", "allow-ff"}, {"allow-empty", "allow-empty"},
	{"allow-empty-message", "allow-empty-message"}, {"keep-redundant-commits", "keep-redundant-commits"},
}

func (p *picker) optionText() string {
	text := ""
	for _, s := range pickSettings {
		if p.f.has(s.option) {
			text += "\t" + s.key + " = true\n"
		}
	}
	if p.f.has("no-edit") {
		text += "\tedit = false\n"
	}
	if n := p.f.value("m"); n != "" {
		text += "\tmainline = " + n + "\n"
	}
	if text == "" {
		return ""
	}
	return "[options]\n" + text
}

// readOptions takes the options that a sequence was begun with.
func (p *picker) readOptions() error {
	c, err := p.fileConfig(path.Join(p.dir, sequenceFile("opts")))
	if err != nil || !c.HasSection("options") {
		return err
	}
	o := c.Section("options")
	for _, s := range pickSettings {
		if v := o.Option(s.key); v != "" && yes(v) {
			p.f.given[s.option] = []string{""}
		}
	}
	if n := o.Option("mainline"); n != "" {
		p.f.given["m"] = []string{n}
	}
	return nil
}

// goOn applies what is left of a sequence, and forgets it at its end.
func (p *picker) goOn(lines []string) error {
	for i, line := range lines {
		if verbOf(line) != p.verb {
			return p.failed("cannot %s during a %s.", p.verb, verbOf(line))
		}
		words := strings.Fields(line)
		if len(words) < 2 {
			return p.failed("invalid line %d: %s", i+1, line)
		}
		c, ok := p.commitNamed(words[1])
		if !ok {
			return p.failed("could not parse '%s'", words[1])
		}
		if err := p.writeNote(sequenceFile("todo"), strings.Join(lines[i:], "\n")+"\n"); err != nil {
			return err
		}
		if err := p.apply(c); err != nil {
			return err
		}
	}
	return p.removeSequence()
}

// noteHead notes where a sequence has left HEAD, when there is one.
func (p *picker) noteHead() error {
	if _, err := p.FS.Lstat(p.ctx, path.Join(p.dir, sequencer)); err != nil {
		return nil
	}
	_, head, err := p.head()
	if err != nil {
		return err
	}
	return p.writeNote(sequenceFile("abort-safety"), head.String()+"\n")
}

func (g *call) removeSequence() error { return g.FS.RemoveAll(g.ctx, path.Join(g.dir, sequencer)) }

// endPick forgets the commit that is being picked or reverted, and a sequence of which it is the last.
func (g *call) endPick() error {
	going, err := g.underway()
	if err != nil || going.commit.IsZero() {
		return err
	}
	todo, err := g.todo()
	if err == nil && going.sequence && len(todo) < 2 {
		err = g.removeSequence()
	}
	return errors.Join(err, g.removeNotes(cherryPickHead, revertHead))
}

// quitPicks forgets all of it, and leaves the index and the work tree as they are.
func (g *call) quitPicks() error {
	return errors.Join(g.endMerge(), g.removeSequence())
}

// resume commits what is resolved, and goes on with what is left.
func (p *picker) resume() error {
	going, err := p.underway()
	if err != nil {
		return err
	}
	if !going.sequence {
		return p.concludeOne(going)
	}
	if err := p.readOptions(); err != nil {
		return err
	}
	lines, err := p.todo()
	if err != nil {
		return err
	}
	if going.verb != p.verb {
		return p.failed("cannot %s during a %s.", p.verb, going.verb)
	}
	if !going.commit.IsZero() {
		if err := p.concludeOne(going); err != nil {
			return err
		}
	}
	if _, err := p.FS.Lstat(p.ctx, path.Join(p.dir, sequencer)); errors.Is(err, vfs.ErrNotExist) {
		return nil // that was the last
	}
	return p.goOn(lines[1:])
}

// concludeOne commits what the user has resolved.
func (p *picker) concludeOne(going operation) error {
	if going.commit.IsZero() {
		return p.failed("no cherry-pick or revert in progress")
	}
	inner := *p.call
	inner.verb = "commit"
	err := inner.commit(nil)
	p.index = inner.index
	return errors.Join(err, p.noteHead())
}

// skip throws away what the commit that clashed has left, and goes on with the next.
func (p *picker) skip() error {
	going, err := p.underway()
	if err != nil {
		return err
	}
	_, head, err := p.head()
	if err != nil {
		return err
	}
	if going.verb != p.verb || going.commit.IsZero() && !going.sequence {
		return p.failed("no %s in progress", p.verb)
	}
	if going.commit.IsZero() {
		if safe, err := p.safe(head); err != nil {
			return err
		} else if !safe {
			p.tell("error: there is nothing to skip\nhint: have you committed already?\nhint: try \"git %s --continue\"\n", p.verb)
			return p.failed("")
		}
	}
	lines, err := p.todo()
	if err != nil {
		return err
	}
	if err := p.putBack(head); err != nil {
		return err
	}
	if !going.sequence || len(lines) < 2 {
		return p.removeSequence()
	}
	if err := p.readOptions(); err != nil {
		return err
	}
	return p.goOn(lines[1:])
}

// safe says whether HEAD is where the sequence has left it.
func (p *picker) safe(head plumbing.Hash) (bool, error) {
	text, err := p.readNote(sequenceFile("abort-safety"))
	return strings.TrimSpace(text) == head.String(), err
}

// abort puts back what was before the first commit.
func (p *picker) abort() error {
	going, err := p.underway()
	if err != nil {
		return err
	}
	_, head, err := p.head()
	if err != nil {
		return err
	}
	text, err := p.readNote(sequenceFile("head"))
	if err != nil {
		return err
	}
	if text == "" { // no sequence
		if going.commit.IsZero() {
			return p.failed("no cherry-pick or revert in progress")
		}
		text = head.String()
	}
	to := plumbing.NewHash(strings.TrimSpace(text))
	switch safe, err := p.safe(head); {
	case err != nil:
		return err
	case to.IsZero():
		return p.failed("cannot abort from a branch yet to be born")
	case going.sequence && !safe:
		p.tell("warning: You seem to have moved HEAD. Not rewinding, check your HEAD!\n")
	default:
		if err := p.putBack(to); err != nil {
			return err
		}
	}
	return p.removeSequence()
}

// putBack is git reset --merge to a commit.
func (p *picker) putBack(to plumbing.Hash) error {
	_, head, err := p.head()
	if err != nil {
		return err
	}
	if err := p.resetMerge(to, to.String()); err != nil {
		return err
	}
	err = errors.Join(p.setRef(origHead, head, ""), p.moveHead(head, to, fmt.Sprintf("reset: moving to %s", to)))
	return errors.Join(err, p.endMerge())
}
