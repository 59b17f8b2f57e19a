package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var cloneOptions = []string{"b:=branch", "bare", "n=no-checkout", "o:=origin", "q=quiet", "depth:", "single-branch", "no-single-branch", "no-tags",
	"l=local", "no-local", "no-hardlinks", "progress", "v=verbose"}

// cloning is one run of git clone.
type cloning struct {
	*call
	f      *flags
	origin string
	place  string // of the peer, absolute
	peer   peer
	refs   []*plumbing.Reference
	branch string        // that HEAD is to be on; "" for none
	head   plumbing.Hash // zero for an empty repository
}

// clone is git clone.
func (g *call) clone(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if len(f.args) == 0 || len(f.args) > 2 {
		g.tell("fatal: You must specify a repository to clone.\n\nusage: git clone [<options>] [--] <repo> [<dir>]\n")
		return tool.Exit(129)
	}
	place := f.args[0]
	dir := cloneDir(place, f.has("bare"))
	if len(f.args) == 2 {
		dir = f.args[1]
	}
	if dir == "" || dir == "/" {
		return g.fatal("No directory name could be guessed.\nPlease specify a directory on the command line")
	}
	if err := g.outside(); err != nil {
		return err
	}
	c := &cloning{call: g, f: f, origin: "origin", place: g.rewritten(place)}
	if f.has("o") {
		c.origin = f.value("o")
	}
	if err := g.checkRemote(c.origin); err != nil {
		return err
	}
	if _, ok := g.pathRepository(c.place); !ok && !strings.Contains(c.place, "://") && !scpLike(c.place) {
		return g.fatal("repository '%s' does not exist", place)
	}
	full, made, err := c.room(dir)
	if err != nil {
		return err
	}
	if !f.has("q") {
		kind := ""
		if f.has("bare") {
			kind = "bare repository "
		}
		g.tell("Cloning into %s'%s'...\n", kind, strings.TrimSuffix(dir, "/"))
	}
	if err := c.run(full); err != nil {
		c.undo(full, made)
		return err
	}
	return nil
}

// cloneDir is the directory that a clone is made in when nobody says.
func cloneDir(place string, bare bool) string {
	place = strings.TrimSuffix(strings.TrimRight(place, "/"), "/.git")
	place = strings.TrimRight(place, "/")
	if i := strings.LastIndexAny(place, "/:"); i >= 0 {
		place = place[i+1:]
	}
	place = strings.TrimSuffix(place, ".git")
	if bare && place != "" {
		place += ".git"
	}
	return place
}

// room makes the directory of a clone, and says whether it did.
func (c *cloning) room(dir string) (full string, made bool, err error) {
	full = path.Clean(c.FS.Abs(dir))
	entries, err := c.FS.ReadDir(c.ctx, full)
	switch {
	case errors.Is(err, vfs.ErrNotDir), err == nil && len(entries) > 0:
		return "", false, c.fatal("destination path '%s' already exists and is not an empty directory.", dir)
	case notThere(err):
		made = true
		err = c.FS.MkdirAll(c.ctx, full, 0o777)
	}
	if err == nil {
		full, err = c.FS.RealPath(c.ctx, full)
	}
	return full, made, err
}

// undo takes away what a clone that failed has made.
func (c *cloning) undo(full string, made bool) {
	ctx := context.WithoutCancel(c.ctx)
	c.index.release()
	c.index = nil
	if made {
		_ = c.FS.RemoveAll(ctx, full) // the failure was said
		return
	}
	entries, err := c.FS.ReadDir(ctx, full)
	for _, e := range entries {
		if err == nil {
			err = c.FS.RemoveAll(ctx, path.Join(full, e.Name))
		}
	}
}

func (c *cloning) run(full string) error {
	p, err := c.dial(c.place, false)
	if err != nil {
		return err
	}
	defer p.close()
	c.peer = p
	tree, local := p.(*treePeer)
	if local { // a path means nothing from another directory
		if c.place = tree.other.dir; tree.other.root != "" {
			c.place = path.Join(tree.other.root, ".git")
			if !strings.HasSuffix(strings.TrimRight(c.f.args[0], "/"), ".git") {
				c.place = tree.other.root
			}
		}
	}
	if c.refs, err = p.refs(); err != nil {
		return err
	}
	if err := c.chooseHead(); err != nil {
		return err
	}
	if c.head.IsZero() && local {
		c.branch, _, _ = tree.other.head() // on which there is no commit yet
	}
	root, dir := full, path.Join(full, ".git")
	if c.f.has("bare") {
		root, dir = "", full
	}
	if err := c.make(dir, c.branch, root == ""); err != nil {
		return err
	}
	if err := c.use(root, dir, full); err != nil {
		return err
	}
	if err := c.configureClone(); err != nil {
		return err
	}
	if err := c.bring(tree, local); err != nil {
		return err
	}
	if err := c.point(); err != nil {
		return err
	}
	if c.head.IsZero() {
		c.tell("warning: You appear to have cloned an empty repository.\n")
	}
	if local && !c.f.has("q") {
		c.tell("done.\n")
	}
	if c.head.IsZero() {
		return nil
	}
	if root == "" || c.f.has("n") {
		return nil
	}
	return c.goTo(plumbing.ZeroHash, c.head, true, "")
}

// chooseHead decides what HEAD is to be on.
func (c *cloning) chooseHead() error {
	if name := c.f.value("b"); name != "" {
		for _, prefix := range []string{heads, tags} {
			for _, ref := range c.refs {
				if ref.Name().String() != prefix+name || ref.Type() != plumbing.HashReference {
					continue
				}
				if c.head = c.peer.peeled(ref); prefix == heads {
					c.branch = name
				}
				return nil
			}
		}
		return c.fatal("Remote branch %s not found in upstream %s", name, c.origin)
	}
	for _, ref := range c.refs {
		switch {
		case ref.Name() != plumbing.HEAD:
		case ref.Type() == plumbing.SymbolicReference && ref.Target().IsBranch():
			c.branch, c.head = ref.Target().Short(), hashOf(c.refs, ref.Target())
		case ref.Type() == plumbing.HashReference:
			c.head = ref.Hash()
		}
	}
	return nil
}

// single says whether one branch alone is cloned.
func (c *cloning) single() bool {
	return c.f.has("single-branch") || c.f.has("depth") && !c.f.has("no-single-branch")
}

func (c *cloning) configureClone() error {
	fetch := fetchAll(c.origin)
	if c.single() && c.branch != "" {
		fetch = fmt.Sprintf("+refs/heads/%s:refs/remotes/%s/%s", c.branch, c.origin, c.branch)
	}
	pairs := []string{"remote." + c.origin + ".url", c.place}
	if !c.f.has("bare") {
		pairs = append(pairs, "remote."+c.origin+".fetch", fetch)
	}
	if c.f.has("no-tags") {
		pairs = append(pairs, "remote."+c.origin+".tagopt", "--no-tags")
	}
	return c.setConfig(pairs...)
}

// bring gets the objects, and writes the references.
func (c *cloning) bring(tree *treePeer, local bool) error {
	var wants []plumbing.Hash
	var brought []*plumbing.Reference
	for _, ref := range c.refs {
		name := ref.Name().String()
		if ref.Type() != plumbing.HashReference || !strings.HasPrefix(name, heads) || c.single() && name != heads+c.branch {
			continue
		}
		wants = append(wants, ref.Hash())
		if !c.f.has("bare") {
			name = remoteHeads + c.origin + "/" + strings.TrimPrefix(name, heads)
		}
		brought = append(brought, plumbing.NewHashReference(plumbing.ReferenceName(name), ref.Hash()))
	}
	if !c.head.IsZero() && !slices.Contains(wants, c.head) {
		wants = append(wants, c.head)
	}
	if err := c.objects(wants, tree, local); err != nil {
		return err
	}
	for _, ref := range c.refs {
		if ref.Name().IsTag() && ref.Type() == plumbing.HashReference && !c.f.has("no-tags") &&
			c.has(ref.Hash()) && c.has(c.peer.peeled(ref)) {
			brought = append(brought, ref)
		}
	}
	sortReferences(brought)
	var text strings.Builder
	text.WriteString("# pack-refs with: sorted \n")
	for _, ref := range brought {
		if ref.Name().Validate() != nil {
			return c.fatal("invalid reference name '%s'", printable(ref.Name().String()))
		}
		fmt.Fprintf(&text, "%s %s\n", ref.Hash(), ref.Name())
	}
	if len(brought) == 0 {
		return nil
	}
	return c.writeNote("packed-refs", text.String())
}

// objects gets the objects: by files from a repository of the workspace, so that they stay packed as well as they are.
func (c *cloning) objects(wants []plumbing.Hash, tree *treePeer, local bool) error {
	if len(wants) == 0 {
		return nil
	}
	depth := 0
	if text := c.f.value("depth"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 {
			return c.fatal("depth %s is not a positive number", text)
		}
	}
	if local {
		if depth > 0 {
			c.tell("warning: --depth is ignored in local clones; use file:// instead.\n")
		}
		if whole, err := c.copyObjects(tree.other.dir); whole || err != nil {
			return err
		}
	}
	if local { // tags that are on no branch are left
		for _, ref := range c.refs {
			if ref.Name().IsTag() && !c.f.has("no-tags") {
				wants = append(wants, ref.Hash())
			}
		}
	}
	shallow, err := c.peer.fetch(wants, nil, depth)
	if err != nil {
		return err
	}
	for _, h := range wants {
		if !c.has(h) {
			return c.fatal("%s did not send all necessary objects", told(c.place))
		}
	}
	return c.addShallow(shallow)
}

// copyObjects copies the files of another repository's objects, unless it has some of them elsewhere.
func (c *cloning) copyObjects(from string) (whole bool, err error) {
	if _, err := c.FS.Lstat(c.ctx, path.Join(from, "shallow")); !notThere(err) {
		return false, err
	}
	source := path.Join(from, "objects")
	err = c.FS.Walk(c.ctx, source, func(name string, a vfs.Attr, err error) error {
		if err != nil || a.Type == vfs.TypeDir {
			return err
		}
		below := strings.TrimPrefix(name, source+"/")
		dir, base := path.Split(below)
		object := len(dir) == 3 && plumbing.IsHash(dir[:2]+base)
		pack := dir == "pack/" && strings.HasPrefix(base, "pack-") && (strings.HasSuffix(base, ".pack") || strings.HasSuffix(base, ".idx"))
		if a.Type != vfs.TypeRegular || !object && !pack {
			return nil
		}
		in, err := c.Open(c.ctx, name)
		if err != nil {
			return err
		}
		defer in.Close()
		to := path.Join(c.dir, "objects", below)
		if err := c.FS.MkdirAll(c.ctx, path.Dir(to), 0o777); err != nil {
			return err
		}
		_, err = c.FS.ReplaceFile(c.ctx, to, in, 0o444)
		return err
	})
	c.closePacks()
	return true, err
}

// point makes HEAD, and the remote's, lead where they are to.
func (c *cloning) point() error {
	why := "clone: from " + public(c.place)
	switch {
	case c.head.IsZero() && (c.branch == "" || c.f.has("bare")):
		return nil
	case c.head.IsZero():
		return c.follows(c.branch, c.origin, heads+c.branch)
	case c.branch == "":
		return c.switchHead("", c.head, why)
	}
	if c.f.has("bare") {
		return nil // make has put HEAD on the branch
	}
	if err := c.setRef(heads+c.branch, c.head, why); err != nil {
		return err
	}
	if err := c.follows(c.branch, c.origin, heads+c.branch); err != nil {
		return err
	}
	if c.f.has("b") {
		return nil
	}
	return c.putReference(plumbing.NewSymbolicReference(plumbing.ReferenceName(remoteHeads+c.origin+"/HEAD"),
		plumbing.ReferenceName(remoteHeads+c.origin+"/"+c.branch)), nil)
}
