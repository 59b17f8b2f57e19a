package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

const (
	heads       = "refs/heads/"
	tags        = "refs/tags/"
	remoteHeads = "refs/remotes/"
	origHead    = "ORIG_HEAD"
)

func (g *call) hasRef(name string) bool {
	_, err := g.store.Reference(plumbing.ReferenceName(name))
	return err == nil
}

// allReferences lists those below a prefix, in the order of their names.
func (r *repo) allReferences(prefix string) ([]*plumbing.Reference, error) {
	iter, err := r.store.IterReferences()
	if err != nil {
		return nil, err
	}
	var list []*plumbing.Reference
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if strings.HasPrefix(ref.Name().String(), prefix) {
			list = append(list, ref)
		}
		return nil
	})
	sortReferences(list)
	return list, err
}

// references is allReferences without the symbolic ones.
func (r *repo) references(prefix string) ([]*plumbing.Reference, error) {
	list, err := r.allReferences(prefix)
	return slices.DeleteFunc(list, func(ref *plumbing.Reference) bool { return ref.Type() != plumbing.HashReference }), err
}

// setRef makes a reference lead to an object. why goes into its log.
func (g *call) setRef(name string, h plumbing.Hash, why string) error {
	return g.setReference(plumbing.NewHashReference(plumbing.ReferenceName(name), h), nil, why)
}

// moveRef is setRef for a reference that still leads to from; zero is for one that is not there.
func (g *call) moveRef(name string, from, to plumbing.Hash, why string) error {
	return g.setReference(plumbing.NewHashReference(plumbing.ReferenceName(name), to), &from, why)
}

// moveHead moves what HEAD is on from one commit to another.
func (g *call) moveHead(from, to plumbing.Hash, why string) error {
	ref, err := g.store.Reference(plumbing.HEAD)
	if err != nil {
		return err
	}
	name := plumbing.HEAD
	if ref.Type() == plumbing.SymbolicReference {
		name = ref.Target()
	}
	return g.moveRef(name.String(), from, to, why)
}

// switchHead puts HEAD on a branch, or on a commit when branch is empty.
func (g *call) switchHead(branch string, commit plumbing.Hash, why string) error {
	if branch == "" {
		return g.setRef("HEAD", commit, why)
	}
	_, before, err := g.head()
	if err != nil {
		return err
	}
	ref := plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(heads+branch))
	if err := g.putReference(ref, nil); err != nil {
		return err
	}
	return g.logRef("HEAD", before, commit, why)
}

// setReference writes a reference, and notes that in its log and in that of HEAD when HEAD is on it.
func (g *call) setReference(ref *plumbing.Reference, expect *plumbing.Hash, why string) error {
	before, _ := g.follow(ref.Name())
	if err := g.putReference(ref, expect); err != nil || ref.Type() != plumbing.HashReference {
		return err
	}
	if before != ref.Hash() || ref.Name() == plumbing.HEAD {
		if err := g.logRef(ref.Name().String(), before, ref.Hash(), why); err != nil {
			return err
		}
	}
	head, err := g.store.Reference(plumbing.HEAD)
	if err != nil || head.Type() != plumbing.SymbolicReference || head.Target() != ref.Name() {
		return nil // another repository's, or not on it
	}
	return g.logRef("HEAD", before, ref.Hash(), why)
}

// putReference writes the file of a reference, unless it leads elsewhere than expected; nil is for no expectation.
func (g *call) putReference(ref *plumbing.Reference, expect *plumbing.Hash) error {
	name := ref.Name()
	if !name.IsSafe() {
		return g.fatal("'%s' is not a valid name of a reference", name)
	}
	full := path.Join(g.dir, name.String())
	if err := g.makeRoom(name.String(), full); err != nil {
		return err
	}
	l, err := g.lock(full)
	if err != nil {
		return err
	}
	if now, _ := g.follow(name); expect != nil && now != *expect {
		l.release()
		return g.fatal("cannot lock ref '%s': is at %s but expected %s", name, now, *expect)
	}
	text := ref.Hash().String() + "\n"
	if ref.Type() == plumbing.SymbolicReference {
		text = "ref: " + ref.Target().String() + "\n"
	}
	return l.commit([]byte(text))
}

// makeRoom takes away empty directories where the file of a new reference is to be, and refuses one below another, or
// with others below it.
func (g *call) makeRoom(name, full string) error {
	a, err := g.FS.Lstat(g.ctx, full)
	if err == nil && a.Type != vfs.TypeDir {
		return nil
	}
	if strings.HasPrefix(name, "refs/") {
		all, err := g.references("refs/")
		if err != nil {
			return err
		}
		for _, other := range all {
			o := other.Name().String()
			if strings.HasPrefix(o, name+"/") || strings.HasPrefix(name, o+"/") {
				return g.fatal("cannot lock ref '%s': '%s' exists; cannot create '%s'", name, o, name)
			}
		}
	}
	if err == nil {
		return g.FS.RemoveAll(g.ctx, full) // no reference is in it
	}
	return nil
}

// removeRef removes a reference with its log.
func (g *call) removeRef(name string) error {
	if !plumbing.ReferenceName(name).IsSafe() {
		return g.fatal("'%s' is not a valid name of a reference", name)
	}
	if err := g.unpackRef(name); err != nil {
		return err
	}
	full := path.Join(g.dir, name)
	l, err := g.lock(full)
	if err != nil {
		return err
	}
	defer l.release()
	for _, file := range []string{full, g.logFile(name)} {
		if err := g.FS.Remove(g.ctx, file); err != nil && !notThere(err) {
			return err
		}
		g.pruneRefDirs(path.Dir(file))
	}
	return nil
}

// pruneRefDirs removes empty directories of references, but not those that every repository has.
func (g *call) pruneRefDirs(dir string) {
	for strings.Count(strings.TrimPrefix(dir, g.dir+"/"), "/") > 1 && g.FS.Remove(g.ctx, dir) == nil {
		dir = path.Dir(dir)
	}
}

// unpackRef takes a reference out of packed-refs, with the line behind it that says what a tag leads to.
func (g *call) unpackRef(name string) error {
	file := path.Join(g.dir, "packed-refs")
	if _, err := g.FS.Lstat(g.ctx, file); notThere(err) {
		return nil
	}
	l, err := g.lock(file)
	if err != nil {
		return err
	}
	b, err := g.FS.ReadFile(g.ctx, file, maxRefs)
	if err != nil {
		l.release()
		return err
	}
	var kept bytes.Buffer
	dropping, found := false, false
	for line := range bytes.Lines(b) {
		if line[0] != '^' {
			_, after, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
			dropping = line[0] != '#' && string(after) == name
			found = found || dropping
		}
		if !dropping {
			kept.Write(line)
		}
	}
	if !found {
		l.release()
		return nil
	}
	return l.commit(kept.Bytes())
}

// maxRefs bounds the file of packed references, and a log.
const maxRefs = 256 << 20

// logLine is what a log says of one change of a reference.
type logLine struct {
	old, new plumbing.Hash
	who      string // with the time
	why      string
}

func (g *call) logFile(name string) string { return path.Join(g.dir, "logs", name) }

// logged says whether changes of a reference are to be noted.
func (g *call) logged(name string) bool {
	switch strings.ToLower(g.setting("core.logallrefupdates")) {
	case "always":
		return true
	case "false", "no", "off", "0":
		return false
	case "":
		if g.bare() {
			return false
		}
	}
	return name == "HEAD" || strings.HasPrefix(name, heads) || strings.HasPrefix(name, remoteHeads) || name == stashRef
}

// logRef notes a change of a reference.
func (g *call) logRef(name string, old, now plumbing.Hash, why string) error {
	if !g.logged(name) && name != stashRef || old.IsZero() && now.IsZero() {
		return nil
	}
	file := g.logFile(name)
	if a, err := g.FS.Lstat(g.ctx, file); err == nil && a.Type == vfs.TypeDir {
		if err := g.FS.RemoveAll(g.ctx, file); err != nil { // of references that are gone
			return err
		}
	}
	if err := g.FS.MkdirAll(g.ctx, path.Dir(file), 0o777); err != nil {
		return err
	}
	who := g.identity("COMMITTER")
	why = strings.Join(strings.Fields(why), " ")
	line := fmt.Sprintf("%s %s %s <%s> %d %s\t%s\n", old, now, who.Name, who.Email, who.When.Unix(), who.When.Format("-0700"), why)
	return g.appendFile(file, line)
}

// readLog returns the log of a reference, the last change first.
func (g *call) readLog(name string) ([]logLine, error) {
	b, err := g.FS.ReadFile(g.ctx, g.logFile(name), maxRefs)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := g.afford(int64(2 * len(b))); err != nil {
		return nil, err
	}
	var list []logLine
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, maxConfig)
	for in.Scan() {
		head, why, _ := strings.Cut(in.Text(), "\t")
		if len(head) < 82 || !plumbing.IsHash(head[:40]) || !plumbing.IsHash(head[41:81]) {
			continue
		}
		list = append(list, logLine{plumbing.NewHash(head[:40]), plumbing.NewHash(head[41:81]), head[82:], why})
	}
	slices.Reverse(list)
	return list, in.Err()
}

// writeLog replaces the log of a reference; lines are as readLog returns them.
func (g *call) writeLog(name string, lines []logLine) error {
	var b bytes.Buffer
	for _, l := range slices.Backward(lines) {
		fmt.Fprintf(&b, "%s %s %s\t%s\n", l.old, l.new, l.who, l.why)
	}
	l, err := g.lock(g.logFile(name))
	if err != nil {
		return err
	}
	return l.commit(b.Bytes())
}

var reflogOptions = []string{"n:=max-count=<n>"}

// reflog is git reflog [show] [<ref>].
func (g *call) reflog(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	names := f.args
	if len(names) > 0 && names[0] == "show" {
		names = names[1:]
	}
	name := "HEAD"
	if len(names) > 0 {
		name = names[0]
	}
	full, ok := g.refName(name)
	if !ok {
		return g.badRevision(name)
	}
	lines, err := g.readLog(full)
	if err != nil {
		return err
	}
	most := len(lines)
	if f.has("n") {
		if most, err = strconv.Atoi(f.value("n")); err != nil {
			return g.fatal("'%s': not an integer", f.value("n"))
		}
	}
	for i, l := range lines {
		if most == 0 {
			break
		}
		if !l.new.IsZero() { // as when it has another name now
			_ = g.print("%s %s@{%d}: %s\n", g.short(l.new), name, i, l.why)
			most--
		}
	}
	return nil
}

// refName finds the whole name of a reference that somebody named in short.
func (g *call) refName(name string) (string, bool) {
	if name == "@" {
		name = "HEAD"
	}
	for _, prefix := range []string{"", "refs/", tags, heads, remoteHeads} {
		full := prefix + name
		if prefix == "" && !pseudoRef(full) && !strings.HasPrefix(full, "refs/") {
			continue
		}
		if g.hasRef(full) {
			return full, true
		}
	}
	if full := remoteHeads + name + "/HEAD"; g.hasRef(full) {
		return full, true
	}
	return "", false
}

// pseudoRef says whether a name may be that of a reference beside refs.
func pseudoRef(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// readNote reads a small file of the repository; it is empty when there is none.
func (g *call) readNote(name string) (string, error) {
	b, err := g.FS.ReadFile(g.ctx, path.Join(g.dir, name), maxConfig)
	if notThere(err) {
		return "", nil
	}
	return string(b), err
}

func (g *call) writeNote(name, text string) error {
	l, err := g.lock(path.Join(g.dir, name))
	if err != nil {
		return err
	}
	return l.commit([]byte(text))
}

func (g *call) removeNotes(names ...string) error {
	var errs []error
	for _, name := range names {
		if err := g.FS.Remove(context.WithoutCancel(g.ctx), path.Join(g.dir, name)); err != nil && !notThere(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// appendFile adds a line to a file.
func (g *call) appendFile(name, line string) error {
	f, err := g.FS.OpenFile(g.ctx, name, treepath.Write|treepath.Create|treepath.Append, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(line))
	return errors.Join(err, f.Close())
}
