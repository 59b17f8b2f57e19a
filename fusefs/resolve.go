package fusefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// subtype is the type of our mounts in mountinfo, after "fuse.".
const subtype = "carrel"

// maxResolve is how many symlinks a path may lead through (path_resolution(7)).
const maxResolve = 40

// Resolve returns where an absolute path leads, without symlinks, for a process that serves mounts: it asks none of them
// for anything on the way, since it might wait for itself, and refuses a path that leads into one with vfs.ErrNotSupported.
// What is mounted meanwhile it does not see.
func Resolve(path string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	real, err := resolveAmong(mountsIn(string(mounts)), path)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return real, nil
}

func resolveAmong(mounts []mountEntry, path string) (string, error) {
	at, links := "/", 0
	for todo := strings.Split(path, "/"); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if ours(mounts, next) {
			return "", fmt.Errorf("%s is in a mounted workspace, into which this process may not look: %w", next, vfs.ErrNotSupported)
		}
		target, err := os.Readlink(next)
		switch {
		case errors.Is(err, unix.EINVAL): // no symlink
			at = next
			continue
		case errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("%w: %w", vfs.ErrNotExist, err)
		case err != nil:
			return "", err
		}
		if links++; links > maxResolve {
			return "", fmt.Errorf("too many symlinks: %w", vfs.ErrInvalid)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at, nil
}

// mountEntry is a line of mountinfo (proc_pid_mountinfo(5)).
type mountEntry struct {
	dir  string
	ours bool
}

func mountsIn(text string) (all []mountEntry) {
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 5 || len(rest) == 0 {
			continue
		}
		dir, err := strconv.Unquote(`"` + strings.ReplaceAll(fields[4], `"`, `\"`) + `"`) // the kernel's escapes are octal
		if err == nil {
			all = append(all, mountEntry{dir, rest[0] == "fuse."+subtype})
		}
	}
	return all
}

// ours reports whether a path is in one of our mounts: the deepest that it is in counts, and of two on one directory the
// later.
func ours(mounts []mountEntry, path string) bool {
	best := mountEntry{}
	for _, m := range mounts {
		if m.dir == "/" || path == m.dir || strings.HasPrefix(path, m.dir+"/") {
			if len(m.dir) >= len(best.dir) {
				best = m
			}
		}
	}
	return best.ours
}
