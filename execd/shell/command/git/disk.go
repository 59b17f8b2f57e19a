package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// disk is a directory of a tree as go-git wants it. Its calls run under ctx, since billy's have none.
type disk struct {
	ctx  context.Context
	fs   treepath.FS
	root string
	rand *rand.Rand

	repository bool // the directory is a repository's: locks in it are nobody's business
}

var (
	_ billy.Filesystem = (*disk)(nil)
	_ billy.Chmod      = (*disk)(nil)
)

// Flags of open(2), as billy passes them on.
const (
	flagWrite     = 0x1
	flagReadWrite = 0x2
	flagCreate    = 0x40
	flagExclusive = 0x80
	flagTruncate  = 0x200
	flagAppend    = 0x400
)

func openFlag(flag int) treepath.Flag {
	f := treepath.Read
	switch {
	case flag&flagReadWrite != 0:
		f |= treepath.Write
	case flag&flagWrite != 0:
		f = treepath.Write
	}
	for bit, as := range map[int]treepath.Flag{
		flagCreate: treepath.Create, flagExclusive: treepath.Exclusive, flagTruncate: treepath.Truncate, flagAppend: treepath.Append,
	} {
		if flag&bit != 0 {
			f |= as
		}
	}
	return f
}

func (d *disk) abs(name string) string { return path.Join(d.root, path.Join("/", name)) }

// failed puts an error into the form in which go-git asks what it is.
func failed(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNotExist), errors.Is(err, vfs.ErrNotDir):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case errors.Is(err, vfs.ErrExist):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrExist}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *disk) Create(name string) (billy.File, error) {
	return d.OpenFile(name, flagReadWrite|flagCreate|flagTruncate, 0o666)
}

func (d *disk) Open(name string) (billy.File, error) { return d.OpenFile(name, 0, 0) }

func (d *disk) OpenFile(name string, flag int, perm fs.FileMode) (billy.File, error) {
	if err := d.readable(name); err != nil {
		return nil, err
	}
	if flag&flagCreate != 0 {
		if err := d.MkdirAll(path.Dir(name), 0o777); err != nil {
			return nil, err
		}
	}
	f, err := d.fs.OpenFile(d.ctx, d.abs(name), openFlag(flag), uint32(perm.Perm()))
	if err != nil {
		return nil, failed("open", name, err)
	}
	return diskFile{f, name}, nil
}

// readable refuses what go-git would read of a repository without a bound: a reference is a line.
func (d *disk) readable(name string) error {
	name = path.Join("/", name)
	if !d.repository || strings.HasPrefix(name, "/objects/") || name == "/index" || name == "/packed-refs" || name == "/shallow" {
		return nil
	}
	if a, err := d.fs.Stat(d.ctx, d.abs(name)); err == nil && a.Size > maxConfig {
		return failed("open", name, vfs.ErrTooBig)
	}
	return nil
}

func (d *disk) Stat(name string) (fs.FileInfo, error) {
	a, err := d.fs.Stat(d.ctx, d.abs(name))
	return info{path.Base(name), a}, failed("stat", name, err)
}

func (d *disk) Lstat(name string) (fs.FileInfo, error) {
	a, err := d.fs.Lstat(d.ctx, d.abs(name))
	return info{path.Base(name), a}, failed("lstat", name, err)
}

func (d *disk) Rename(from, to string) error {
	if err := d.MkdirAll(path.Dir(to), 0o777); err != nil {
		return err
	}
	return failed("rename", from, d.fs.Rename(d.ctx, d.abs(from), d.abs(to)))
}

func (d *disk) Remove(name string) error {
	return failed("remove", name, d.fs.Remove(d.ctx, d.abs(name)))
}

func (d *disk) Join(parts ...string) string { return path.Join(parts...) }

func (d *disk) TempFile(dir, prefix string) (billy.File, error) {
	for {
		name := path.Join(dir, fmt.Sprintf("%s%016x", prefix, d.rand.Uint64()))
		f, err := d.OpenFile(name, flagReadWrite|flagCreate|flagExclusive, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func (d *disk) ReadDir(name string) ([]fs.FileInfo, error) {
	entries, err := d.fs.ReadDir(d.ctx, d.abs(name))
	if err != nil {
		return nil, failed("readdir", name, err)
	}
	list := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if d.repository && strings.HasSuffix(e.Name, lockSuffix) {
			continue // it would be taken for a reference
		}
		if a, err := d.fs.Lstat(d.ctx, path.Join(d.abs(name), e.Name)); err == nil { // gone meanwhile
			list = append(list, info{e.Name, a})
		}
	}
	return list, nil
}

func (d *disk) MkdirAll(name string, perm fs.FileMode) error {
	return failed("mkdir", name, d.fs.MkdirAll(d.ctx, d.abs(name), uint32(perm.Perm())))
}

func (d *disk) Symlink(target, name string) error {
	return failed("symlink", name, d.fs.Symlink(d.ctx, target, d.abs(name)))
}

func (d *disk) Readlink(name string) (string, error) {
	target, err := d.fs.Readlink(d.ctx, d.abs(name))
	return target, failed("readlink", name, err)
}

func (d *disk) Chmod(name string, mode fs.FileMode) error {
	return failed("chmod", name, d.fs.Chmod(d.ctx, d.abs(name), uint32(mode.Perm())))
}

func (d *disk) Chroot(name string) (billy.Filesystem, error) {
	below := *d
	below.root = d.abs(name)
	return &below, nil
}

func (d *disk) Root() string { return d.root }

// diskFile is an open file of a disk.
type diskFile struct {
	*treepath.File
	name string
}

var _ billy.File = diskFile{}

func (f diskFile) Name() string { return f.name }

func (f diskFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Lock does nothing: what must be whole is renamed into place.
func (f diskFile) Lock() error { return nil }

func (f diskFile) Unlock() error { return nil }

func (f diskFile) Truncate(size int64) error { return f.File.Truncate(uint64(size)) }

// info is the attributes of a file.
type info struct {
	name string
	attr vfs.Attr
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(i.attr.Size) }
func (i info) ModTime() time.Time { return i.attr.Mtime.Go() }
func (i info) IsDir() bool        { return i.attr.Type == vfs.TypeDir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	m := fs.FileMode(i.attr.Mode & 0o777)
	switch i.attr.Type {
	case vfs.TypeRegular:
	case vfs.TypeDir:
		m |= fs.ModeDir
	case vfs.TypeSymlink:
		m |= fs.ModeSymlink
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// slash puts a directory's path before a name.
func slash(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}
