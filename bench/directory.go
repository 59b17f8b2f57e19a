package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// directory is a target that is there already: a fresh directory inside of another.
type directory struct {
	plain
	name, parent string // parent is empty for the local disk, where this package works anyway
	made         string
}

// Disk returns the local disk as a target, by the name of its filesystem: the disk that the stores are on, in work.
func Disk(work string) Target { return &directory{name: filesystemOf(work)} }

// Directory returns a directory as a target. The runs have a directory of their own inside of it, which is removed in
// the end. An empty name is that of its filesystem.
func Directory(name, dir string) (Target, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = filesystemOf(dir)
	}
	return &directory{name: name, parent: dir}, nil
}

func (d *directory) Name() string { return d.name }

func (d *directory) Open(_ context.Context, base string) (dir string, err error) {
	if d.parent == "" {
		d.made = base
		return base, nil
	}
	d.made, err = os.MkdirTemp(d.parent, workPrefix)
	return d.made, err
}

func (d *directory) Close() error {
	if d.made == "" {
		return nil
	}
	dir := d.made
	d.made = ""
	return os.RemoveAll(dir)
}

func (d *directory) Describe() TargetInfo {
	return TargetInfo{Name: d.name, Kind: "directory", Filesystem: filesystemOf(d.made)}
}

// tmpfs is a target that is mounted for the runs.
type tmpfs struct {
	plain
	dir string
}

// Tmpfs returns a tmpfs of its own as a target. Only root can open it.
func Tmpfs() Target { return &tmpfs{} }

func (t *tmpfs) Name() string { return "tmpfs" }

func (t *tmpfs) Open(_ context.Context, base string) (string, error) {
	if err := unix.Mount("carrel-bench", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return "", fmt.Errorf("mount a tmpfs on %s: %w (only root can; name a directory like /dev/shm)", base, err)
	}
	t.dir = base
	return base, nil
}

// Settle has nothing to wait for: a tmpfs is never written anywhere.
func (t *tmpfs) Settle(context.Context) (bool, error) { return true, nil }

func (t *tmpfs) Close() error {
	if t.dir == "" {
		return nil
	}
	dir := t.dir
	t.dir = ""
	return unmount(dir)
}

func (t *tmpfs) Describe() TargetInfo {
	return TargetInfo{Name: "tmpfs", Kind: "tmpfs", Filesystem: "tmpfs"}
}

// unmount takes a mount away, busy or not.
func unmount(dir string) error {
	err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
