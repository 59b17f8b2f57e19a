package file

import (
	"context"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// pair is a source and where it is to go.
type pair struct{ from, to string }

// destinations reads the operands of cp, mv and ln: SOURCE DEST, SOURCE... DIRECTORY, or the directory of -t. plain is
// -T: the destination is never a directory to put things into.
func destinations(ctx context.Context, c *tool.Call, operands []string, target string, plain, follow bool) ([]pair, error) {
	switch {
	case len(operands) == 0:
		return nil, c.Usage(1, "missing file operand")
	case target == "" && len(operands) == 1:
		return nil, c.Usage(1, "missing destination file operand after '%s'", operands[0])
	case plain && len(operands) > 2:
		return nil, c.Usage(1, "extra operand '%s'", operands[2])
	}
	given := target != ""
	if !given {
		target = operands[len(operands)-1]
		operands = operands[:len(operands)-1]
	}
	look := c.FS.Stat
	if !follow {
		look = c.FS.Lstat
	}
	a, err := look(ctx, target)
	isDir := err == nil && a.Type == vfs.TypeDir && !plain
	switch {
	case isDir:
	case given:
		if err == nil {
			err = vfs.ErrNotDir
		}
		return nil, c.Die(1, "target directory '%s': %s", target, command.Reason(err))
	case len(operands) > 1:
		if err == nil {
			err = vfs.ErrNotDir
		}
		return nil, c.Die(1, "target '%s': %s", target, command.Reason(err))
	}
	var pairs []pair
	for _, from := range operands {
		to := target
		if isDir {
			to = joinPath(target, path.Base(strings.TrimRight(from, "/")))
		}
		pairs = append(pairs, pair{from, to})
	}
	return pairs, nil
}

func joinPath(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
