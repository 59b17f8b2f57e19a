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

// owner is what chown and chgrp give files, or ask of them: ids, and what they were called; unchanged and "" for what is not said.
type owner struct {
	uid, gid    uint32
	user, group string
}

// is reports whether a file has the owner.
func (o owner) is(a vfs.Attr) bool {
	return (o.uid == unchanged || o.uid == a.UID) && (o.gid == unchanged || o.gid == a.GID)
}

// chown is chgrp too.
func chown(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(chownOptions, 1)
	if err != nil {
		return err
	}
	k := &changer{Call: c, follow: true}
	from, reference := owner{uid: unchanged, gid: unchanged}, ""
	for _, o := range options {
		switch k.set(o); o.Name {
		case "reference":
			reference = o.Value
		case "from":
			if from, err = ownerOf(ctx, c, o.Value); err != nil {
				return err
			}
		}
	}
	var to owner
	switch {
	case reference != "":
		a, err := c.FS.Stat(ctx, reference)
		if err != nil {
			return c.Die(1, "failed to get attributes of '%s': %s", reference, command.Reason(err))
		}
		to = owner{uid: a.UID, gid: a.GID}
		to.user, _ = c.Accounts(ctx).User(a.UID)
		to.group, _ = c.Accounts(ctx).Group(a.GID)
	case len(operands) == 0:
		return c.Usage(1, "missing operand")
	case len(operands) == 1:
		return c.Usage(1, "missing operand after '%s'", operands[0])
	default:
		if to, err = ownerOf(ctx, c, operands[0]); err != nil {
			return err
		}
		operands = operands[1:]
	}
	k.change = func(ctx context.Context, name string, a vfs.Attr) error { return k.chown(ctx, name, a, from, to) }
	return k.each(ctx, operands)
}

// ownerOf reads USER, USER:GROUP, :GROUP, and GROUP alone for chgrp.
func ownerOf(ctx context.Context, c *tool.Call, text string) (owner, error) {
	o := owner{uid: unchanged, gid: unchanged}
	user, group, colon := strings.Cut(text, ":")
	if c.Name == "chgrp" {
		user, group = "", text
	}
	accounts := c.Accounts(ctx)
	if user != "" {
		id, ok := accounts.UserID(user)
		if !ok {
			return o, c.Die(1, "invalid user: '%s'", text)
		}
		o.uid, o.user = id, user
	}
	if group != "" {
		id, ok := accounts.GroupID(group)
		if !ok {
			return o, c.Die(1, "invalid group: '%s'", text)
		}
		o.gid, o.group = id, group
	} else if colon && user != "" {
		o.gid, o.group = o.uid, user
	}
	return o, nil
}

func (k *changer) chown(ctx context.Context, name string, a vfs.Attr, from, to owner) error {
	if !from.is(a) {
		k.sayOwner(ctx, name, a, a, to)
		return nil
	}
	if err := k.FS.Chown(ctx, name, to.uid, to.gid, k.follow && !k.recursive); err != nil {
		if k.quiet {
			k.Status = 1
			return nil
		}
		return k.FaultAt(ctx, "changing ownership of '"+name+"'", err)
	}
	after := a
	if to.uid != unchanged {
		after.UID = to.uid
	}
	if to.gid != unchanged {
		after.GID = to.gid
	}
	k.sayOwner(ctx, name, a, after, to)
	return nil
}

// sayOwner says what has become of a file's owner, if that is to be said.
func (k *changer) sayOwner(ctx context.Context, name string, before, after vfs.Attr, to owner) {
	changed := before.UID != after.UID || before.GID != after.GID
	if !k.verbose && (!k.changes || !changed) {
		return
	}
	user, _ := k.Accounts(ctx).User(before.UID)
	group, _ := k.Accounts(ctx).Group(before.GID)
	what, was := "ownership", user
	switch {
	case to.user == "":
		what, was = "group", group
	case to.gid != unchanged:
		was = user + ":" + group
	}
	is := to.user
	switch {
	case is == "":
		is = to.group
	case to.gid != unchanged:
		is += ":" + to.group
	}
	if changed {
		fmt.Fprintf(k.Out, "changed %s of '%s' from %s to %s\n", what, name, was, is)
	} else {
		fmt.Fprintf(k.Out, "%s of '%s' retained as %s\n", what, name, was)
	}
}
