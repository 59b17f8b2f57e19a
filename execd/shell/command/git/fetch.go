package git

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var fetchOptions = []string{"p=prune", "t=tags", "n=no-tags", "all", "f=force", "q=quiet", "v=verbose", "depth:", "no-auto-gc", "progress", "no-progress"}

// fetch is git fetch.
func (g *call) fetch(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if !f.has("all") {
		name, specs := "", []string(nil)
		if len(f.args) > 0 {
			name, specs = f.args[0], f.args[1:]
		}
		_, err := g.fetchFrom(name, specs, f)
		return err
	}
	if len(f.args) > 0 {
		return g.fatal("fetch --all does not take a repository argument")
	}
	for _, name := range g.remoteNames() {
		if !f.has("q") {
			_ = g.print("Fetching %s\n", name)
			_ = g.Out.Flush()
		}
		if _, err := g.fetchFrom(name, nil, f); err != nil {
			return err
		}
	}
	return nil
}

// fetched is a reference of a peer that is brought here.
type fetched struct {
	from  plumbing.ReferenceName
	hash  plumbing.Hash
	to    string // the reference here; "" for none
	force bool
	merge bool // pull merges it
}

// fetching is one run of a fetch.
type fetching struct {
	*call
	f      *flags
	place  string // of the peer, as it is told
	peer   peer
	refs   []*plumbing.Reference
	list   []fetched
	lines  []reportLine
	failed bool
}

// fetchFrom brings references of another repository here, and returns those that a pull merges. name is a remote, or where
// the repository is; empty for the remote of the branch.
func (g *call) fetchFrom(name string, specs []string, f *flags) ([]fetched, error) {
	branch, _, err := g.head()
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name = g.remoteOf(branch); name == "" {
			return nil, g.fatal("No remote repository specified.  Please, specify either a URL or a\nremote name from which new revisions should be fetched.")
		}
	}
	place, isRemote := g.remoteURL(name, false)
	p, err := g.dial(place, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	t := &fetching{call: g, f: f, place: told(place), peer: p}
	if t.refs, err = p.refs(); err != nil {
		return nil, err
	}
	remote := ""
	if isRemote {
		remote = name
	}
	if err := t.choose(remote, branch, specs); err != nil {
		return nil, err
	}
	if err := t.objects(); err != nil {
		return nil, err
	}
	if remote != "" && (f.has("p") || g.enabled("fetch.prune", false)) && len(specs) == 0 {
		if err := t.prune(remote); err != nil {
			return nil, err
		}
	}
	return t.finish()
}

// told is how people are told where a repository is.
func told(place string) string {
	return strings.TrimSuffix(strings.TrimRight(public(place), "/"), ".git")
}

// choose decides what is fetched.
func (t *fetching) choose(remote, branch string, specs []string) error {
	configured := t.fetchSpecs(remote)
	if len(specs) == 0 && len(configured) > 0 {
		merge := ""
		if t.setting("branch."+branch+".remote") == remote {
			merge = t.setting("branch." + branch + ".merge")
		}
		for _, spec := range configured {
			t.matching(spec, merge)
		}
		if merge != "" && !slices.ContainsFunc(t.list, func(x fetched) bool { return x.merge }) {
			if h := hashOf(t.refs, plumbing.ReferenceName(merge)); !h.IsZero() {
				t.list = append(t.list, fetched{from: plumbing.ReferenceName(merge), hash: h, merge: true})
			}
		}
	} else {
		if len(specs) == 0 {
			specs = []string{"HEAD"}
		}
		for _, text := range specs {
			if err := t.named(text, configured); err != nil {
				return err
			}
		}
	}
	if t.f.has("t") {
		t.matching(config.RefSpec("refs/tags/*:refs/tags/*"), "")
	}
	return nil
}

// matching adds what a specification of the configuration matches.
func (t *fetching) matching(spec config.RefSpec, merge string) {
	for _, ref := range t.refs {
		if ref.Type() == plumbing.HashReference && spec.Match(ref.Name()) {
			t.add(fetched{ref.Name(), ref.Hash(), spec.Dst(ref.Name()).String(), spec.IsForceUpdate(), ref.Name().String() == merge})
		}
	}
}

// add adds a reference, unless it is brought to the same place already.
func (t *fetching) add(x fetched) {
	if !slices.ContainsFunc(t.list, func(o fetched) bool { return o.from == x.from && o.to == x.to }) {
		t.list = append(t.list, x)
	}
}

// named adds what somebody named: [+]SRC[:DST]. Without DST it also goes where the configuration has it.
func (t *fetching) named(text string, configured []config.RefSpec) error {
	text, force := strings.CutPrefix(text, "+")
	src, dst, to := strings.Cut(text, ":")
	if strings.Contains(src, "*") {
		spec := config.RefSpec(text)
		if spec.Validate() != nil {
			return t.fatal("invalid refspec '%s'", text)
		}
		if force {
			spec = "+" + spec
		}
		t.matching(spec, "")
		return nil
	}
	ref, ok := t.find(src)
	if !ok {
		return t.fatal("couldn't find remote ref %s", src)
	}
	if to && dst != "" {
		if !strings.HasPrefix(dst, "refs/") {
			dst = heads + dst
			if ref.Name().IsTag() {
				dst = tags + strings.TrimPrefix(dst, heads)
			}
		}
		if plumbing.ReferenceName(dst).Validate() != nil {
			return t.fatal("invalid refspec '%s'", text)
		}
		t.add(fetched{ref.Name(), ref.Hash(), dst, force, true})
		return nil
	}
	t.add(fetched{ref.Name(), ref.Hash(), "", force, true})
	for _, spec := range configured {
		if spec.Match(ref.Name()) {
			t.add(fetched{ref.Name(), ref.Hash(), spec.Dst(ref.Name()).String(), spec.IsForceUpdate(), false})
		}
	}
	return nil
}

// find finds a reference of the peer by its name, whole or in short.
func (t *fetching) find(name string) (*plumbing.Reference, bool) {
	if name == "" || name == "@" {
		name = "HEAD"
	}
	for _, prefix := range []string{"", "refs/", tags, heads, remoteHeads} {
		for _, ref := range t.refs {
			if ref.Name().String() != prefix+name {
				continue
			}
			if ref.Type() == plumbing.SymbolicReference {
				return plumbing.NewHashReference(ref.Name(), hashOf(t.refs, ref.Target())), true
			}
			return ref, true
		}
	}
	if plumbing.IsHash(name) && len(name) == 40 {
		return plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(name)), true
	}
	return nil, false
}

// objects brings what is not here yet, and adds the tags that lead into it.
func (t *fetching) objects() error {
	var wants []plumbing.Hash
	want := func(h plumbing.Hash) {
		if !t.has(h) && !slices.Contains(wants, h) {
			wants = append(wants, h)
		}
	}
	for _, x := range t.list {
		want(x.hash)
	}
	follow := !t.f.has("n") && slices.ContainsFunc(t.list, func(x fetched) bool { return x.to != "" })
	for _, ref := range t.newTags(follow) {
		want(ref.Hash())
	}
	depth := 0
	if text := t.f.value("depth"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 {
			return t.fatal("depth %s is not a positive number", text)
		}
		for _, x := range t.list {
			if !slices.Contains(wants, x.hash) {
				wants = append(wants, x.hash)
			}
		}
	}
	if len(wants) > 0 {
		haves, err := t.haves()
		if err != nil {
			return err
		}
		shallow, err := t.peer.fetch(wants, haves, depth)
		if err != nil {
			return err
		}
		if err := t.addShallow(shallow); err != nil {
			return err
		}
	}
	for _, x := range t.list {
		if !t.has(x.hash) {
			return t.fatal("%s did not send all necessary objects", t.place)
		}
	}
	for _, ref := range t.newTags(follow) {
		if t.has(ref.Hash()) {
			t.add(fetched{from: ref.Name(), hash: ref.Hash(), to: ref.Name().String()})
		}
	}
	return nil
}

// newTags are those of the peer's tags that are not here, and lead to what is.
func (t *fetching) newTags(follow bool) (list []*plumbing.Reference) {
	if !follow {
		return nil
	}
	for _, ref := range t.refs {
		if ref.Name().IsTag() && ref.Type() == plumbing.HashReference && !t.hasRef(ref.Name().String()) && t.has(t.peer.peeled(ref)) {
			list = append(list, ref)
		}
	}
	return list
}

// addShallow notes commits whose parents were left there.
func (g *call) addShallow(list []plumbing.Hash) error {
	if len(list) == 0 {
		return nil
	}
	all := g.shallowNow()
	if all == nil {
		all = map[plumbing.Hash]bool{}
	}
	for _, h := range list {
		all[h] = true
	}
	var text strings.Builder
	var sorted []plumbing.Hash
	for h := range all {
		sorted = append(sorted, h)
	}
	plumbing.HashesSort(sorted)
	for _, h := range sorted {
		fmt.Fprintf(&text, "%s\n", h)
	}
	g.shallow = nil
	return g.writeNote("shallow", text.String())
}

// maxHaves is how many commits a peer is told of, so that it can see what it need not send.
const maxHaves = 256

// haves are the commits that references here lead to, and those before them, the newest first.
func (g *call) haves() ([]plumbing.Hash, error) {
	refs, err := g.references("refs/")
	if err != nil {
		return nil, err
	}
	w := &walk{call: g, seen: map[plumbing.Hash]bool{}}
	for _, ref := range refs {
		if c, ok := g.peel(ref.Hash()); ok {
			if err := w.push(c.Hash); err != nil {
				return nil, err
			}
		}
	}
	var list []plumbing.Hash
	for len(list) < maxHaves {
		c, err := w.next()
		if err != nil || c == nil {
			return list, err
		}
		list = append(list, c.Hash)
	}
	return list, nil
}

// prune removes the references of what the remote has no more.
func (t *fetching) prune(remote string) error {
	for _, spec := range t.fetchSpecs(remote) {
		back := config.RefSpec(strings.TrimPrefix(spec.String(), "+")).Reverse()
		refs, err := t.references("refs/")
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if !back.Match(ref.Name()) || !hashOf(t.refs, back.Dst(ref.Name())).IsZero() {
				continue
			}
			if err := t.removeRef(ref.Name().String()); err != nil {
				return err
			}
			t.lines = append(t.lines, reportLine{'-', "[deleted]", "(none)", brief(ref.Name().String()), ""})
		}
	}
	return nil
}

// finish moves the references, notes what was fetched, and reports it.
func (t *fetching) finish() ([]fetched, error) {
	var note strings.Builder
	var merge []fetched
	for _, x := range t.list {
		if err := t.move(x); err != nil {
			return nil, err
		}
		forMerge := "not-for-merge"
		if x.merge {
			merge, forMerge = append(merge, x), ""
		}
		if x.to == "" || !x.from.IsTag() {
			fmt.Fprintf(&note, "%s\t%s\t%s\n", x.hash, forMerge, t.describe(x))
		}
	}
	if err := t.writeNote("FETCH_HEAD", note.String()); err != nil {
		return nil, err
	}
	if !t.f.has("q") && len(t.lines) > 0 {
		_ = t.Out.Flush()
		t.tell("From %s\n", t.place)
		t.report(t.lines)
	}
	if t.failed {
		return merge, tool.Exit(1)
	}
	return merge, nil
}

// describe is what FETCH_HEAD, and the message of a merge, say of something fetched.
func (t *fetching) describe(x fetched) string {
	switch name := x.from.String(); {
	case name == "HEAD" || plumbing.IsHash(name):
		return t.place
	case x.from.IsBranch():
		return "branch '" + x.from.Short() + "' of " + t.place
	case x.from.IsTag():
		return "tag '" + x.from.Short() + "' of " + t.place
	default:
		return "'" + name + "' of " + t.place
	}
}

// brief is the name of a reference without what everybody knows.
func brief(name string) string {
	for _, prefix := range []string{heads, tags, remoteHeads} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// reportLine is one line of what a fetch or a push says.
type reportLine struct {
	mark     byte
	summary  string
	from, to string
	why      string // in parentheses; "" for none
}

// move makes the reference here what it is there, and reports that.
func (t *fetching) move(x fetched) error {
	line := reportLine{from: brief(x.from.String()), to: brief(x.to)}
	if x.to == "" {
		kind := "branch"
		if x.from.IsTag() {
			kind = "tag"
		}
		t.lines = append(t.lines, reportLine{'*', kind, brief(x.from.String()), "FETCH_HEAD", ""})
		return nil
	}
	old, there := t.follow(plumbing.ReferenceName(x.to))
	why := "fetch"
	switch {
	case there && old == x.hash:
		if t.f.has("v") {
			t.lines = append(t.lines, reportLine{'=', "[up to date]", line.from, line.to, ""})
		}
		return nil
	case t.checkedOut(x.to):
		return t.fatal("refusing to fetch into branch '%s' checked out at '%s'", x.to, t.root)
	case !there:
		line.mark, line.summary = '*', "[new ref]"
		if strings.HasPrefix(x.to, tags) {
			line.summary = "[new tag]"
		} else if x.from.IsBranch() {
			line.summary = "[new branch]"
		}
		why += ": storing head"
	case strings.HasPrefix(x.to, tags):
		if !x.force && !t.f.has("f") {
			t.failed = true
			t.lines = append(t.lines, reportLine{'!', "[rejected]", line.from, line.to, "would clobber existing tag"})
			return nil
		}
		line.mark, line.summary = 't', "[tag update]"
	default:
		ff, err := t.reaches(x.hash, old)
		if err != nil {
			return err
		}
		switch {
		case ff:
			line.mark, line.summary = ' ', t.short(old)+".."+t.short(x.hash)
			why += ": fast-forward"
		case x.force || t.f.has("f"):
			line.mark, line.summary, line.why = '+', t.short(old)+"..."+t.short(x.hash), "forced update"
			why += ": forced-update"
		default:
			t.failed = true
			t.lines = append(t.lines, reportLine{'!', "[rejected]", line.from, line.to, "non-fast-forward"})
			return nil
		}
	}
	if err := t.moveRef(x.to, old, x.hash, why); err != nil {
		return err
	}
	t.lines = append(t.lines, line)
	return nil
}

// checkedOut says whether a reference is the branch that a work tree is on.
func (g *call) checkedOut(name string) bool {
	branch, _, err := g.head()
	return err == nil && g.root != "" && branch != "" && name == heads+branch
}

// report prints lines in columns.
func (g *call) report(lines []reportLine) {
	width, names := 17, 10
	for _, l := range lines {
		width, names = max(width, len(l.summary)), max(names, len(l.from))
	}
	for _, l := range lines {
		why := ""
		if l.why != "" {
			why = "  (" + l.why + ")"
		}
		g.tell(" %c %-*s %-*s -> %s%s\n", l.mark, width, l.summary, names, l.from, l.to, why)
	}
}
