package file

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var mktempOptions = getopt.New("dp:qtuV", "directory=d", "dry-run=u", "quiet=q", "suffix:", "tmpdir::=p")

// tries is how many names are tried before mktemp gives up.
const tries = 100

func mktemp(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(mktempOptions, 1)
	if err != nil {
		return err
	}
	isDir, dry, dir, inTemp, suffix := false, false, "", false, ""
	for _, o := range options {
		switch o.Name {
		case "d":
			isDir = true
		case "u":
			dry = true
		case "t":
			inTemp = true
		case "p":
			dir, inTemp = o.Value, true
		case "suffix":
			suffix = o.Value
		}
	}
	if len(operands) > 1 {
		return c.Usage(1, "too many templates")
	}
	template := "tmp.XXXXXXXXXX"
	if len(operands) == 1 {
		template = operands[0]
	} else {
		inTemp = true
	}
	if inTemp {
		if dir == "" {
			dir, _ = c.Getenv("TMPDIR")
		}
		if dir == "" {
			dir = "/tmp"
		}
		template = path.Join(dir, template)
	}
	head := strings.TrimRight(template, "X")
	tail := suffix
	if suffix == "" {
		if i := strings.LastIndexByte(template, 'X'); i >= 0 {
			template, tail = template[:i+1], template[i+1:]
			head = strings.TrimRight(template, "X")
		}
	}
	if len(template)-len(head) < 3 {
		return c.Die(1, "too few X's in template '%s'", append(operands, template)[0])
	}
	return makeTemp(ctx, c, head, len(template)-len(head), tail, isDir, dry)
}

func makeTemp(ctx context.Context, c *tool.Call, head string, n int, tail string, isDir, dry bool) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	what := map[bool]string{true: "directory", false: "file"}[isDir]
	for range tries {
		random := make([]byte, n)
		for i := range random {
			random[i] = letters[c.Rand.IntN(len(letters))]
		}
		name := head + string(random) + tail
		var err error
		switch {
		case dry:
			if _, err = c.FS.Lstat(ctx, name); err == nil {
				err = vfs.ErrExist
			} else if errors.Is(err, vfs.ErrNotExist) {
				err = nil
			}
		case isDir:
			fs := c.FS
			fs.Umask |= 0o077
			err = fs.Mkdir(ctx, name, 0o700)
		default:
			var f *treepath.File
			if f, err = c.FS.OpenFile(ctx, name, treepath.Write|treepath.Create|treepath.Exclusive, 0o600); err == nil {
				err = f.Close()
			}
		}
		if errors.Is(err, vfs.ErrExist) {
			continue
		}
		if err != nil {
			return c.Die(1, "failed to create %s via template '%s': %s", what, head+strings.Repeat("X", n)+tail, command.Reason(err))
		}
		_, err = c.Out.WriteString(name + "\n")
		return err
	}
	return c.Die(1, "failed to create %s via template '%s': File exists", what, head+strings.Repeat("X", n)+tail)
}
