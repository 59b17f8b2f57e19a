package git

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// peer is another repository: one of the workspace, or one that the host lets us reach.
type peer interface {
	// refs lists its references in order; HEAD is a symbolic one when it is on a branch.
	refs() ([]*plumbing.Reference, error)
	// peeled is what a tag of it leads to, and any other reference by itself.
	peeled(ref *plumbing.Reference) plumbing.Hash
	// fetch puts the objects that lead from wants and not from haves into our repository. depth, when it is not 0, is how
	// many commits deep; then those are returned whose parents were left there.
	fetch(wants, haves []plumbing.Hash, depth int) (shallow []plumbing.Hash, err error)
	// push gives it objects, and makes its references as the updates say. It returns why some of them were not, by name.
	push(updates []update, objects []plumbing.Hash) (refused map[string]string, err error)
	close() error
}

// update is a reference of a peer that is to be changed.
type update struct {
	name     plumbing.ReferenceName
	old, new plumbing.Hash // zero for none
}

// ErrNotAllowed is what a host's transport gives for a repository that it lets no script reach.
var ErrNotAllowed = errors.New("the host does not let scripts reach it")

// dial opens another repository, for fetching or for pushing. A path is in the workspace. So is a file URL, unless the host
// lends a directory of its own by it.
func (g *call) dial(place string, pushing bool) (peer, error) {
	if place == "" {
		return nil, g.fatal("no path specified; see 'git help pull' for valid url syntax")
	}
	scheme, rest, ok := strings.Cut(place, "://")
	switch {
	case !ok && scpLike(place):
		return nil, g.fatal("unable to access '%s': there is no ssh here", place)
	case !ok:
		return g.dialPath(place, place)
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "http", "https":
		return g.dialHost(place, pushing)
	case "file":
		p, err := g.dialHost(place, pushing)
		if errors.Is(err, errUnreached) {
			return g.dialPath(place, strings.TrimPrefix(rest, "localhost"))
		}
		return p, err
	}
	return nil, g.fatal("unable to access '%s': there is no %s here", place, scheme)
}

// scpLike says whether somebody means user@host:path.
func scpLike(place string) bool {
	host, _, ok := strings.Cut(place, ":")
	return ok && !strings.Contains(host, "/")
}

// public is a URL without its password, as people are told it.
func public(place string) string {
	scheme, rest, ok := strings.Cut(place, "://")
	host, _, _ := strings.Cut(rest, "/")
	if _, err := url.Parse(place); err != nil {
		host = rest // whatever is before the last @ may be one
	}
	i := strings.LastIndexByte(host, '@')
	if !ok || i < 0 {
		return place
	}
	user, _, _ := strings.Cut(host[:i], ":")
	return scheme + "://" + user + rest[i:]
}

// errUnreached says that the host lends nothing by a file URL.
var errUnreached = errors.New("not the host's")

// dialHost opens a repository through what the host lends.
func (g *call) dialHost(place string, pushing bool) (peer, error) {
	u, err := url.Parse(place)
	if err != nil {
		return nil, g.fatal("unable to access '%s': it is no URL", public(place))
	}
	file := u.Scheme == "file"
	if g.remotes == nil {
		if file {
			return nil, errUnreached
		}
		return nil, g.fatal("unable to access '%s': %s", public(place), ErrNotAllowed)
	}
	ep := &transport.Endpoint{Protocol: u.Scheme, Host: u.Hostname(), Path: u.Path}
	if strings.Contains(ep.Host, ":") {
		ep.Host = "[" + ep.Host + "]"
	}
	if u.User != nil {
		ep.User = u.User.Username()
		ep.Password, _ = u.User.Password()
	}
	if port := u.Port(); port != "" {
		if ep.Port, err = strconv.Atoi(port); err != nil {
			return nil, g.fatal("unable to access '%s': it is no URL", public(place))
		}
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, g.fatal("unable to access '%s': a query or a fragment is not supported here", public(place))
	}
	h := &hostPeer{call: g, place: public(place)}
	if pushing {
		h.up, err = g.remotes.NewReceivePackSession(ep, nil)
	} else {
		h.down, err = g.remotes.NewUploadPackSession(ep, nil)
	}
	if err != nil && file && errors.Is(err, ErrNotAllowed) {
		return nil, errUnreached
	}
	if err != nil {
		return nil, h.failed(err)
	}
	return h, nil
}

// hostPeer is a repository that the host reaches for us.
type hostPeer struct {
	*call
	place string // as it is told
	down  transport.UploadPackSession
	up    transport.ReceivePackSession
	adv   *packp.AdvRefs
}

func (h *hostPeer) close() error {
	if h.down != nil {
		return h.down.Close()
	}
	return h.up.Close()
}

// failed says what is wrong with a peer, in the words of git's where it has some.
func (h *hostPeer) failed(err error) error {
	var exit tool.Exit
	switch {
	case h.ctx.Err() != nil, errors.As(err, &exit), tool.Ends(h.ctx, err):
		return err
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return h.fatal("repository '%s/' not found", strings.TrimSuffix(h.place, "/"))
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return h.fatal("Authentication failed for '%s/'", strings.TrimSuffix(h.place, "/"))
	}
	return h.fatal("unable to access '%s': %s", h.place, printable(err.Error()))
}

func (h *hostPeer) refs() ([]*plumbing.Reference, error) {
	var s transport.Session = h.down
	if h.up != nil {
		s = h.up
	}
	adv, err := s.AdvertisedReferencesContext(h.ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		h.adv = packp.NewAdvRefs()
		return nil, nil
	}
	if err != nil {
		return nil, h.failed(err)
	}
	h.adv = adv
	var list []*plumbing.Reference
	for text, hash := range adv.References {
		if name := plumbing.ReferenceName(text); strings.HasPrefix(text, "refs/") && name.Validate() == nil {
			list = append(list, plumbing.NewHashReference(name, hash))
		}
	}
	sortReferences(list)
	if adv.Head != nil {
		list = append([]*plumbing.Reference{headOf(adv, list)}, list...)
	}
	return list, nil
}

// headOf is what the HEAD of a peer is on: what it says, or a branch that leads to the same commit, or none.
func headOf(adv *packp.AdvRefs, list []*plumbing.Reference) *plumbing.Reference {
	on := func(target plumbing.ReferenceName) *plumbing.Reference {
		if hashOf(list, target) != *adv.Head {
			return nil
		}
		return plumbing.NewSymbolicReference(plumbing.HEAD, target)
	}
	for _, text := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(text, "HEAD:"); ok {
			if ref := on(plumbing.ReferenceName(target)); ref != nil {
				return ref
			}
		}
	}
	if ref := on(plumbing.Master); ref != nil {
		return ref
	}
	for _, branch := range list {
		if branch.Name().IsBranch() && branch.Hash() == *adv.Head {
			return plumbing.NewSymbolicReference(plumbing.HEAD, branch.Name())
		}
	}
	return plumbing.NewHashReference(plumbing.HEAD, *adv.Head)
}

func (h *hostPeer) peeled(ref *plumbing.Reference) plumbing.Hash {
	if to, ok := h.adv.Peeled[ref.Name().String()]; ok {
		return to
	}
	return ref.Hash()
}

func sortReferences(list []*plumbing.Reference) {
	slices.SortFunc(list, func(a, b *plumbing.Reference) int { return strings.Compare(a.Name().String(), b.Name().String()) })
}

func (h *hostPeer) fetch(wants, haves []plumbing.Hash, depth int) ([]plumbing.Hash, error) {
	req := packp.NewUploadPackRequestFromCapabilities(h.adv.Capabilities)
	if h.adv.Capabilities.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress) // known to it
	}
	if h.adv.Capabilities.Supports(capability.IncludeTag) {
		_ = req.Capabilities.Set(capability.IncludeTag) // known to it
	}
	if depth > 0 {
		if !h.adv.Capabilities.Supports(capability.Shallow) {
			return nil, h.fatal("'%s' does not support --depth", h.place)
		}
		req.Depth = packp.DepthCommits(depth)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}
	req.Wants, req.Haves = wants, haves
	for end := range h.shallowNow() {
		req.Shallows = append(req.Shallows, end)
	}
	if len(req.Shallows) > 0 {
		_ = req.Capabilities.Set(capability.Shallow)
	}
	res, err := h.down.UploadPack(h.ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil, nil
	}
	if err != nil {
		return nil, h.failed(err)
	}
	defer res.Close()
	if err := h.storePack(h.unmixed(req.Capabilities, res)); err != nil {
		return nil, h.failed(err)
	}
	return res.Shallows, nil
}

// shallowNow are the commits whose parents are not here.
func (g *call) shallowNow() map[plumbing.Hash]bool {
	list, err := g.store.Shallow()
	if err != nil {
		return nil
	}
	all := map[plumbing.Hash]bool{}
	for _, h := range list {
		all[h] = true
	}
	return all
}

// unmixed takes what the peer says to us out of what it sends.
func (h *hostPeer) unmixed(caps *capability.List, r io.Reader) io.Reader {
	var d *sideband.Demuxer
	switch {
	case caps.Supports(capability.Sideband64k):
		d = sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		d = sideband.NewDemuxer(sideband.Sideband, r)
	default:
		return r
	}
	d.Progress = remoteVoice{h.call}
	return d
}

// remoteVoice passes on what a peer says, line by line.
type remoteVoice struct{ g *call }

func (v remoteVoice) Write(p []byte) (int, error) {
	for _, line := range strings.FieldsFunc(string(p), func(r rune) bool { return r == '\n' || r == '\r' }) {
		v.g.tell("remote: %s\n", printable(line))
	}
	return len(p), nil
}

// printable takes out of somebody else's words what would work on a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

func (h *hostPeer) push(updates []update, objects []plumbing.Hash) (map[string]string, error) {
	caps := h.adv.Capabilities
	req := packp.NewReferenceUpdateRequestFromCapabilities(caps)
	if caps.Supports(capability.Sideband64k) {
		_ = req.Capabilities.Set(capability.Sideband64k) // known to it
		req.Progress = remoteVoice{h.call}
	}
	gives := false
	for _, u := range updates {
		req.Commands = append(req.Commands, &packp.Command{Name: u.name, Old: u.old, New: u.new})
		gives = gives || !u.new.IsZero()
		if u.new.IsZero() {
			if !caps.Supports(capability.DeleteRefs) {
				return nil, h.fatal("'%s' does not delete references", h.place)
			}
			_ = req.Capabilities.Set(capability.DeleteRefs)
		}
	}
	if gives {
		pack := &heldPack{g: h.call}
		if err := h.writePack(pack, objects); err != nil {
			return nil, err
		}
		req.Packfile = io.NopCloser(&pack.Buffer)
	}
	report, err := h.up.ReceivePack(h.ctx, req)
	if err != nil && report == nil {
		return nil, h.failed(err)
	}
	refused := map[string]string{}
	if report == nil {
		return refused, nil
	}
	if report.UnpackStatus != "ok" {
		for _, u := range updates {
			refused[u.name.String()] = "unpacker error: " + printable(report.UnpackStatus)
		}
	}
	for _, s := range report.CommandStatuses {
		if s.Status != "ok" {
			refused[s.ReferenceName.String()] = printable(s.Status)
		}
	}
	return refused, nil
}

// heldPack is a pack in memory, twice: go-git's transport makes one request of it.
type heldPack struct {
	g *call
	bytes.Buffer
}

func (p *heldPack) Write(b []byte) (int, error) {
	if err := p.g.Take(2 * int64(len(b))); err != nil {
		return 0, err
	}
	return p.Buffer.Write(b)
}

// pathRepository finds the repository at a path, which may lack its suffix.
func (g *call) pathRepository(name string) (dir string, ok bool) {
	for _, name := range []string{name, name + ".git"} {
		dir, err := g.FS.RealPath(g.ctx, name)
		if err != nil {
			continue
		}
		if inside, err := g.repositoryOf(dir); err == nil && inside != "" {
			return inside, true
		}
		if g.isRepository(dir) {
			return dir, true
		}
	}
	return "", false
}

// dialPath opens a repository of the workspace.
func (g *call) dialPath(place, name string) (peer, error) {
	dir, ok := g.pathRepository(name)
	if !ok {
		g.tell("fatal: '%s' does not appear to be a git repository\n"+
			"fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n", place)
		return nil, tool.Exit(statusFatal)
	}
	other := &call{Call: g.Call, ctx: g.ctx, verb: g.verb}
	if err := other.use("", dir, dir); err != nil {
		return nil, err
	}
	if path.Base(dir) == ".git" && !other.enabled("core.bare", false) {
		other.root = path.Dir(dir)
	}
	return &treePeer{g, other}, nil
}

// treePeer is another repository of the workspace.
type treePeer struct {
	*call
	other *call
}

func (t *treePeer) close() error {
	t.other.closePacks()
	return nil
}

func (t *treePeer) refs() ([]*plumbing.Reference, error) {
	list, err := t.other.references("refs/")
	if err != nil {
		return nil, err
	}
	head, err := t.other.store.Reference(plumbing.HEAD)
	if err == nil {
		if _, ok := t.other.follow(plumbing.HEAD); ok {
			list = append(list, head)
		}
	}
	sortReferences(list)
	return list, nil
}

func (t *treePeer) peeled(ref *plumbing.Reference) plumbing.Hash {
	if h, ok := t.other.peelTo(ref.Hash(), ""); ok {
		return h
	}
	return ref.Hash()
}

func (t *treePeer) fetch(wants, haves []plumbing.Hash, _ int) ([]plumbing.Hash, error) {
	return nil, t.carry(t.other, t.call, wants, haves)
}

// carry brings objects from one repository into another.
func (t *treePeer) carry(from, to *call, wants, haves []plumbing.Hash) error {
	list, err := from.reachable(wants, haves)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(h plumbing.Hash) bool { return to.has(h) })
	if len(list) == 0 {
		return nil
	}
	return to.storePackBy(func(w io.Writer) error { return from.writePack(w, list) })
}

func (t *treePeer) push(updates []update, _ []plumbing.Hash) (map[string]string, error) {
	var wants, haves []plumbing.Hash
	for _, u := range updates {
		if !u.new.IsZero() {
			wants = append(wants, u.new)
		}
	}
	theirs, err := t.refs()
	if err != nil {
		return nil, err
	}
	for _, ref := range theirs {
		if ref.Type() == plumbing.HashReference {
			haves = append(haves, ref.Hash())
		}
	}
	if len(wants) > 0 {
		if err := t.carry(t.call, t.other, wants, haves); err != nil {
			return nil, err
		}
	}
	refused := map[string]string{}
	for _, u := range updates {
		if why := t.mayNot(u); why != "" {
			refused[u.name.String()] = why
			continue
		}
		if u.new.IsZero() {
			err = t.other.removeRef(u.name.String())
		} else {
			err = t.other.moveRef(u.name.String(), u.old, u.new, "push")
		}
		var exit tool.Exit
		if errors.As(err, &exit) {
			refused[u.name.String()], err = "failed to update ref", nil
		}
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// mayNot says why a repository with a work tree does not take an update: that is of the branch it is on, and its work tree
// would be another's.
func (t *treePeer) mayNot(u update) string {
	branch, _, err := t.other.head()
	if err != nil || t.other.root == "" || u.name.String() != heads+branch {
		return ""
	}
	switch strings.ToLower(t.other.setting("receive.denycurrentbranch")) {
	case "ignore", "warn", "false", "no", "off":
		return ""
	}
	if u.new.IsZero() {
		return "deletion of the current branch prohibited"
	}
	return "branch is currently checked out"
}
