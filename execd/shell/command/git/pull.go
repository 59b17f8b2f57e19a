package git

import (
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pullOptions = []string{"ff", "ff-only", "no-ff", "no-rebase", "q=quiet", "n=no-stat", "stat", "no-edit", "t=tags", "p=prune", "v=verbose", "depth:",
	"m:=message", "commit", "no-commit", "progress", "no-progress", "f=force"}

// pull is git pull, by merging.
func (g *call) pull(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	branch, head, err := g.head()
	if err != nil {
		return err
	}
	if rebase := g.setting("branch." + branch + ".rebase"); !f.has("no-rebase") && (rebase != "" && yes(rebase) || rebase == "" && g.enabled("pull.rebase", false)) {
		return g.fatal("the configuration says to rebase, which is not supported here; --no-rebase merges")
	}
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	if len(unmerged(x)) > 0 {
		return g.notMerged("Pulling")
	}
	if going, err := g.mergeHeads(); err != nil {
		return err
	} else if len(going) > 0 {
		return g.fatal("You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge.")
	}
	name, specs := "", []string(nil)
	if len(f.args) > 0 {
		name, specs = f.args[0], f.args[1:]
	}
	// A pull's -n is about the merge, and a fetch's about tags.
	fetch := *f
	fetch.given = map[string][]string{}
	for _, option := range []string{"t", "p", "q", "v", "depth", "f"} {
		if v, ok := f.given[option]; ok {
			fetch.given[option] = v
		}
	}
	list, err := g.fetchFrom(name, specs, &fetch)
	if err != nil {
		return err
	}
	switch {
	case len(list) == 0:
		return g.nothingToPull(branch, name)
	case len(list) > 1:
		return g.fatal("more than one branch to merge at once is not supported here")
	}
	c, ok := g.peel(list[0].hash)
	if !ok {
		return g.fatal("%s is no commit", list[0].hash)
	}
	if !head.IsZero() {
		if err := g.mayJoin(f, c.Hash.String()); err != nil {
			return err
		}
	}
	place, _ := g.remoteURL(name, false)
	if name == "" {
		place, _ = g.remoteURL(g.remoteOf(branch), false)
	}
	what := (&fetching{call: g, place: told(place)}).describe(list[0])
	j := join{name: c.Hash.String(), message: g.into("Merge " + what), why: strings.TrimRight("pull "+strings.Join(f.args, " "), " ")}
	return g.mergeCommit(c, j, f)
}

// nothingToPull says why a pull has nothing to merge.
func (g *call) nothingToPull(branch, name string) error {
	switch {
	case branch == "":
		g.tell("You are not currently on a branch.\nPlease specify which branch you want to merge with.\n")
	case name != "" && g.setting("branch."+branch+".remote") != name:
		g.tell("You asked to pull from the remote '%s', but did not specify\na branch. Because this is not the default configured remote\n"+
			"for your current branch, you must specify a branch on the command line.\n", name)
	case g.setting("branch."+branch+".merge") != "":
		g.tell("Your configuration specifies to merge with the ref '%s'\nfrom the remote, but no such ref was fetched.\n", g.setting("branch."+branch+".merge"))
	default:
		g.tell("There is no tracking information for the current branch.\nPlease specify which branch you want to merge with.\n")
	}
	return tool.Exit(1)
}

// mayJoin refuses to choose how diverging branches are to be brought together, as git does.
func (g *call) mayJoin(f *flags, commit string) error {
	_, head, err := g.head()
	if err != nil {
		return err
	}
	c, err := g.commitOf(commit)
	if err != nil {
		return err
	}
	p, err := g.paint(head, c.Hash)
	if err != nil {
		return err
	}
	if p.onlyA == 0 || p.onlyB == 0 {
		return nil
	}
	switch ff := g.setting("pull.ff"); {
	case f.has("ff") || f.has("no-ff"):
		return nil
	case f.has("ff-only") || ff == "only" && !f.has("no-rebase"):
		return g.fatal("Not possible to fast-forward, aborting.")
	case f.has("no-rebase"), ff != "", g.setting("pull.rebase") != "":
		return nil
	}
	g.tell("hint: You have divergent branches and need to specify how to reconcile them:\nhint:\n" +
		"hint:   git pull --no-rebase   merges them\nhint:   git pull --ff-only     only goes forward\nhint:\n" +
		"hint: 'git config pull.rebase false' makes the first the rule.\n")
	return g.fatal("Need to specify how to reconcile divergent branches.")
}
