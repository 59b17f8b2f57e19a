package js

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"time"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// maxEntries is how many entries of a directory are listed at once.
const maxEntries = 100_000

// errManyEntries is for a directory with more.
var errManyEntries = fmt.Errorf("more than %d entries: %w", maxEntries, vfs.ErrTooBig)

// errCopy is where copyFile was told not to replace.
var errCopy = fmt.Errorf("copy: %w", vfs.ErrExist)

// fileOps are what a module can ask of the tree, by the names that node has for it. The data of an answer is what the
// prelude of package worker makes an answer of.
var fileOps = map[string]func(context.Context, treepath.FS, worker.Call) ([]byte, error){
	worker.OpModule: readFile, "readFile": readFile, "writeFile": writeFile,
	"stat": stat, "lstat": lstat, "readdir": readDir, "mkdir": mkdir, "rm": remove, "rmdir": rmdir, "unlink": unlink,
	"rename": rename, "copyFile": copyFile, "symlink": symlink, "link": link, "readlink": readlink, "realpath": realpath,
	"chmod": chmod, "chown": chown, "lchown": lchown, "truncate": truncate, "utimes": utimes, "lutimes": lutimes, "access": access,
}

func (s *session) file(ctx context.Context, c worker.Call) ([]byte, error) {
	if op := fileOps[c.Op]; op != nil {
		return op(ctx, s.fs, c)
	}
	if op := openOps[c.Op]; op != nil {
		return op(ctx, s, c)
	}
	return nil, fmt.Errorf("%q: %w", c.Op, vfs.ErrNotSupported)
}

func readFile(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return fs.ReadFile(ctx, c.Path, worker.MaxFile)
}

// writeFile writes a file that it opens with the flags of treepath in Offset.
func writeFile(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	f, err := open(ctx, fs, c, treepath.Write)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(c.Data)
	return nil, errors.Join(err, f.Close())
}

// umask is what a module makes files with.
const umask = 0o022

// openFlags are those that a module may use.
const openFlags = treepath.Read | treepath.Write | treepath.Append | treepath.Create | treepath.Exclusive | treepath.Truncate |
	treepath.NoFollow

func open(ctx context.Context, fs treepath.FS, c worker.Call, also treepath.Flag) (*treepath.File, error) {
	return fs.OpenFile(ctx, c.Path, treepath.Flag(c.Offset)&openFlags|also, uint32(c.Number)&^umask&vfs.ModeMask)
}

var typeNames = map[vfs.Type]string{
	vfs.TypeRegular: "file", vfs.TypeDir: "dir", vfs.TypeSymlink: "symlink", vfs.TypeFIFO: "fifo", vfs.TypeSocket: "socket",
	vfs.TypeCharDev: "char", vfs.TypeBlockDev: "block",
}

// typeBits are those of st_mode (inode(7)).
var typeBits = map[vfs.Type]uint32{
	vfs.TypeRegular: 0o100000, vfs.TypeDir: 0o040000, vfs.TypeSymlink: 0o120000, vfs.TypeFIFO: 0o010000, vfs.TypeSocket: 0o140000,
	vfs.TypeCharDev: 0o020000, vfs.TypeBlockDev: 0o060000,
}

// attrJSON is what stat gives. Times are milliseconds.
type attrJSON struct {
	Ino     vfs.Ino `json:"ino"`
	Mode    uint32  `json:"mode"`
	Nlink   uint32  `json:"nlink"`
	UID     uint32  `json:"uid"`
	GID     uint32  `json:"gid"`
	Size    uint64  `json:"size"`
	Blocks  uint64  `json:"blocks"`
	Blksize uint32  `json:"blksize"`
	Atime   float64 `json:"atime"`
	Mtime   float64 `json:"mtime"`
	Ctime   float64 `json:"ctime"`
}

func attr(a vfs.Attr, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(attrJSON{
		Ino: a.Ino, Mode: typeBits[a.Type] | a.Mode, Nlink: a.Nlink, UID: a.UID, GID: a.GID, Size: a.Size,
		Blocks: a.Blocks, Blksize: 4096, Atime: millis(a.Atime), Mtime: millis(a.Mtime), Ctime: millis(a.Ctime),
	})
}

func millis(t vfs.Time) float64 { return float64(t.Go().UnixMicro()) / 1000 }

func stat(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return attr(fs.Stat(ctx, c.Path))
}

func lstat(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return attr(fs.Lstat(ctx, c.Path))
}

// readDir gives names and types. A name that is not UTF-8 has no spelling in JavaScript and is left out, as one that the
// module could only misread.
func readDir(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	entries, err := fs.ReadDirMost(ctx, c.Path, maxEntries)
	if errors.Is(err, vfs.ErrTooBig) {
		return nil, errManyEntries
	}
	if err != nil {
		return nil, err
	}
	list := [][2]string{}
	for _, e := range entries {
		if utf8.ValidString(e.Name) {
			list = append(list, [2]string{e.Name, typeNames[e.Type]})
		}
	}
	b, err := json.Marshal(list)
	if err == nil && len(b) > worker.MaxFile { // what is strange in names is many times as long in JSON
		return nil, errManyEntries
	}
	return b, err
}

func mkdir(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	mode := uint32(c.Number) &^ umask & vfs.ModeMask
	if !c.Flag {
		return nil, fs.Mkdir(ctx, c.Path, mode)
	}
	first := firstMissing(ctx, fs, c.Path)
	return []byte(first), fs.MkdirAll(ctx, c.Path, mode)
}

// firstMissing is the uppermost directory of a path that is not there, which mkdir tells when it makes all of them.
func firstMissing(ctx context.Context, fs treepath.FS, p string) (missing string) {
	for p = path.Clean(p); p != "/" && p != "."; p = path.Dir(p) {
		if _, err := fs.Stat(ctx, p); err == nil {
			break
		}
		missing = p
	}
	return missing
}

func remove(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	a, err := fs.Lstat(ctx, c.Path)
	switch {
	case err != nil:
		return nil, err
	case a.Ino == vfs.RootIno:
		return nil, vfs.ErrBusy // before all that is in it is gone
	case c.Flag:
		return nil, fs.RemoveAll(ctx, c.Path)
	case a.Type == vfs.TypeDir:
		return nil, vfs.ErrIsDir
	}
	return nil, fs.Remove(ctx, c.Path)
}

func rmdir(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	a, err := fs.Lstat(ctx, c.Path)
	if err == nil && a.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return nil, err
	}
	return nil, fs.Remove(ctx, c.Path)
}

func unlink(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	c.Flag = false
	return remove(ctx, fs, c)
}

func rename(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, fs.Rename(ctx, c.Path, c.Path2)
}

// copyFile shares what is stored where the tree can.
func copyFile(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	from, err := fs.Stat(ctx, c.Path)
	if err != nil {
		return nil, err
	}
	if from.Type != vfs.TypeRegular {
		return nil, vfs.ErrIsDir
	}
	to, err := fs.Stat(ctx, c.Path2)
	switch {
	case err == nil && c.Flag:
		return nil, errCopy
	case err == nil && to.Ino == from.Ino:
		return nil, nil
	}
	if err := fs.WriteFile(ctx, c.Path2, nil, from.Mode); err != nil {
		return nil, err
	}
	if to, err = fs.Stat(ctx, c.Path2); err != nil {
		return nil, err
	}
	_, err = fs.Tree.CopyRange(ctx, from.Ino, 0, to.Ino, 0, from.Size)
	return nil, err
}

func symlink(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, fs.Symlink(ctx, c.Path2, c.Path)
}

func link(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, fs.Link(ctx, c.Path, c.Path2)
}

func readlink(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	target, err := fs.Readlink(ctx, c.Path)
	return []byte(target), err
}

func realpath(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	p, err := fs.RealPath(ctx, c.Path)
	return []byte(p), err
}

func chmod(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, fs.Chmod(ctx, c.Path, uint32(c.Number)&vfs.ModeMask)
}

func truncate(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	if c.Number < 0 {
		return nil, vfs.ErrInvalid
	}
	return nil, fs.Truncate(ctx, c.Path, uint64(c.Number))
}

// noOwner leaves an owner as it is.
const noOwner = -1

func chown(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, setOwner(ctx, fs, c, true)
}

func lchown(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, setOwner(ctx, fs, c, false)
}

func setOwner(ctx context.Context, fs treepath.FS, c worker.Call, follow bool) error {
	if c.Number < noOwner || c.Number > math.MaxUint32 || c.Offset < noOwner || c.Offset > math.MaxUint32 {
		return vfs.ErrInvalid
	}
	return fs.Chown(ctx, c.Path, uint32(c.Number), uint32(c.Offset), follow)
}

func utimes(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, setTimes(ctx, fs, c, true)
}

func lutimes(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, setTimes(ctx, fs, c, false)
}

func setTimes(ctx context.Context, fs treepath.FS, c worker.Call, follow bool) error {
	var ms [2]float64
	if err := json.NewDecoder(bytes.NewReader(c.Data)).Decode(&ms); err != nil {
		return fmt.Errorf("times: %w: %w", vfs.ErrInvalid, err)
	}
	var times [2]vfs.Time
	for i, m := range ms {
		if math.Abs(m) > 1<<52 {
			return vfs.ErrInvalid
		}
		times[i] = vfs.TimeOf(time.UnixMicro(int64(m * 1000)))
	}
	return fs.Chtimes(ctx, c.Path, &times[0], &times[1], follow)
}

func access(ctx context.Context, fs treepath.FS, c worker.Call) ([]byte, error) {
	return nil, fs.Access(ctx, c.Path, uint32(c.Number)&7)
}
