package git

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pushOptions = []string{"u=set-upstream", "f=force", "force-with-lease?", "d=delete", "tags", "all", "n=dry-run", "q=quiet", "v=verbose", "no-verify",
	"progress", "no-progress"}

// pushing is one run of git push.
type pushing struct {
	*call
	f      *flags
	remote string // its name; "" for a place that has none
	place  string
	refs   []*plumbing.Reference // of the peer
	list   []pushed
	lines  []reportLine
	notes  []string // said at the end
	failed bool
}

// pushed is a reference that is to be pushed.
type pushed struct {
	from  string // here, as it is told; "" for a removal
	full  string // the reference here; "" when it is none
	to    string
	hash  plumbing.Hash
	force bool
	old   plumbing.Hash // what it is there
}

// push is git push.
func (g *call) push(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	branch, _, err := g.head()
	if err != nil {
		return err
	}
	name, specs := "", []string(nil)
	if len(f.args) > 0 {
		name, specs = f.args[0], f.args[1:]
	} else if name = g.pushRemote(branch); name == "" {
		return g.fatal("No configured push destination.\nEither specify the URL from the command-line or configure a remote repository using\n\n" +
			"    git remote add <name> <url>\n\nand then push using the remote name\n\n    git push <name>\n")
	}
	place, isRemote := g.remoteURL(name, true)
	t := &pushing{call: g, f: f, place: place}
	if isRemote {
		t.remote = name
	}
	if err := t.choose(branch, specs); err != nil {
		return err
	}
	p, err := g.dial(place, true)
	if err != nil {
		return err
	}
	defer p.close()
	if t.refs, err = p.refs(); err != nil {
		return err
	}
	return t.run(p)
}

// pushRemote is where a branch is pushed to.
func (g *call) pushRemote(branch string) string {
	for _, name := range []string{"branch." + branch + ".pushremote", "remote.pushdefault"} {
		if v := g.setting(name); v != "" {
			return v
		}
	}
	return g.remoteOf(branch)
}

// choose decides what is pushed.
func (t *pushing) choose(branch string, specs []string) error {
	switch {
	case t.f.has("d") && len(specs) == 0:
		return t.fatal("--delete doesn't make sense without any refs")
	case t.f.has("d"):
		for _, name := range specs {
			t.list = append(t.list, pushed{to: name, force: true})
		}
		return nil
	case t.f.has("all"), t.f.has("tags"):
		for _, p := range []struct{ option, prefix string }{{"all", heads}, {"tags", tags}} {
			if !t.f.has(p.option) {
				continue
			}
			refs, err := t.references(p.prefix)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				name := ref.Name().String()
				t.list = append(t.list, pushed{from: brief(name), full: name, to: name, hash: ref.Hash()})
			}
		}
	case len(specs) == 0:
		to, err := t.usual(branch)
		if err != nil {
			return err
		}
		specs = []string{heads + branch + ":" + to}
	}
	for _, spec := range specs {
		if err := t.named(spec); err != nil {
			return err
		}
	}
	return nil
}

// usual is where the current branch goes when nobody says: as push.default has it.
func (t *pushing) usual(branch string) (string, error) {
	if branch == "" {
		return "", t.fatal("You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n"+
			"    git push %s HEAD:<name-of-remote-branch>\n", t.remote)
	}
	u, ok := t.upstream(branch)
	switch how := t.setting("push.default"); how {
	case "current":
		return heads + branch, nil
	case "", "simple", "upstream", "tracking":
		switch {
		case t.f.has("u") && t.remote != "", ok && u.remote != t.remote && how != "upstream" && how != "tracking", t.enabled("push.autosetupremote", false):
			return heads + branch, nil
		case !ok:
			return "", t.fatal("The current branch %s has no upstream branch.\nTo push the current branch and set the remote as upstream, use\n\n"+
				"    git push --set-upstream %s %s\n\nTo have this happen automatically for branches without a tracking\n"+
				"upstream, see 'push.autoSetupRemote' in 'git help config'.\n", branch, cmp.Or(t.remote, t.place), branch)
		case (how == "" || how == "simple") && u.merge != heads+branch:
			return "", t.fatal("The upstream branch of your current branch does not match\nthe name of your current branch.  To push to the upstream branch\n"+
				"on the remote, use\n\n    git push %s HEAD:%s\n\nTo push to the branch of the same name on the remote, use\n\n    git push %s HEAD\n",
				t.remote, brief(u.merge), t.remote)
		}
		return u.merge, nil
	default:
		return "", t.fatal("push.default is '%s', which is not supported here", how)
	}
}

// named adds what somebody named: [+]SRC[:DST], or :DST for a removal.
func (t *pushing) named(text string) error {
	text, force := strings.CutPrefix(text, "+")
	src, dst, to := strings.Cut(text, ":")
	p := pushed{from: brief(src), to: dst, force: force}
	if src == "" {
		if dst == "" {
			return t.fatal("pushing all branches that match is not supported here")
		}
		p.force = true
		t.list = append(t.list, p)
		return nil
	}
	h, ok := t.resolve(src)
	if !ok {
		t.tell("error: src refspec %s does not match any\nerror: failed to push some refs to '%s'\n", src, public(t.place))
		return tool.Exit(1)
	}
	p.hash = h
	p.full, _ = t.refName(src)
	if p.full == "HEAD" {
		if branch, _, err := t.head(); err == nil && branch != "" {
			p.full = heads + branch
			if !to {
				p.from = branch
			}
		}
	}
	switch {
	case to && dst != "":
	case p.full == "" || p.full == "HEAD":
		return t.fatal("The destination you provided is not a full refname (i.e.,\nstarting with \"refs/\"): write %s:refs/heads/<name>", src)
	default:
		p.to = p.full
	}
	t.list = append(t.list, p)
	return nil
}

// destination makes the name of a reference there a whole one.
func (t *pushing) destination(p pushed) (string, error) {
	to := p.to
	if !strings.HasPrefix(to, "refs/") {
		found := ""
		for _, prefix := range []string{tags, heads} {
			if !hashOf(t.refs, plumbing.ReferenceName(prefix+to)).IsZero() {
				found = prefix + to
			}
		}
		switch {
		case found != "":
			to = found
		case p.hash.IsZero():
			t.tell("error: unable to delete '%s': remote ref does not exist\nerror: failed to push some refs to '%s'\n", to, public(t.place))
			return "", tool.Exit(1)
		case strings.HasPrefix(p.full, tags):
			to = tags + to
		case strings.HasPrefix(p.full, heads), strings.HasPrefix(p.full, remoteHeads):
			to = heads + to
		default:
			return "", t.fatal("The destination you provided is not a full refname (i.e.,\nstarting with \"refs/\"): write refs/heads/%s", to)
		}
	}
	if plumbing.ReferenceName(to).Validate() != nil {
		return "", t.fatal("invalid refspec '%s'", p.to)
	}
	return to, nil
}

// run pushes what was chosen and may be, and reports it.
func (t *pushing) run(p peer) error {
	var updates []update
	var sent []pushed
	var lines []reportLine
	for _, x := range t.list {
		var err error
		if x.to, err = t.destination(x); err != nil {
			return err
		}
		x.old = hashOf(t.refs, plumbing.ReferenceName(x.to))
		line, ok, err := t.judge(x)
		if err != nil {
			return err
		}
		if line == nil {
			continue // as it is there
		}
		if !ok {
			t.failed = true
			t.lines = append(t.lines, *line)
			continue
		}
		updates = append(updates, update{plumbing.ReferenceName(x.to), x.old, x.hash})
		sent, lines = append(sent, x), append(lines, *line)
	}
	if len(updates) > 0 && !t.f.has("n") {
		refused, err := t.send(p, updates)
		if err != nil {
			return err
		}
		for i, x := range sent {
			if why, no := refused[x.to]; no {
				t.failed = true
				lines[i].mark, lines[i].summary, lines[i].why = '!', "[remote rejected]", why
			} else if err := t.remember(x); err != nil {
				return err
			}
		}
	}
	t.lines = append(lines, t.lines...)
	return t.finish()
}

// judge says how a reference there is to change; nil when it is not. It is not ok when that would lose commits.
func (t *pushing) judge(x pushed) (*reportLine, bool, error) {
	l := &reportLine{from: x.from, to: brief(x.to)}
	force := x.force || t.f.has("f") || t.f.has("force-with-lease")
	if t.f.has("force-with-lease") && !x.force && !t.f.has("f") {
		if stale, err := t.stale(x); err != nil || stale {
			l.mark, l.summary, l.why = '!', "[rejected]", "stale info"
			return l, false, err
		}
	}
	switch {
	case x.hash.IsZero() && x.old.IsZero():
		return l, false, t.fatal("unable to delete '%s': remote ref does not exist", x.to)
	case x.hash.IsZero():
		l.mark, l.summary = '-', "[deleted]"
		return l, true, nil
	case x.old == x.hash:
		return nil, true, nil
	case x.old.IsZero():
		l.mark, l.summary = '*', "[new reference]"
		if strings.HasPrefix(x.to, heads) {
			l.summary = "[new branch]"
		} else if strings.HasPrefix(x.to, tags) {
			l.summary = "[new tag]"
		}
		return l, true, nil
	}
	ff, why := false, "fetch first"
	if strings.HasPrefix(x.to, tags) {
		why = "already exists"
	} else if _, known := t.peel(x.old); known {
		var err error
		if ff, err = t.reaches(x.hash, x.old); err != nil {
			return nil, false, err
		}
		why = "non-fast-forward"
	}
	switch {
	case ff:
		l.mark, l.summary = ' ', t.short(x.old)+".."+t.short(x.hash)
	case force:
		l.mark, l.summary, l.why = '+', t.short(x.old)+"..."+t.short(x.hash), "forced update"
	default:
		l.mark, l.summary, l.why = '!', "[rejected]", why
	}
	return l, ff || force, nil
}

// stale says whether a reference there is another than the one that was last seen of it.
func (t *pushing) stale(x pushed) (bool, error) {
	if lease := t.f.value("force-with-lease"); lease != "" {
		name, expect, ok := strings.Cut(lease, ":")
		if name != brief(x.to) && name != x.to {
			return false, nil
		}
		if ok {
			h, found := t.resolve(expect)
			return expect != "" && !found || h != x.old, nil
		}
	}
	seen, ok := t.seenAs(x.to)
	if !ok {
		return true, nil
	}
	h, _ := t.follow(plumbing.ReferenceName(seen))
	return h != x.old, nil
}

// seenAs is the reference by which one of the remote is known here.
func (t *pushing) seenAs(to string) (string, bool) {
	for _, spec := range t.fetchSpecs(t.remote) {
		if t.remote != "" && spec.Match(plumbing.ReferenceName(to)) {
			return spec.Dst(plumbing.ReferenceName(to)).String(), true
		}
	}
	return "", false
}

// send gives the peer what it lacks.
func (t *pushing) send(p peer, updates []update) (map[string]string, error) {
	var wants, haves []plumbing.Hash
	for _, u := range updates {
		if !u.new.IsZero() && !slices.Contains(wants, u.new) {
			wants = append(wants, u.new)
		}
	}
	for _, ref := range t.refs {
		if ref.Type() == plumbing.HashReference {
			haves = append(haves, ref.Hash())
		}
	}
	var objects []plumbing.Hash
	if _, local := p.(*treePeer); !local {
		var err error
		if objects, err = t.reachable(wants, haves); err != nil {
			return nil, err
		}
	}
	return p.push(updates, objects)
}

// remember notes what a reference of a remote is now, and that a branch follows it.
func (t *pushing) remember(x pushed) error {
	if t.remote == "" {
		return nil
	}
	if seen, ok := t.seenAs(x.to); ok {
		var err error
		if x.hash.IsZero() {
			if t.hasRef(seen) {
				err = t.removeRef(seen)
			}
		} else {
			err = t.setRef(seen, x.hash, "update by push")
		}
		if err != nil {
			return err
		}
	}
	set := t.f.has("u")
	if !set && t.enabled("push.autosetupremote", false) && len(t.f.args) == 0 {
		_, has := t.upstream(brief(x.full))
		set = !has
	}
	if !set || !strings.HasPrefix(x.full, heads) || x.hash.IsZero() {
		return nil
	}
	branch := strings.TrimPrefix(x.full, heads)
	if err := t.follows(branch, t.remote, x.to); err != nil || t.f.has("q") {
		return err
	}
	t.notes = append(t.notes, fmt.Sprintf("branch '%s' set up to track '%s/%s'.\n", branch, t.remote, brief(x.to)))
	return nil
}

func (t *pushing) finish() error {
	_ = t.Out.Flush()
	if len(t.lines) == 0 {
		if !t.f.has("q") {
			t.tell("Everything up-to-date\n")
		}
		err := t.upToDate()
		t.note()
		return err
	}
	if t.failed || !t.f.has("q") {
		t.tell("To %s\n", public(t.place))
		for _, l := range t.lines {
			t.line(l)
		}
	}
	t.note()
	if !t.failed {
		return nil
	}
	t.tell("error: failed to push some refs to '%s'\n", public(t.place))
	for _, l := range t.lines {
		if hint, ok := pushHints[l.why]; ok {
			t.tell("%s", hint)
			break
		}
	}
	return tool.Exit(1)
}

// note says what the push has changed here.
func (t *pushing) note() {
	for _, n := range t.notes {
		_ = t.print("%s", n)
	}
}

// upToDate makes a branch follow what is there already.
func (t *pushing) upToDate() error {
	var errs []error
	for _, x := range t.list {
		if t.f.has("u") && !x.hash.IsZero() {
			to, err := t.destination(x)
			x.to = to
			if err == nil {
				err = t.remember(x)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// line prints a line of a push. What is removed has no source.
func (t *pushing) line(l reportLine) {
	why := ""
	if l.why != "" {
		why = " (" + l.why + ")"
	}
	width := 17
	for _, o := range t.lines {
		width = max(width, len(o.summary))
	}
	if l.from == "" {
		t.tell(" %c %-*s %s%s\n", l.mark, width, l.summary, l.to, why)
		return
	}
	t.tell(" %c %-*s %s -> %s%s\n", l.mark, width, l.summary, l.from, l.to, why)
}

var pushHints = map[string]string{
	"fetch first": "hint: Updates were rejected because the remote contains work that you do not have\n" +
		"hint: locally. 'git pull' brings it here before you push again.\n",
	"non-fast-forward": "hint: Updates were rejected because the tip of a branch is behind its remote\n" +
		"hint: counterpart. 'git pull' brings its changes here before you push again.\n",
	"already exists": "hint: Updates were rejected because the tag already exists in the remote.\n",
}
