package file

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var installOptions = getopt.New("bcCdDg:m:o:psS:t:Tv", "compare=C", "directory=d", "group:=g", "mode:=m", "owner:=o",
	"preserve-timestamps=p", "strip=s", "target-directory:=t", "no-target-directory=T", "verbose=v",
	"backup::=b", "suffix:=S")

// installer is what one install does: it copies files and gives them a mode and an owner.
type installer struct {
	*tool.Call
	copier        *copier
	dirs, leading bool
	mode          uint32
	owner, group  uint32
	plain         bool
	target        string
}

func install(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(installOptions, 1)
	if err != nil {
		return err
	}
	names := c.Accounts(ctx)
	i := &installer{Call: c, mode: 0o755, owner: unchanged, group: unchanged, copier: &copier{Call: c, links: map[vfs.Ino]string{}, replace: true}}
	for _, o := range options {
		ok := true
		switch o.Name {
		case "d":
			i.dirs = true
		case "D":
			i.leading = true
		case "m":
			change, err := mode.Parse(o.Value)
			if err != nil {
				return c.Die(1, "invalid mode '%s'", o.Value)
			}
			i.mode = change.Apply(0, false, 0)
		case "o":
			if i.owner, ok = names.UserID(o.Value); !ok {
				return c.Die(1, "invalid user '%s'", o.Value)
			}
		case "g":
			if i.group, ok = names.GroupID(o.Value); !ok {
				return c.Die(1, "invalid group '%s'", o.Value)
			}
		case "p":
			i.copier.preserveTimes = true
		case "t":
			i.target = o.Value
		case "T":
			i.plain = true
		case "v":
			i.copier.verbose = true
		}
	}
	if i.copier.backups, err = backupsOf(c, options); err != nil {
		return err
	}
	if i.dirs {
		return i.directories(ctx, operands)
	}
	return i.files(ctx, operands)
}

// directories makes directories, and what is missing above them.
func (i *installer) directories(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return i.Usage(1, "missing file operand")
	}
	for _, name := range names {
		err := i.FS.MkdirAll(ctx, name, 0o755)
		if err == nil {
			err = i.dress(ctx, name)
		}
		if err != nil {
			if err = i.FaultAt(ctx, "cannot create directory '"+name+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *installer) files(ctx context.Context, operands []string) error {
	if i.leading {
		dir := i.target
		if dir == "" && len(operands) > 1 {
			dir = parentOf(operands[len(operands)-1])
			i.plain = i.plain || len(operands) == 2 && !i.isDir(ctx, operands[1])
		}
		if dir != "" {
			if err := i.FS.MkdirAll(ctx, dir, 0o755); err != nil {
				return i.Die(1, "cannot create directory '%s': %s", dir, command.Reason(err))
			}
		}
	}
	pairs, err := destinations(ctx, i.Call, operands, i.target, i.plain, true)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if i.isDir(ctx, p.from) {
			i.Fault("omitting directory '%s'", p.from)
			continue
		}
		before := i.Status
		i.Status = 0
		if err := i.copier.operand(ctx, p); err != nil {
			return err
		}
		failed := i.Status
		if i.Status = max(before, failed); failed != 0 {
			continue
		}
		if err := i.dress(ctx, p.to); err != nil {
			if err = i.FaultAt(ctx, "cannot change permissions of '"+p.to+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *installer) isDir(ctx context.Context, name string) bool {
	a, err := i.FS.Stat(ctx, name)
	return err == nil && a.Type == vfs.TypeDir
}

// dress gives a file its owner and mode.
func (i *installer) dress(ctx context.Context, name string) error {
	if i.owner != unchanged || i.group != unchanged {
		if err := i.FS.Chown(ctx, name, i.owner, i.group, true); err != nil {
			return err
		}
	}
	return i.FS.Chmod(ctx, name, i.mode)
}
