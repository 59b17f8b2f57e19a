package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var cpOptions = getopt.New("abdfHilLnpPrRsS:t:Tuvx", "archive=a", "force=f", "interactive=i", "link=l", "dereference=L",
	"no-clobber=n", "no-dereference=P", "preserve::", "no-preserve:", "parents", "recursive=R", "reflink::", "sparse:",
	"symbolic-link=s", "target-directory:=t", "no-target-directory=T", "update=u", "verbose=v", "one-file-system=x",
	"attributes-only", "remove-destination", "strip-trailing-slashes",
	"backup::=b", "suffix:=S")

// copier is what one cp does.
type copier struct {
	*tool.Call
	recursive, force, ask, keep, update, verbose bool
	link, symlink, parents, plain, replace       bool
	follow                                       byte // L always, H for operands, P never, 0 for what the rest says
	preserveMode, preserveOwner, preserveTimes   bool
	preserveLinks                                bool
	target                                       string
	backups                                      backups
	bare                                         bool               // --attributes-only
	links                                        map[vfs.Ino]string // copies of files with several names
	root                                         vfs.Ino            // of the copied tree's new top: not to be copied into itself
	top                                          pair
}

func cp(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(cpOptions, 1)
	if err != nil {
		return err
	}
	k := &copier{Call: c, links: map[vfs.Ino]string{}}
	for _, o := range options {
		k.set(o)
	}
	if k.backups, err = backupsOf(c, options); err != nil {
		return err
	}
	if k.keep && k.backups.kind != 0 {
		return c.Usage(1, "options --backup and --no-clobber are mutually exclusive")
	}
	if k.follow == 0 && k.recursive {
		k.follow = 'P'
	}
	pairs, err := destinations(ctx, c, operands, k.target, k.plain, true)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if k.parents {
			if p, err = k.withParents(ctx, p, operands); err != nil {
				return err
			}
		}
		if err := k.operand(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (k *copier) set(o getopt.Option) {
	switch o.Name {
	case "a":
		k.recursive, k.follow = true, 'P'
		k.preserve("all")
	case "d":
		k.follow, k.preserveLinks = 'P', true
	case "f":
		k.force = true
	case "H", "L", "P":
		k.follow = o.Name[0]
	case "i":
		k.ask, k.keep = true, false
	case "l":
		k.link = true
	case "n":
		k.keep, k.ask = true, false
	case "p":
		k.preserve("mode,ownership,timestamps")
	case "preserve":
		if !o.Given {
			o.Value = "mode,ownership,timestamps"
		}
		k.preserve(o.Value)
	case "r", "R":
		k.recursive = true
	case "s":
		k.symlink = true
	case "t":
		k.target = o.Value
	case "T":
		k.plain = true
	case "u":
		k.update = true
	case "v":
		k.verbose = true
	case "parents":
		k.parents = true
	case "attributes-only":
		k.bare = true
	case "remove-destination":
		k.replace = true
	}
}

func (k *copier) preserve(list string) {
	for _, what := range strings.Split(list, ",") {
		all := what == "all"
		k.preserveMode = k.preserveMode || all || what == "mode"
		k.preserveOwner = k.preserveOwner || all || what == "ownership"
		k.preserveTimes = k.preserveTimes || all || what == "timestamps"
		k.preserveLinks = k.preserveLinks || all || what == "links"
	}
}

// withParents makes the source's own directories below the target.
func (k *copier) withParents(ctx context.Context, p pair, operands []string) (pair, error) {
	target := k.target
	if target == "" {
		target = operands[len(operands)-1]
	}
	if a, err := k.FS.Stat(ctx, target); err != nil || a.Type != vfs.TypeDir {
		return p, k.Usage(1, "with --parents, the destination must be a directory")
	}
	p.to = joinPath(target, strings.TrimLeft(p.from, "/"))
	if err := k.FS.MkdirAll(ctx, path.Dir(p.to), 0o777); err != nil {
		return p, k.Die(1, "cannot make directory '%s': %s", path.Dir(p.to), command.Reason(err))
	}
	return p, nil
}

func (k *copier) stat(ctx context.Context, name string, operand bool) (vfs.Attr, error) {
	if k.follow == 'P' || k.follow == 'H' && !operand {
		return k.FS.Lstat(ctx, name)
	}
	return k.FS.Stat(ctx, name)
}

func (k *copier) operand(ctx context.Context, p pair) error {
	a, err := k.stat(ctx, p.from, true)
	if err != nil {
		return k.FaultAt(ctx, "cannot stat '"+p.from+"'", err)
	}
	k.root, k.top = 0, p
	return k.copy(ctx, p, a)
}

// copy copies one node and all below it. What goes wrong is said; an error ends the command.
func (k *copier) copy(ctx context.Context, p pair, a vfs.Attr) error {
	if err := k.Step(ctx, 5); err != nil {
		return err
	}
	if a.Type == vfs.TypeDir && !k.recursive {
		k.Fault("-r not specified; omitting directory '%s'", p.from)
		return nil
	}
	there, thereErr := k.FS.Stat(ctx, p.to)
	if thereErr != nil {
		there, thereErr = k.FS.Lstat(ctx, p.to)
	}
	if thereErr == nil {
		if proceed, err := k.mayReplace(ctx, p, a, there); err != nil || !proceed {
			return err
		}
	}
	if a.Type == vfs.TypeDir {
		return k.directory(ctx, p, a, thereErr == nil)
	}
	if thereErr != nil && strings.HasSuffix(p.to, "/") {
		k.Fault("cannot create regular file '%s': Not a directory", p.to)
		return nil
	}
	backup := ""
	if thereErr == nil {
		var err error
		if backup, err = k.backups.keep(ctx, k.Call, p.to); err != nil {
			return k.FaultAt(ctx, "cannot backup '"+p.to+"'", err)
		}
	}
	if k.verbose {
		fmt.Fprintf(k.Out, "'%s' -> '%s'%s\n", p.from, p.to, shown(backup))
	}
	if err := k.node(ctx, p, a, thereErr == nil && backup == ""); err != nil {
		return k.failed(ctx, p, err)
	}
	return k.attributes(ctx, p.to, a)
}

// failed says what went wrong with making a copy.
func (k *copier) failed(ctx context.Context, p pair, err error) error {
	var read readError
	switch {
	case errors.As(err, &read):
		return k.FaultAt(ctx, "cannot open '"+p.from+"' for reading", read.error)
	case k.link:
		return k.FaultAt(ctx, "cannot create hard link '"+p.to+"' to '"+p.from+"'", err)
	}
	return k.FaultAt(ctx, "cannot create regular file '"+p.to+"'", err)
}

// readError is an error of the source.
type readError struct{ error }

func (k *copier) mayReplace(ctx context.Context, p pair, a, there vfs.Attr) (bool, error) {
	switch {
	case a.Ino == there.Ino && !(k.replace || k.link):
		k.Fault("'%s' and '%s' are the same file", p.from, p.to)
		return false, nil
	case a.Type == vfs.TypeDir && there.Type != vfs.TypeDir:
		k.Fault("cannot overwrite non-directory '%s' with directory '%s'", p.to, p.from)
		return false, nil
	case a.Type == vfs.TypeDir:
		return true, nil
	case there.Type == vfs.TypeDir:
		k.Fault("cannot overwrite directory '%s' with non-directory", p.to)
		return false, nil
	case k.keep, k.update && there.Mtime >= a.Mtime:
		return false, nil
	case k.ask:
		return k.Ask(ctx, "overwrite '%s'", p.to)
	}
	return true, nil
}

// node makes the copy of what is no directory.
func (k *copier) node(ctx context.Context, p pair, a vfs.Attr, there bool) error {
	if there && (k.replace || k.link || k.symlink || a.Type != vfs.TypeRegular && k.recursive) {
		if err := k.FS.Remove(ctx, p.to); err != nil {
			return err
		}
	}
	switch {
	case k.link:
		return k.FS.Link(ctx, p.from, p.to)
	case k.symlink:
		return k.FS.Symlink(ctx, p.from, p.to)
	case a.Type == vfs.TypeSymlink:
		target, err := k.FS.Readlink(ctx, p.from)
		if err != nil {
			return readError{err}
		}
		return k.FS.Symlink(ctx, target, p.to)
	case a.Type == vfs.TypeFIFO && k.recursive:
		return k.FS.Mkfifo(ctx, p.to, a.Mode)
	}
	if k.preserveLinks && a.Nlink > 1 {
		if first, ok := k.links[a.Ino]; ok {
			if there {
				if err := k.FS.Remove(ctx, p.to); err != nil {
					return err
				}
			}
			return k.FS.Link(ctx, first, p.to)
		}
		k.links[a.Ino] = p.to
	}
	return k.regular(ctx, p, a)
}

func (k *copier) regular(ctx context.Context, p pair, a vfs.Attr) error {
	from, err := k.FS.Open(ctx, p.from)
	if err != nil {
		return readError{err}
	}
	defer from.Close()
	flag := treepath.Write | treepath.Create | treepath.Truncate
	if k.bare {
		flag &^= treepath.Truncate
	}
	to, err := k.FS.OpenFile(ctx, p.to, flag, a.Mode&0o777)
	if err != nil && k.force {
		if err = k.FS.Remove(ctx, p.to); err == nil {
			to, err = k.FS.OpenFile(ctx, p.to, flag, a.Mode&0o777)
		}
	}
	if err != nil {
		return err
	}
	defer to.Close()
	if k.bare {
		return nil
	}
	return copyBytes(ctx, k.Call, from, to, a)
}

// shareSize is how much CopyRange is asked to do between two looks at the context.
const shareSize = 16 << 20

// copyBytes shares what is stored if the tree can, else copies.
func copyBytes(ctx context.Context, c *tool.Call, from, to *treepath.File, a vfs.Attr) error {
	dst, err := to.Stat()
	if err != nil {
		return err
	}
	if a.Type != vfs.TypeRegular || dst.Type != vfs.TypeRegular {
		_, err := io.Copy(to, c.Count(ctx, from))
		return err
	}
	for off := uint64(0); off < a.Size; {
		n, err := c.FS.Tree.CopyRange(ctx, a.Ino, off, dst.Ino, off, min(shareSize, a.Size-off))
		if err != nil {
			return err
		}
		if err := c.Step(ctx, 1+int(n>>14)); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		off += n
	}
	return nil
}

func (k *copier) directory(ctx context.Context, p pair, a vfs.Attr, there bool) error {
	made := !there
	if made {
		if err := k.FS.Mkdir(ctx, p.to, a.Mode&0o777|0o700); err != nil {
			return k.FaultAt(ctx, "cannot create directory '"+p.to+"'", err)
		}
		if k.verbose {
			fmt.Fprintf(k.Out, "'%s' -> '%s'\n", p.from, p.to)
		}
	}
	if k.root == 0 {
		if top, err := k.FS.Stat(ctx, p.to); err == nil {
			k.root = top.Ino
		}
	}
	entries, err := k.FS.ReadDir(ctx, p.from)
	if err != nil {
		return k.FaultAt(ctx, "cannot access '"+p.from+"'", err)
	}
	for _, e := range entries {
		from := joinPath(p.from, e.Name)
		if e.Ino == k.root {
			k.Fault("cannot copy a directory, '%s', into itself, '%s'", k.top.from, k.top.to)
			continue
		}
		sub, err := k.stat(ctx, from, false)
		if err != nil {
			if err = k.FaultAt(ctx, "cannot stat '"+from+"'", err); err != nil {
				return err
			}
			continue
		}
		if err := k.copy(ctx, pair{from, joinPath(p.to, e.Name)}, sub); err != nil {
			return err
		}
	}
	if !made {
		return nil
	}
	if !k.preserveMode {
		if err := k.FS.Chmod(ctx, p.to, a.Mode&0o777&^k.FS.Umask); err != nil {
			return k.FaultAt(ctx, "setting permissions for '"+p.to+"'", err)
		}
	}
	return k.attributes(ctx, p.to, a)
}

// attributes gives a copy what is to be preserved.
func (k *copier) attributes(ctx context.Context, name string, a vfs.Attr) error {
	if k.link || k.symlink {
		return nil
	}
	if k.preserveOwner {
		if err := k.FS.Chown(ctx, name, a.UID, a.GID, false); err != nil && !errors.Is(err, vfs.ErrNotPermitted) {
			return k.FaultAt(ctx, "failed to preserve ownership for '"+name+"'", err)
		}
	}
	if k.preserveMode && a.Type != vfs.TypeSymlink {
		if err := k.FS.Chmod(ctx, name, a.Mode); err != nil {
			return k.FaultAt(ctx, "preserving permissions for '"+name+"'", err)
		}
	}
	if k.preserveTimes {
		if err := k.FS.Chtimes(ctx, name, &a.Atime, &a.Mtime, false); err != nil {
			return k.FaultAt(ctx, "preserving times for '"+name+"'", err)
		}
	}
	return nil
}
