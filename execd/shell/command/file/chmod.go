package file

import (
	"context"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var chmodOptions = getopt.New("cfRvrwxXstugoa,+=0::1::2::3::4::5::6::7::", "changes=c", "quiet=f", "silent=f",
	"recursive=R", "verbose=v", "reference:", "preserve-root", "no-preserve-root")

// changer changes the modes or owners of files, and of all below them.
type changer struct {
	*tool.Call
	recursive, quiet, changes, verbose, follow bool
	change                                     func(ctx context.Context, name string, a vfs.Attr) error
}

func chmod(ctx context.Context, c *tool.Call) error {
	args, minus := dashModes(c.Args[1:])
	c.Args = append([]string{c.Args[0]}, args...)
	options, operands, err := c.Options(chmodOptions, 1)
	if err != nil {
		return err
	}
	k := &changer{Call: c, follow: true}
	reference := ""
	for _, o := range options {
		k.set(o)
		if o.Name == "reference" {
			reference = o.Value
		}
	}
	text := minus
	if text == "" && reference == "" && len(operands) > 0 {
		text, operands = operands[0], operands[1:]
	}
	if len(operands) == 0 {
		if text == "" {
			return c.Usage(1, "missing operand")
		}
		return c.Usage(1, "missing operand after '%s'", text)
	}
	m, err := mode.Parse(text)
	if reference != "" {
		var a vfs.Attr
		if a, err = c.FS.Stat(ctx, reference); err != nil {
			return c.Die(1, "failed to get attributes of '%s': %s", reference, command.Reason(err))
		}
		m, err = mode.Parse(fmt.Sprintf("%05o", a.Mode))
	}
	if err != nil {
		return c.Usage(1, "invalid mode: '%s'", text)
	}
	k.change = func(ctx context.Context, name string, a vfs.Attr) error { return k.chmod(ctx, name, a, m) }
	return k.each(ctx, operands)
}

// dashModes takes a mode like -x out of the arguments.
func dashModes(args []string) (rest []string, mode string) {
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...), mode
		}
		if len(arg) > 1 && arg[0] == '-' && strings.IndexByte("rwxXstugo0123456789", arg[1]) >= 0 {
			mode = arg
			continue
		}
		rest = append(rest, arg)
	}
	return rest, mode
}

func (k *changer) set(o getopt.Option) {
	switch o.Name {
	case "c":
		k.changes = true
	case "f":
		k.quiet = true
	case "R":
		k.recursive = true
	case "v":
		k.verbose = true
	case "h":
		k.follow = false
	}
}

func (k *changer) chmod(ctx context.Context, name string, a vfs.Attr, m mode.Change) error {
	if a.Type == vfs.TypeSymlink {
		return nil
	}
	want := m.Apply(a.Mode, a.Type == vfs.TypeDir, k.FS.Umask)
	if err := k.FS.Chmod(ctx, name, want); err != nil {
		if k.quiet {
			k.Status = 1
			return nil
		}
		return k.FaultAt(ctx, "changing permissions of '"+name+"'", err)
	}
	after := a
	after.Mode = want
	switch {
	case want != a.Mode && (k.verbose || k.changes):
		fmt.Fprintf(k.Out, "mode of '%s' changed from %04o (%s) to %04o (%s)\n", name, a.Mode, mode.String(a)[1:], want,
			mode.String(after)[1:])
	case k.verbose:
		fmt.Fprintf(k.Out, "mode of '%s' retained as %04o (%s)\n", name, want, mode.String(a)[1:])
	}
	return nil
}

func (k *changer) each(ctx context.Context, names []string) error {
	for _, name := range names {
		look := k.FS.Stat
		if !k.follow {
			look = k.FS.Lstat
		}
		a, err := look(ctx, name)
		if err != nil {
			if k.quiet {
				k.Status = 1
				continue
			}
			if err = k.FaultAt(ctx, "cannot access '"+name+"'", err); err != nil {
				return err
			}
			continue
		}
		if err := k.visit(ctx, name, a); err != nil {
			return err
		}
	}
	return nil
}

func (k *changer) visit(ctx context.Context, name string, a vfs.Attr) error {
	if err := k.Step(ctx, 2); err != nil {
		return err
	}
	if err := k.change(ctx, name, a); err != nil || !k.recursive || a.Type != vfs.TypeDir {
		return err
	}
	entries, err := k.FS.ReadDir(ctx, name)
	if err != nil {
		return k.FaultAt(ctx, "cannot read directory '"+name+"'", err)
	}
	for _, e := range entries {
		path := joinPath(name, e.Name)
		sub, err := k.FS.Lstat(ctx, path)
		if err != nil {
			continue
		}
		if err := k.visit(ctx, path, sub); err != nil {
			return err
		}
	}
	return nil
}

var chownOptions = getopt.New("cfhHLPRv", "changes=c", "quiet=f", "silent=f", "no-dereference=h", "dereference",
	"recursive=R", "verbose=v", "reference:", "from:")

const unchanged = ^uint32(0)

// chown is chgrp too.
func chown(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(chownOptions, 1)
	if err != nil {
		return err
	}
	k := &changer{Call: c, follow: true}
	reference := ""
	for _, o := range options {
		k.set(o)
		if o.Name == "reference" {
			reference = o.Value
		}
	}
	uid, gid := unchanged, unchanged
	switch {
	case reference != "":
		a, err := c.FS.Stat(ctx, reference)
		if err != nil {
			return c.Die(1, "failed to get attributes of '%s': %s", reference, command.Reason(err))
		}
		uid, gid = a.UID, a.GID
	case len(operands) == 0:
		return c.Usage(1, "missing operand")
	case len(operands) == 1:
		return c.Usage(1, "missing operand after '%s'", operands[0])
	default:
		if uid, gid, err = owners(ctx, c, operands[0]); err != nil {
			return err
		}
		operands = operands[1:]
	}
	k.change = func(ctx context.Context, name string, a vfs.Attr) error { return k.chown(ctx, name, a, uid, gid) }
	return k.each(ctx, operands)
}

// owners reads USER, USER:GROUP, :GROUP, and GROUP alone for chgrp.
func owners(ctx context.Context, c *tool.Call, text string) (uid, gid uint32, err error) {
	uid, gid = unchanged, unchanged
	user, group, colon := strings.Cut(text, ":")
	if c.Name == "chgrp" {
		user, group = "", text
	}
	accounts := c.Accounts(ctx)
	if user != "" {
		id, ok := accounts.UserID(user)
		if !ok {
			return 0, 0, c.Die(1, "invalid user: '%s'", text)
		}
		uid = id
	}
	if group != "" {
		id, ok := accounts.GroupID(group)
		if !ok {
			return 0, 0, c.Die(1, "invalid group: '%s'", text)
		}
		gid = id
	} else if colon && user != "" {
		gid = uid
	}
	return uid, gid, nil
}

func (k *changer) chown(ctx context.Context, name string, a vfs.Attr, uid, gid uint32) error {
	if err := k.FS.Chown(ctx, name, uid, gid, k.follow && !k.recursive); err != nil {
		if k.quiet {
			k.Status = 1
			return nil
		}
		return k.FaultAt(ctx, "changing ownership of '"+name+"'", err)
	}
	return nil
}
