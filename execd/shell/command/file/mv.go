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

var mvOptions = getopt.New("bfinS:t:Tuv", "force=f", "interactive=i", "no-clobber=n", "target-directory:=t",
	"no-target-directory=T", "update=u", "verbose=v", "strip-trailing-slashes", "backup::=b", "suffix:=S")

// mover is what one mv does.
type mover struct {
	*tool.Call
	ask, keep, update, verbose bool
	backups                    backups
}

func mv(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(mvOptions, 1)
	if err != nil {
		return err
	}
	m := &mover{Call: c}
	target, plain := "", false
	for _, o := range options {
		switch o.Name {
		case "f":
			m.ask, m.keep = false, false
		case "i":
			m.ask, m.keep = true, false
		case "n":
			m.ask, m.keep = false, true
		case "t":
			target = o.Value
		case "T":
			plain = true
		case "u":
			m.update = true
		case "v":
			m.verbose = true
		}
	}
	if m.backups, err = backupsOf(c, options); err != nil {
		return err
	}
	if m.keep && m.backups.kind != 0 {
		return c.Usage(1, "options --backup and --no-clobber are mutually exclusive")
	}
	pairs, err := destinations(ctx, c, operands, target, plain, true)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := m.move(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// move renames: one atomic change of the tree.
func (m *mover) move(ctx context.Context, p pair) error {
	a, err := m.FS.Lstat(ctx, p.from)
	if err != nil {
		return m.FaultAt(ctx, "cannot stat '"+p.from+"'", err)
	}
	backup := ""
	if there, err := m.FS.Lstat(ctx, p.to); err == nil {
		if proceed, err := m.mayReplace(ctx, p, a, there); err != nil || !proceed {
			return err
		}
		if backup, err = m.backups.keep(ctx, m.Call, p.to); err != nil {
			return m.FaultAt(ctx, "cannot backup '"+p.to+"'", err)
		}
	}
	if a.Type != vfs.TypeDir && strings.HasSuffix(p.to, "/") {
		m.Fault("cannot move '%s' to '%s': Not a directory", p.from, p.to)
		return nil
	}
	err = m.FS.Rename(ctx, p.from, p.to)
	switch {
	case errors.Is(err, vfs.ErrInvalid) && a.Type == vfs.TypeDir:
		m.Fault("cannot move '%s' to a subdirectory of itself, '%s'", p.from, p.to)
		return nil
	case errors.Is(err, vfs.ErrNotSupported):
		if moved, err := m.copyAway(ctx, p, a); err != nil || !moved {
			return err
		}
	case err != nil:
		return m.FaultAt(ctx, "cannot move '"+p.from+"' to '"+p.to+"'", err)
	}
	if m.verbose {
		fmt.Fprintf(m.Out, "renamed '%s' -> '%s'%s\n", p.from, p.to, shown(backup))
	}
	return nil
}

// copyAway moves to another filesystem, as /tmp is: a copy, and then the removal of what was copied whole.
func (m *mover) copyAway(ctx context.Context, p pair, a vfs.Attr) (moved bool, err error) {
	k := &copier{
		Call: m.Call, recursive: true, follow: 'P', preserveMode: true, preserveOwner: true, preserveTimes: true,
		preserveLinks: true, links: make(map[vfs.Ino]string), top: p,
	}
	before := m.Status
	m.Status = 0
	err = k.copy(ctx, p, a)
	moved = err == nil && m.Status == 0
	m.Status = max(before, m.Status)
	if !moved {
		return false, err
	}
	if err := m.FS.RemoveAll(ctx, p.from); err != nil {
		return false, m.FaultAt(ctx, "cannot remove '"+p.from+"'", err)
	}
	return true, nil
}

func (m *mover) mayReplace(ctx context.Context, p pair, a, there vfs.Attr) (bool, error) {
	switch {
	case m.keep, m.update && there.Mtime >= a.Mtime:
		return false, nil
	case a.Ino == there.Ino:
		m.Fault("'%s' and '%s' are the same file", p.from, p.to)
		return false, nil
	case a.Type == vfs.TypeDir && there.Type != vfs.TypeDir:
		m.Fault("cannot overwrite non-directory '%s' with directory '%s'", p.to, p.from)
		return false, nil
	case a.Type != vfs.TypeDir && there.Type == vfs.TypeDir:
		m.Fault("cannot overwrite directory '%s' with non-directory", p.to)
		return false, nil
	case m.ask:
		return m.Ask(ctx, "overwrite '%s'", p.to)
	}
	return true, nil
}
