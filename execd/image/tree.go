package image

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// tree is a root filesystem that is being made.
type tree struct {
	root   *os.Root
	left   *bounds
	closed map[string]fs.FileMode // modes of directories that keep out their owner, who is to work in them
}

// resolve returns the name, without symlinks before its last element, of what an archive calls so. Directories that it needs
// are made. A slash at the beginning means the root: some builders write one.
func (t *tree) resolve(name string) (string, error) {
	todo, err := elements(name)
	if err != nil {
		return "", err
	}
	at, links := ".", 0
	for i := 0; i < len(todo); i++ {
		switch todo[i] {
		case "", ".":
			continue
		case "..": // of a symlink
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, todo[i])
		switch {
		case len(todo[i]) > maxElement || strings.Count(next, "/") >= maxNesting:
			return "", fmt.Errorf("%.20q: %w", next, vfs.ErrNameTooLong)
		case i == len(todo)-1:
			return next, nil
		}
		target, err := t.enter(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many symlinks: %w", vfs.ErrInvalid)
		}
		if strings.HasPrefix(target, "/") {
			at = "."
		}
		todo = append(strings.Split(target, "/"), todo[i+1:]...)
		i = -1
	}
	return at, nil
}

// elements takes a name of an archive apart.
func elements(name string) ([]string, error) {
	switch {
	case len(name) > maxName:
		return nil, fmt.Errorf("%.20q: %w", name, vfs.ErrNameTooLong)
	case name == "" || strings.IndexByte(name, 0) >= 0:
		return nil, fmt.Errorf("a name %q: %w", name, vfs.ErrInvalid)
	}
	list := strings.Split(name, "/")
	if slices.Contains(list, "..") {
		return nil, fmt.Errorf("%q leads out of the image: %w", name, vfs.ErrInvalid)
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" || s == "." })
	if len(list) > maxNesting {
		return nil, fmt.Errorf("%.20q: %w", name, vfs.ErrNameTooLong)
	}
	return list, nil
}

// enter makes a directory on the way unless there is one, or returns where a symlink leads.
func (t *tree) enter(name string) (target string, err error) {
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.left.takeEntry(name); err != nil {
			return "", err
		}
		return "", t.mkdir(name)
	case err != nil:
		return "", err
	case info.Mode().Type() == fs.ModeSymlink:
		return t.root.Readlink(name)
	case !info.IsDir():
		return "", fmt.Errorf("%s: %w", name, vfs.ErrNotDir)
	}
	return "", nil
}

func (t *tree) mkdir(name string) error {
	delete(t.closed, name) // of one that was there before
	return t.root.Mkdir(name, 0o755)
}

// chmodDir gives a directory its mode, or one with which its owner can still work in it until close.
func (t *tree) chmodDir(name string, mode fs.FileMode) error {
	const owner = 0o700
	if os.Geteuid() != 0 && mode&owner != owner {
		t.closed[name] = mode
	} else {
		delete(t.closed, name)
	}
	if os.Geteuid() != 0 {
		mode |= owner
	}
	return t.root.Chmod(name, mode)
}

// close gives directories the modes that were put off, those that are in others first.
func (t *tree) close() error {
	names := slices.Sorted(maps.Keys(t.closed))
	for _, name := range slices.Backward(names) {
		info, err := t.root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue // a later layer has put something else in its place
		}
		if err := t.root.Chmod(name, t.closed[name]); err != nil {
			return err
		}
	}
	return nil
}
