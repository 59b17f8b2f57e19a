package git

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/casstore/vfs"
)

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
