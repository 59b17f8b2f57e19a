package container

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
)

// missing reports whether the program of a command is nowhere that its PATH leads to. It is asked of what a runtime could not start,
// which tells nobody why but in words, and in doubt says that it is there. The root is that of the container, "" for the host's.
func missing(root string, j execd.Job) bool {
	name, cwd := j.Args[0], path.Join(workspaceDir, j.Dir)
	paths := []string{name}
	if !strings.Contains(name, "/") {
		paths = nil
		for _, e := range environment(j.Env, cwd, false) {
			if list, ok := strings.CutPrefix(e, "PATH="); ok {
				paths = filepath.SplitList(list)
			}
		}
		for i, dir := range paths {
			paths[i] = path.Join(dir, name)
		}
	}
	return !slices.ContainsFunc(paths, func(p string) bool {
		if !path.IsAbs(p) {
			p = path.Join(cwd, p)
		}
		return present(root, p, j.Tree)
	})
}

// present reports whether there is something at a path of a container. What of it is mounted elsewhere is not looked at: it may be
// a mount of this process.
func present(root, p string, tree vfs.Tree) bool {
	if inside, ok := strings.CutPrefix(p, workspaceDir+"/"); ok {
		if tree == nil {
			return true
		}
		_, err := treepath.FS{Tree: tree}.Lstat(context.Background(), "/"+inside)
		return !errors.Is(err, vfs.ErrNotExist) && !errors.Is(err, vfs.ErrNotDir)
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if root == "" {
		if root = "/"; !slices.Contains(hostDirs, top) {
			return false
		}
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(dir) // an O_PATH descriptor has nothing to lose
	fd, err := unix.Openat2(dir, p, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err == nil {
		_ = unix.Close(fd) // likewise
	}
	return !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR)
}
