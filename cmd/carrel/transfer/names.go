package transfer

import (
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// join puts a name after a path, either of which may be empty.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "/" + name
}

// parent splits a path before its last name. The root has none.
func parent(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// clean makes a path of the names in a stream's, or fails when it leaves the root or has a name that cannot be.
func clean(path string) (string, error) {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			return "", fmt.Errorf("path %q leaves the tree by \"..\": %w", path, vfs.ErrInvalid)
		}
		if err := vfs.CheckName(name); err != nil {
			return "", fmt.Errorf("path %q: %w", path, err)
		}
		names = append(names, name)
	}
	return strings.Join(names, "/"), nil
}

// keptXattr reports whether an extended attribute belongs to the file and not to the filesystem that it is on.
func keptXattr(name string) bool {
	for _, namespace := range []string{"user.", "trusted.", "security."} {
		if strings.HasPrefix(name, namespace) {
			return true
		}
	}
	return false
}
