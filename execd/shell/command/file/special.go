package file

import (
	"context"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var noOptions = getopt.New("")

// parentOf is the directory that a name is in.
func parentOf(name string) string { return path.Dir(strings.TrimRight(name, "/")) }

var mkfifoOptions = getopt.New("m:Z", "mode:=m")

func mkfifo(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(mkfifoOptions, 1)
	if err != nil {
		return err
	}
	bits, exact := uint32(0o666), false
	for _, o := range options {
		if o.Name != "m" {
			continue
		}
		change, err := mode.Parse(o.Value)
		if err != nil {
			return c.Die(1, "invalid mode")
		}
		bits, exact = change.Apply(0o666, false, c.FS.Umask), true
	}
	if len(names) == 0 {
		return c.Usage(1, "missing operand")
	}
	for _, name := range names {
		err := c.FS.Mkfifo(ctx, name, bits)
		if err == nil && exact {
			err = c.FS.Chmod(ctx, name, bits)
		}
		if err != nil {
			if err = c.FaultAt(ctx, "cannot create fifo '"+name+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlink removes one file by unlink(2), link makes a second name by link(2), with nothing asked.
func unlink(ctx context.Context, c *tool.Call) error {
	_, names, err := c.Options(noOptions, 1)
	if err != nil {
		return err
	}
	switch {
	case len(names) == 0:
		return c.Usage(1, "missing operand")
	case len(names) > 1:
		return c.Usage(1, "extra operand '%s'", names[1])
	}
	a, err := c.FS.Lstat(ctx, names[0])
	if err == nil && a.Type == vfs.TypeDir {
		err = vfs.ErrIsDir
	}
	if err == nil {
		err = c.FS.Remove(ctx, names[0])
	}
	if err != nil && !tool.Ends(ctx, err) {
		return c.Die(1, "cannot unlink '%s': %s", names[0], command.Reason(err))
	}
	return err
}

func link(ctx context.Context, c *tool.Call) error {
	_, names, err := c.Options(noOptions, 1)
	if err != nil {
		return err
	}
	switch len(names) {
	case 0:
		return c.Usage(1, "missing operand")
	case 1:
		return c.Usage(1, "missing operand after '%s'", names[0])
	case 2:
	default:
		return c.Usage(1, "extra operand '%s'", names[2])
	}
	err = c.FS.Link(ctx, names[0], names[1])
	if err != nil && !tool.Ends(ctx, err) {
		return c.Die(1, "cannot create link '%s' to '%s': %s", names[1], names[0], command.Reason(err))
	}
	return err
}

var syncOptions = getopt.New("df", "data=d", "file-system=f")

// syncFiles makes files durable; without operands there is nothing that a command of ours would have kept back.
func syncFiles(ctx context.Context, c *tool.Call) error {
	_, names, err := c.Options(syncOptions, 1)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := c.FS.Open(ctx, name)
		if err == nil {
			err = f.Sync()
			_ = f.Close() // it was only read
		}
		if err != nil {
			if err = c.FaultAt(ctx, "error opening '"+name+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}
