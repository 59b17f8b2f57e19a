package git

import (
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// show is git show.
func (g *call) show(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	l, err := g.listingOf(f, "p")
	if err != nil {
		return err
	}
	l.merges, l.combined = !slices.Contains(l.kinds, "p"), slices.Equal(l.kinds, []string{"p"})
	names := f.args
	if len(names) == 0 {
		names = []string{"HEAD"}
	}
	if l.within, err = g.scopes(f.paths); err != nil {
		return err
	}
	for i, name := range names {
		h, ok := g.resolve(name)
		if !ok {
			return g.notShown(name)
		}
		if err := g.showObject(name, h, l, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func (g *call) notShown(name string) error {
	if rev, file, ok := strings.Cut(name, ":"); ok {
		if _, found := g.resolve(rev); found {
			return g.fatal("path '%s' does not exist in '%s'", file, rev)
		}
		return g.fatal("invalid object name '%s'.", rev)
	}
	return g.badRevision(name)
}

// showObject prints an object of any kind.
func (g *call) showObject(name string, h plumbing.Hash, l *listing, follows bool) error {
	o, err := g.object(plumbing.AnyObject, h)
	if err != nil {
		return g.fatal("bad object %s", name)
	}
	switch o.Type() {
	case plumbing.CommitObject:
		c, err := object.DecodeCommit(g.store, o)
		if err != nil {
			return err
		}
		return g.logEntry(c, l, follows)
	case plumbing.TagObject:
		t, err := object.DecodeTag(g.store, o)
		if err != nil {
			return err
		}
		_ = g.print("tag %s\nTagger: %s <%s>\nDate:   %s\n\n%s\n", t.Name, t.Tagger.Name, t.Tagger.Email, g.dated(t.Tagger.When, l.date), t.Message)
		return g.showObject(name, t.Target, l, false)
	case plumbing.TreeObject:
		t, err := object.DecodeTree(g.store, o)
		if err != nil {
			return err
		}
		_ = g.print("tree %s\n\n", name)
		for _, e := range t.Entries {
			mark := ""
			if e.Mode == filemode.Dir {
				mark = "/"
			}
			_ = g.print("%s%s\n", quotePath(e.Name), mark)
		}
		return nil
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(g.Out, r)
	return err
}
