package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

var tagOptions = []string{"a=annotate", "m:=message", "d=delete", "f=force", "l=list"}

// tag is git tag.
func (g *call) tag(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	switch {
	case f.has("d"):
		return g.deleteTags(f.args)
	case len(f.args) == 0 || f.has("l"):
		return g.listTags(f.args)
	}
	name, to := f.args[0], "HEAD"
	if len(f.args) > 1 {
		to = f.args[1]
	}
	if plumbing.NewTagReferenceName(name).Validate() != nil || strings.HasPrefix(name, "-") {
		return g.fatal("'%s' is not a valid tag name.", name)
	}
	h, ok := g.resolve(to)
	if !ok {
		return g.fatal("Failed to resolve '%s' as a valid ref.", to)
	}
	before, there := g.follow(plumbing.ReferenceName(tags + name))
	if there && !f.has("f") {
		return g.fatal("tag '%s' already exists", name)
	}
	if f.has("a") || f.has("m") {
		if h, err = g.annotated(name, h, f); err != nil {
			return err
		}
	}
	if err := g.setRef(tags+name, h, ""); err != nil || !there || before == h {
		return err
	}
	return g.print("Updated tag '%s' (was %s)\n", name, g.short(before))
}

// annotated stores the object of a tag with a message.
func (g *call) annotated(name string, h plumbing.Hash, f *flags) (plumbing.Hash, error) {
	if !f.has("m") {
		return h, g.failure("there is no editor: give the message with -m")
	}
	o, err := g.object(plumbing.AnyObject, h)
	if err != nil {
		return h, err
	}
	who, err := g.signature("COMMITTER")
	if err != nil {
		return h, err
	}
	return g.put(&object.Tag{
		Name: name, Tagger: who, Message: cleanMessage(strings.Join(f.given["m"], "\n\n")), TargetType: o.Type(), Target: h,
	})
}

func (g *call) listTags(patterns []string) error {
	refs, err := g.references(tags)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		name := ref.Name().Short()
		if len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchGlob(p, name) }) {
			_ = g.print("%s\n", name)
		}
	}
	return nil
}

func (g *call) deleteTags(names []string) error {
	for _, name := range names {
		ref, err := g.store.Reference(plumbing.ReferenceName(tags + name))
		if err != nil {
			g.tell("error: tag '%s' not found.\n", name)
			g.Status = 1
			continue
		}
		if err := g.removeRef(ref.Name().String()); err != nil {
			return err
		}
		_ = g.print("Deleted tag '%s' (was %s)\n", name, g.short(ref.Hash()))
	}
	return nil
}
