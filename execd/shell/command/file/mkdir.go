package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var mkdirOptions = getopt.New("m:pvZ", "mode:=m", "parents=p", "verbose=v")

// maker is what one mkdir does.
type maker struct {
	*tool.Call
	parents, verbose bool
	mode             *mode.Change
}

func mkdir(ctx context.Context, c *tool.Call) error {
	options, dirs, err := c.Options(mkdirOptions, 1)
	if err != nil {
		return err
	}
	m := &maker{Call: c}
	for _, o := range options {
		switch o.Name {
		case "p":
			m.parents = true
		case "v":
			m.verbose = true
		case "m":
			change, err := mode.Parse(o.Value)
			if err != nil {
				return c.Die(1, "invalid mode '%s'", o.Value)
			}
			m.mode = &change
		}
	}
	if len(dirs) == 0 {
		return c.Usage(1, "missing operand")
	}
	for _, dir := range dirs {
		if err := m.make(ctx, dir); err != nil && !errors.Is(err, errSaid) {
			if err = c.FaultAt(ctx, "cannot create directory '"+dir+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// errSaid is that a fault has been said already.
var errSaid = errors.New("said")

func (m *maker) make(ctx context.Context, dir string) error {
	if m.parents {
		return m.makeAll(ctx, dir)
	}
	return m.one(ctx, dir)
}

// makeAll makes what is missing above, without the mode that was asked for.
func (m *maker) makeAll(ctx context.Context, dir string) error {
	for i := 1; i < len(dir); i++ {
		if dir[i] != '/' || dir[i-1] == '/' {
			continue
		}
		above := &maker{Call: m.Call, verbose: m.verbose}
		if strings.Trim(dir[i:], "/") == "" {
			break
		}
		if err := above.unlessThere(ctx, dir[:i]); err != nil {
			if errors.Is(err, vfs.ErrExist) {
				err = vfs.ErrNotDir
			}
			if err = m.FaultAt(ctx, "cannot create directory '"+dir[:i]+"'", err); err == nil {
				err = errSaid
			}
			return err
		}
	}
	return m.unlessThere(ctx, dir)
}

func (m *maker) unlessThere(ctx context.Context, dir string) error {
	err := m.one(ctx, dir)
	if !errors.Is(err, vfs.ErrExist) {
		return err
	}
	a, statErr := m.FS.Stat(ctx, dir)
	if statErr == nil && a.Type != vfs.TypeDir {
		return err
	}
	return statErr
}

func (m *maker) one(ctx context.Context, dir string) error {
	if err := m.FS.Mkdir(ctx, dir, 0o777); err != nil {
		return err
	}
	if m.verbose {
		fmt.Fprintf(m.Out, "mkdir: created directory '%s'\n", dir)
	}
	if m.mode == nil {
		return nil
	}
	return m.FS.Chmod(ctx, dir, m.mode.Apply(0o777, true, m.FS.Umask))
}

var rmdirOptions = getopt.New("pv", "parents=p", "verbose=v", "ignore-fail-on-non-empty")

func rmdir(ctx context.Context, c *tool.Call) error {
	options, dirs, err := c.Options(rmdirOptions, 1)
	if err != nil {
		return err
	}
	parents, verbose, ignore := false, false, false
	for _, o := range options {
		switch o.Name {
		case "p":
			parents = true
		case "v":
			verbose = true
		default:
			ignore = true
		}
	}
	if len(dirs) == 0 {
		return c.Usage(1, "missing operand")
	}
	for _, dir := range dirs {
		for dir != "" {
			if verbose {
				fmt.Fprintf(c.Out, "rmdir: removing directory, '%s'\n", dir)
			}
			if err := removeEmpty(ctx, c, dir); err != nil {
				if !(ignore && errors.Is(err, vfs.ErrNotEmpty)) {
					c.Fault("failed to remove '%s': %s", dir, command.Reason(err))
				}
				break
			}
			trimmed := strings.TrimRight(dir, "/")
			i := strings.LastIndexByte(trimmed, '/')
			if !parents || i < 0 {
				break
			}
			dir = strings.TrimRight(trimmed[:i], "/")
		}
	}
	return nil
}

func removeEmpty(ctx context.Context, c *tool.Call, dir string) error {
	a, err := c.FS.Lstat(ctx, dir)
	switch {
	case err != nil:
		return err
	case a.Type != vfs.TypeDir:
		return vfs.ErrNotDir
	}
	return c.FS.Remove(ctx, dir)
}
