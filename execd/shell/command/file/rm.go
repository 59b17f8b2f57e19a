package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var rmOptions = getopt.New("dfiIrRv", "dir=d", "force=f", "interactive::", "recursive=r", "verbose=v", "preserve-root::",
	"no-preserve-root", "one-file-system")

// remover is what one rm does.
type remover struct {
	*tool.Call
	dirs, force, ask, once, recursive, verbose, root bool
}

func rm(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(rmOptions, 1)
	if err != nil {
		return err
	}
	r := &remover{Call: c, root: true}
	for _, o := range options {
		r.set(o)
	}
	if len(names) == 0 {
		if r.force {
			return nil
		}
		return c.Usage(1, "missing operand")
	}
	if r.once && (len(names) > 3 || r.recursive) {
		how := map[bool]string{true: " recursively"}[r.recursive]
		if yes, err := c.Ask(ctx, "remove %d arguments%s", len(names), how); err != nil || !yes {
			return err
		}
	}
	for _, name := range names {
		if err := r.operand(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *remover) set(o getopt.Option) {
	switch o.Name {
	case "d":
		r.dirs = true
	case "f":
		r.force, r.ask, r.once = true, false, false
	case "i":
		r.force, r.ask = false, true
	case "I":
		r.force, r.ask, r.once = false, false, true
	case "interactive":
		r.ask = o.Value == "" || o.Value == "always" || o.Value == "yes"
		r.once = o.Value == "once"
	case "r", "R":
		r.recursive = true
	case "v":
		r.verbose = true
	case "no-preserve-root":
		r.root = false
	}
}

func (r *remover) operand(ctx context.Context, name string) error {
	trimmed := strings.TrimRight(name, "/")
	if base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; r.recursive && (base == "." || base == "..") {
		r.Fault("refusing to remove '.' or '..' directory: skipping '%s'", name)
		return nil
	}
	if trimmed == "" && name != "" && r.root && r.recursive {
		r.Fault("it is dangerous to operate recursively on '/'")
		r.Say("use --no-preserve-root to override this failsafe")
		return nil
	}
	a, err := r.FS.Lstat(ctx, name)
	if err != nil {
		if r.force && (errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrNotDir)) {
			return nil
		}
		return r.FaultAt(ctx, "cannot remove '"+name+"'", err)
	}
	_, err = r.remove(ctx, name, a)
	return err
}

// remove reports whether name is gone. What goes wrong is said; an error ends the command.
func (r *remover) remove(ctx context.Context, name string, a vfs.Attr) (gone bool, err error) {
	if err := r.Step(ctx, 2); err != nil {
		return false, err
	}
	if a.Type == vfs.TypeDir {
		return r.directory(ctx, name)
	}
	if r.ask {
		if yes, err := r.Ask(ctx, "remove %s '%s'", wordsOf(a), name); err != nil || !yes {
			return false, err
		}
	}
	return r.unlink(ctx, name, "removed '%s'\n")
}

func wordsOf(a vfs.Attr) string {
	switch {
	case a.Type == vfs.TypeSymlink:
		return "symbolic link"
	case a.Type == vfs.TypeDir:
		return "directory"
	case a.Size == 0:
		return "regular empty file"
	}
	return "regular file"
}

func (r *remover) unlink(ctx context.Context, name, said string) (bool, error) {
	if err := r.FS.Remove(ctx, name); err != nil {
		return false, r.FaultAt(ctx, "cannot remove '"+name+"'", err)
	}
	if r.verbose {
		fmt.Fprintf(r.Out, said, name)
	}
	return true, nil
}

func (r *remover) directory(ctx context.Context, name string) (bool, error) {
	if !r.recursive && !r.dirs {
		r.Fault("cannot remove '%s': Is a directory", name)
		return false, nil
	}
	if r.recursive {
		if done, err := r.entries(ctx, name); err != nil || !done {
			return false, err
		}
	}
	if r.ask {
		if yes, err := r.Ask(ctx, "remove directory '%s'", name); err != nil || !yes {
			return false, err
		}
	}
	return r.unlink(ctx, strings.TrimRight(name, "/"), "removed directory '%s'\n")
}

// entries removes what is in a directory, and reports whether all of it is gone.
func (r *remover) entries(ctx context.Context, name string) (bool, error) {
	entries, err := r.FS.ReadDir(ctx, name)
	if err != nil {
		return false, r.FaultAt(ctx, "cannot remove '"+name+"'", err)
	}
	if r.ask && len(entries) > 0 {
		if yes, err := r.Ask(ctx, "descend into directory '%s'", name); err != nil || !yes {
			return false, err
		}
	}
	all := true
	for _, e := range entries {
		path := strings.TrimRight(name, "/") + "/" + e.Name
		a := vfs.Attr{Type: e.Type}
		if r.ask {
			if a, err = r.FS.Lstat(ctx, path); err != nil {
				continue
			}
		}
		gone, err := r.remove(ctx, path, a)
		if err != nil {
			return false, err
		}
		all = all && gone
	}
	return all, nil
}
