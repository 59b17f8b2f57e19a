package git

import (
	"path"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
)

// upstream is what a branch follows.
type upstream struct {
	remote string // "." for this repository
	merge  string // the reference there
	ref    string // the one by which it is known here; "" when nothing is fetched of it
}

// short is how people are told of it.
func (u upstream) short() string {
	return strings.TrimPrefix(strings.TrimPrefix(u.ref, remoteHeads), heads)
}

// upstream returns what a branch follows.
func (g *call) upstream(branch string) (upstream, bool) {
	u := upstream{remote: g.setting("branch." + branch + ".remote"), merge: g.setting("branch." + branch + ".merge")}
	if branch == "" || u.remote == "" || u.merge == "" {
		return u, false
	}
	if u.remote == "." {
		u.ref = u.merge
		return u, true
	}
	for _, spec := range g.fetchSpecs(u.remote) {
		if spec.Match(plumbing.ReferenceName(u.merge)) {
			u.ref = spec.Dst(plumbing.ReferenceName(u.merge)).String()
		}
	}
	return u, true
}

// fetchSpecs are what a fetch from a remote brings where.
func (g *call) fetchSpecs(remote string) []config.RefSpec {
	var list []config.RefSpec
	for _, text := range g.settings(normalName("remote." + remote + ".fetch")) {
		if spec := config.RefSpec(text); spec.Validate() == nil {
			list = append(list, spec)
		}
	}
	return list
}

// follows makes a branch follow a reference of a remote.
func (g *call) follows(branch, remote, merge string) error {
	return g.setConfig("branch."+branch+".remote", remote, "branch."+branch+".merge", merge)
}

// setUpstream is git branch -u.
func (g *call) setUpstream(branch, to string) error {
	if !g.hasRef(heads + branch) {
		return g.fatal("branch '%s' does not exist", branch)
	}
	full, ok := g.refName(to)
	if !ok {
		return g.fatal("the requested upstream branch '%s' does not exist", to)
	}
	remote, merge, ok := g.source(full)
	if !ok {
		return g.fatal("cannot set up tracking information; starting point '%s' is not a branch", to)
	}
	if err := g.follows(branch, remote, merge); err != nil {
		return err
	}
	return g.print("branch '%s' set up to track '%s'.\n", branch, upstream{ref: full}.short())
}

// source finds the remote, and the reference there, that a reference here is of.
func (g *call) source(full string) (remote, merge string, ok bool) {
	if strings.HasPrefix(full, heads) {
		return ".", full, true
	}
	for _, remote := range g.remoteNames() {
		for _, spec := range g.fetchSpecs(remote) {
			back := config.RefSpec(strings.TrimPrefix(spec.String(), "+")).Reverse()
			if back.Match(plumbing.ReferenceName(full)) {
				return remote, back.Dst(plumbing.ReferenceName(full)).String(), true
			}
		}
	}
	return "", "", false
}

func (g *call) unsetUpstream(branch string) error {
	if _, ok := g.upstream(branch); !ok {
		return g.fatal("branch '%s' has no upstream information", branch)
	}
	return g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		for _, key := range []string{"remote", "merge"} {
			c.unset(c.find("branch", branch, key))
		}
		return nil
	})
}

// trackStart makes a new branch follow what it was started from, when that is a remote's or when it was asked for.
func (g *call) trackStart(branch, start string, f *flags) error {
	full, ok := g.refName(start)
	switch {
	case f.has("no-track"), !ok, full == "HEAD" && !f.has("t"):
		return nil
	case !strings.HasPrefix(full, remoteHeads) && !f.has("t"):
		return nil
	case !strings.HasPrefix(full, remoteHeads) && !strings.HasPrefix(full, heads):
		return nil
	}
	remote, merge, ok := g.source(full)
	if !ok {
		return nil
	}
	if err := g.follows(branch, remote, merge); err != nil || f.has("q") {
		return err
	}
	return g.print("branch '%s' set up to track '%s'.\n", branch, upstream{ref: full}.short())
}

// forgetBranch takes a branch out of the configuration.
func (g *call) forgetBranch(branch string) error {
	if len(g.settings(normalName("branch."+branch+".remote")))+len(g.settings(normalName("branch."+branch+".merge"))) == 0 {
		return nil
	}
	return g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		c.removeSection("branch", branch)
		return nil
	})
}

func (g *call) renameBranchConfig(from, to string) error {
	if _, ok := g.upstream(from); !ok {
		return nil
	}
	return g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		c.removeSection("branch", to)
		c.renameSection("branch", from, to)
		return nil
	})
}

// distance is how many commits a branch has that its upstream has not, and the other way round. gone says that there is
// no such upstream any more.
func (g *call) distance(u upstream, commit plumbing.Hash) (ahead, behind int, gone bool, err error) {
	there, ok := g.follow(plumbing.ReferenceName(u.ref))
	if u.ref == "" || !ok {
		return 0, 0, true, nil
	}
	p, err := g.paint(commit, there)
	if err != nil {
		return 0, 0, false, err
	}
	return p.onlyA, p.onlyB, false, nil
}

// tracking says in words how a branch stands to its upstream; it is empty when it has none.
func (g *call) tracking(branch string, commit plumbing.Hash) (string, error) {
	u, ok := g.upstream(branch)
	if !ok || commit.IsZero() {
		return "", nil
	}
	ahead, behind, gone, err := g.distance(u, commit)
	name := u.short()
	switch {
	case err != nil:
		return "", err
	case gone && u.ref == "":
		return "", nil
	case gone:
		return "Your branch is based on '" + name + "', but the upstream is gone.\n  (use \"git branch --unset-upstream\" to fixup)\n", nil
	case ahead == 0 && behind == 0:
		return "Your branch is up to date with '" + name + "'.\n", nil
	case behind == 0:
		return "Your branch is ahead of '" + name + "' by " + counted(ahead, "commit", "commits") +
			".\n  (use \"git push\" to publish your local commits)\n", nil
	case ahead == 0:
		return "Your branch is behind '" + name + "' by " + counted(behind, "commit", "commits") +
			", and can be fast-forwarded.\n  (use \"git pull\" to update your local branch)\n", nil
	}
	return "Your branch and '" + name + "' have diverged,\nand have " + strconv.Itoa(ahead) + " and " + strconv.Itoa(behind) +
		" different commits each, respectively.\n  (use \"git pull\" to merge the remote branch into yours)\n", nil
}

// sayTracking is what a switch says at its end.
func (g *call) sayTracking(branch string, f *flags) error {
	if f.has("q") {
		return nil
	}
	_, head, err := g.head()
	if err != nil {
		return err
	}
	text, err := g.tracking(branch, head)
	if err != nil {
		return err
	}
	return g.print("%s", text)
}

// trackingBrief is what the line of a branch in the short status adds to its name.
func (g *call) trackingBrief(branch string, commit plumbing.Hash) (string, error) {
	u, ok := g.upstream(branch)
	if !ok || u.ref == "" {
		return "", nil
	}
	ahead, behind, gone, err := g.distance(u, commit)
	text := "..." + u.short()
	switch {
	case err != nil:
		return "", err
	case gone:
		return text + " [gone]", nil
	case ahead > 0 && behind > 0:
		return text + " [ahead " + strconv.Itoa(ahead) + ", behind " + strconv.Itoa(behind) + "]", nil
	case ahead > 0:
		return text + " [ahead " + strconv.Itoa(ahead) + "]", nil
	case behind > 0:
		return text + " [behind " + strconv.Itoa(behind) + "]", nil
	}
	return text, nil
}

// trackingNote is what the list of branches says between a branch's commit and its subject.
func (g *call) trackingNote(branch string, commit plumbing.Hash, named bool) string {
	u, ok := g.upstream(branch)
	if !ok || u.ref == "" {
		return ""
	}
	ahead, behind, gone, err := g.distance(u, commit)
	if err != nil {
		return ""
	}
	var parts []string
	switch {
	case gone:
		parts = append(parts, "gone")
	case ahead > 0 && behind > 0:
		parts = append(parts, "ahead "+strconv.Itoa(ahead)+", behind "+strconv.Itoa(behind))
	case ahead > 0:
		parts = append(parts, "ahead "+strconv.Itoa(ahead))
	case behind > 0:
		parts = append(parts, "behind "+strconv.Itoa(behind))
	}
	if named {
		parts = append([]string{u.short()}, parts...)
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, ": ") + "] "
}
