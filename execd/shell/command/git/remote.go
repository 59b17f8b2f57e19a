package git

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var remoteOptions = []string{"v=verbose", "push", "all"}

// remoteNames are the remotes of the configuration, in order.
func (g *call) remoteNames() []string {
	var names []string
	if !g.config.HasSection("remote") {
		return nil
	}
	for _, s := range g.config.Section("remote").Subsections {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// remoteURL is where a remote is; anything else is taken for a place itself.
func (g *call) remoteURL(name string, pushing bool) (place string, isRemote bool) {
	if pushing {
		if urls := g.settings(normalName("remote." + name + ".pushurl")); len(urls) > 0 {
			return urls[0], true
		}
	}
	urls := g.settings(normalName("remote." + name + ".url"))
	if len(urls) == 0 {
		return name, false
	}
	return g.rewritten(urls[0]), true
}

// rewritten follows url.<base>.insteadOf, the longest that fits.
func (g *call) rewritten(place string) string {
	if !g.config.HasSection("url") {
		return place
	}
	best, base := "", ""
	for _, s := range g.config.Section("url").Subsections {
		for _, from := range s.OptionAll("insteadof") {
			if strings.HasPrefix(place, from) && len(from) > len(best) {
				best, base = from, s.Name
			}
		}
	}
	return base + strings.TrimPrefix(place, best)
}

// remote is git remote.
func (g *call) remote(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	if len(f.args) == 0 || f.args[0] == "show" && len(f.args) == 1 {
		return g.listRemotes(f)
	}
	verb, names := f.args[0], f.args[1:]
	needs := map[string]int{"add": 2, "remove": 1, "rm": 1, "rename": 2, "get-url": 1, "set-url": 2}
	n, ok := needs[verb]
	if !ok {
		g.tell("error: Unknown subcommand: %s\n", verb)
		return tool.Exit(129)
	}
	if len(names) != n {
		g.tell("usage: git remote add <name> <url>\n   or: git remote remove <name>\n   or: git remote rename <old> <new>\n" +
			"   or: git remote get-url <name>\n   or: git remote set-url <name> <newurl>\n")
		return tool.Exit(129)
	}
	known := slices.Contains(g.remoteNames(), names[0])
	switch {
	case verb == "add" && known:
		g.tell("error: remote %s already exists.\n", names[0])
		return tool.Exit(3)
	case verb == "add":
		return g.addRemote(names[0], names[1])
	case !known:
		g.tell("error: No such remote%s '%s'\n", map[bool]string{true: ":"}[verb == "remove" || verb == "rm" || verb == "rename"], names[0])
		return tool.Exit(2)
	}
	switch verb {
	case "get-url":
		place, _ := g.remoteURL(names[0], f.has("push"))
		return g.print("%s\n", place)
	case "set-url":
		key := "url"
		if f.has("push") {
			key = "pushurl"
		}
		return g.setConfig("remote."+names[0]+"."+key, names[1])
	case "rename":
		return g.renameRemote(names[0], names[1])
	}
	return g.removeRemote(names[0])
}

func (g *call) listRemotes(f *flags) error {
	for _, name := range g.remoteNames() {
		if !f.has("v") {
			_ = g.print("%s\n", name)
			continue
		}
		from, _ := g.remoteURL(name, false)
		to, _ := g.remoteURL(name, true)
		_ = g.print("%s\t%s (fetch)\n%s\t%s (push)\n", name, from, name, to)
	}
	return nil
}

// checkRemote refuses a name that no remote may have: it is part of the names of references.
func (g *call) checkRemote(name string) error {
	if plumbing.ReferenceName(remoteHeads+name+"/x").Validate() != nil || strings.HasPrefix(name, "-") {
		return g.fatal("'%s' is not a valid remote name", name)
	}
	return nil
}

func (g *call) addRemote(name, place string) error {
	if err := g.checkRemote(name); err != nil {
		return err
	}
	return g.setConfig("remote."+name+".url", place, "remote."+name+".fetch", fetchAll(name))
}

// fetchAll is what a fetch from a new remote brings where.
func fetchAll(remote string) string {
	return fmt.Sprintf("+refs/heads/*:refs/remotes/%s/*", remote)
}

// following are the branches that follow a remote.
func (g *call) following(remote string) []string {
	var names []string
	if !g.config.HasSection("branch") {
		return nil
	}
	for _, s := range g.config.Section("branch").Subsections {
		if g.setting("branch."+s.Name+".remote") == remote {
			names = append(names, s.Name)
		}
	}
	return names
}

func (g *call) removeRemote(name string) error {
	branches := g.following(name)
	err := g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		c.removeSection("remote", name)
		for _, b := range branches {
			for _, key := range []string{"remote", "merge"} {
				c.unset(c.find("branch", b, key))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.eachRemoteRef(name, func(ref *plumbing.Reference) error { return g.removeRef(ref.Name().String()) })
}

// eachRemoteRef calls f with every reference by which a remote is known here.
func (g *call) eachRemoteRef(remote string, f func(*plumbing.Reference) error) error {
	list, err := g.allReferences(remoteHeads + remote + "/")
	for _, ref := range list {
		if err == nil {
			err = f(ref)
		}
	}
	return err
}

func (g *call) renameRemote(from, to string) error {
	if err := g.checkRemote(to); err != nil {
		return err
	}
	if slices.Contains(g.remoteNames(), to) {
		return g.fatal("remote %s already exists.", to)
	}
	branches := g.following(from)
	err := g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		c.renameSection("remote", from, to)
		for _, i := range c.find("remote", to, "fetch") {
			c.items[i].text = strings.Replace(c.items[i].text, ":"+remoteHeads+from+"/", ":"+remoteHeads+to+"/", 1)
		}
		for _, b := range branches {
			c.set("branch", b, "branch."+b+".remote", to, false)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.eachRemoteRef(from, func(ref *plumbing.Reference) error {
		name := plumbing.ReferenceName(remoteHeads + to + "/" + strings.TrimPrefix(ref.Name().String(), remoteHeads+from+"/"))
		moved := plumbing.NewHashReference(name, ref.Hash())
		if ref.Type() == plumbing.SymbolicReference {
			target := strings.Replace(ref.Target().String(), remoteHeads+from+"/", remoteHeads+to+"/", 1)
			moved = plumbing.NewSymbolicReference(name, plumbing.ReferenceName(target))
		}
		if err := g.putReference(moved, nil); err != nil {
			return err
		}
		return g.removeRef(ref.Name().String())
	})
}

var listRemoteOptions = []string{"h=heads", "t=tags", "refs", "q=quiet", "symref", "exit-code", "get-url"}

// listRemote is git ls-remote.
func (g *call) listRemote(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	name := ""
	if len(f.args) > 0 {
		name = f.args[0]
	}
	if here, e := g.FS.RealPath(g.ctx, "."); e == nil && g.around(here) {
		if err := g.open(); err != nil {
			return err
		}
	} else if name == "" {
		return g.fatal("No remote configured to list refs from.")
	} else if err := g.outside(); err != nil {
		return err
	}
	if name == "" {
		branch, _, _ := g.head()
		if name = g.remoteOf(branch); name == "" {
			return g.fatal("No remote configured to list refs from.")
		}
	}
	place, _ := g.remoteURL(name, false)
	if f.has("get-url") {
		return g.print("%s\n", place)
	}
	if len(f.args) == 0 && !f.has("q") {
		g.tell("From %s\n", public(place))
	}
	p, err := g.dial(place, false)
	if err != nil {
		return err
	}
	defer p.close()
	refs, err := p.refs()
	if err != nil {
		return err
	}
	shown := 0
	for _, ref := range refs {
		if !g.listed(ref, f) {
			continue
		}
		shown++
		h := ref.Hash()
		if ref.Type() == plumbing.SymbolicReference {
			if f.has("symref") {
				_ = g.print("ref: %s\t%s\n", ref.Target(), ref.Name())
			}
			h = hashOf(refs, ref.Target())
		}
		_ = g.print("%s\t%s\n", h, ref.Name())
		if to := p.peeled(ref); ref.Name().IsTag() && to != h && !f.has("refs") {
			_ = g.print("%s\t%s^{}\n", to, ref.Name())
		}
	}
	if shown == 0 && f.has("exit-code") {
		return tool.Exit(2)
	}
	return nil
}

// outside takes the user's configuration alone, where there is no repository.
func (g *call) outside() error {
	c, err := g.fileConfig(g.userConfig())
	g.repo = &repo{config: c}
	return err
}

// around says whether there is a repository around a directory.
func (g *call) around(dir string) bool {
	if v, _ := g.Getenv("GIT_DIR"); v != "" {
		return true
	}
	for ; ; dir = path.Dir(dir) {
		if inside, err := g.repositoryOf(dir); err != nil || inside != "" || g.isRepository(dir) {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}

// listed says whether ls-remote shows a reference.
func (g *call) listed(ref *plumbing.Reference, f *flags) bool {
	name := ref.Name().String()
	if f.has("h") || f.has("t") {
		if !(f.has("h") && strings.HasPrefix(name, heads)) && !(f.has("t") && strings.HasPrefix(name, tags)) {
			return false
		}
	}
	if f.has("refs") && !strings.HasPrefix(name, "refs/") {
		return false
	}
	if len(f.args) < 2 {
		return true
	}
	return slices.ContainsFunc(f.args[1:], func(p string) bool { return matchGlob("*/"+p, "/"+name) })
}

// hashOf finds what a name leads to in a list of references.
func hashOf(refs []*plumbing.Reference, name plumbing.ReferenceName) plumbing.Hash {
	for _, ref := range refs {
		if ref.Name() == name && ref.Type() == plumbing.HashReference {
			return ref.Hash()
		}
	}
	return plumbing.ZeroHash
}

// remoteOf is the remote of a branch, or the one that there is.
func (g *call) remoteOf(branch string) string {
	if name := g.setting("branch." + branch + ".remote"); name != "" {
		return name
	}
	names := g.remoteNames()
	if len(names) == 1 {
		return names[0]
	}
	if slices.Contains(names, "origin") {
		return "origin"
	}
	return ""
}
