package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/fusefs"
)

// CheckPoint says why no workspace of the store in store can be mounted on dir. Both are absolute and without symlinks;
// a dir that is not there can be made, and a dead mount on it is no obstacle. Errors are *fusefs.MountError.
func CheckPoint(store, dir string) error {
	bad := func(err error, advice string) error {
		return &fusefs.MountError{Op: "mount", Dir: dir, Err: err, Advice: advice}
	}
	switch {
	case within(dir, store):
		return bad(fmt.Errorf("it is inside the store %s: %w", store, vfs.ErrInvalid), "mount outside of the store")
	case within(store, dir):
		err := fmt.Errorf("the store %s is inside it: %w", store, vfs.ErrInvalid)
		return bad(err, "the mount would hide the store; mount on another directory")
	}
	entries, err := Entries()
	if err != nil {
		return bad(err, "")
	}
	top, mounted := topmost(entries, dir)
	if mounted && top.Ours() {
		return checkMounted(top, dir, bad)
	}
	for _, e := range entries {
		if _, its := e.Workspace(); e.Ours() && its == store && within(dir, e.Dir) {
			// The daemon would have to open a path that it serves itself.
			err := fmt.Errorf("it is inside the mount %s of the same store: %w", e.Dir, vfs.ErrInvalid)
			return bad(err, "mount outside of it")
		}
	}
	return checkEmpty(dir, bad)
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// checkMounted is about a directory that a workspace is mounted on: it must not be opened, its daemon may hang.
func checkMounted(e Entry, dir string, bad func(error, string) error) error {
	if dead, err := fusefs.IsDead(dir); err == nil && dead {
		return nil
	}
	workspace, _ := e.Workspace()
	return bad(fmt.Errorf("workspace %q is mounted there: %w", workspace, vfs.ErrBusy), "'carrel umount "+dir+"' first")
}

func checkEmpty(dir string, bad func(error, string) error) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return bad(vfs.ErrNotDir, "name a directory, or one that is not there yet")
	case err != nil:
		return bad(err, "")
	}
	defer f.Close() // only read
	_, err = f.Readdirnames(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return bad(err, "")
	}
	return bad(vfs.ErrNotEmpty, "what is in it would be hidden; name an empty directory, or one that is not there yet")
}
