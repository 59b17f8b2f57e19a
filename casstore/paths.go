package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// dirName is a name in a directory.
type dirName struct {
	dir  vfs.Ino
	name string
}

// pathFinder finds the names of inodes. A directory's record says which directory it is in; of anything else only the
// entries of directories know. Inodes get numbers in the order in which they are made, so a file's name is looked for
// first in the directories with numbers near its own.
type pathFinder struct {
	r     *reader
	ws    workspaceID
	known map[vfs.Ino]dirName
}

// nearby is how far from the number of an inode its directory is looked for, step by step, before everywhere.
var nearby = [...]vfs.Ino{64, 1 << 10, 16 << 10}

// nameOf returns a name of an inode.
func (p *pathFinder) nameOf(ctx context.Context, ino vfs.Ino, typ vfs.Type) (dirName, error) {
	if n, ok := p.known[ino]; ok {
		return n, nil
	}
	if typ == vfs.TypeDir {
		rec, err := p.r.inode(p.ws, ino)
		if err != nil {
			return dirName{}, err
		}
		return p.search(ctx, ino, vfs.InoRange{First: rec.Parent, Last: rec.Parent})
	}
	for _, far := range nearby {
		n, err := p.search(ctx, ino, vfs.InoRange{First: max(ino, far+1) - far, Last: ino + far})
		if err != nil || n.dir != 0 {
			return n, err
		}
	}
	return p.search(ctx, ino, vfs.AllInos)
}

// search looks for a name of an inode in the directories of a range. The directory is zero when there is none.
func (p *pathFinder) search(ctx context.Context, ino vfs.Ino, in vfs.InoRange) (found dirName, err error) {
	prefix := keyOfNode(keyDirent, p.ws, 0)[:9]
	err = p.r.scan(prefix, keyOfNode(keyDirent, p.ws, in.First), true, func(key, value []byte) (bool, error) {
		if len(key) <= direntLen {
			return false, fmt.Errorf("dirent key %x: %w", key, vfs.ErrCorrupt)
		}
		_, dir := nodeOfKey(key)
		if dir > in.Last || ctx.Err() != nil {
			return false, nil
		}
		rec, err := vfs.DecodeDirent(value)
		if err == nil && rec.Ino == ino {
			found = dirName{dir, string(key[direntLen:])}
		}
		return found.dir == 0, err
	})
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	if err == nil && found.dir != 0 {
		p.known[ino] = found
	}
	return found, err
}

// dir returns the path of a directory: nothing for the root.
func (p *pathFinder) dir(ctx context.Context, ino vfs.Ino) (string, error) {
	path := ""
	for steps := 0; ino != vfs.RootIno; steps++ {
		n, err := p.nameOf(ctx, ino, vfs.TypeDir)
		if err != nil {
			return "", err
		}
		if n.dir == 0 || steps > maxDepth {
			return "", fmt.Errorf("directory %d hangs from nothing: %w", ino, vfs.ErrCorrupt)
		}
		path = "/" + n.name + path
		ino = n.dir
	}
	return path, nil
}
