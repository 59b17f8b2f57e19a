package vfstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Node is what a snapshot knows of one path: what must be equal in two trees that hold the same.
type Node struct {
	Type    vfs.Type
	Mode    uint32
	Nlink   uint32
	UID     uint32
	GID     uint32
	Rdev    uint32
	Size    uint64 // bytes; zero for a directory, whose size is up to the tree
	Mtime   vfs.Time
	Content [sha256.Size]byte // of a regular file: a hash of its bytes, whether zeros are stored or holes
	Target  string            // of a symlink
	Xattrs  map[string]string
	Link    string // the bytewise lowest path of the same inode: equal for the names of one file
}

// Snapshot returns every path of a tree that stands still, from "/", with what is there. It uses the interface only.
func Snapshot(ctx context.Context, tree vfs.Tree) (map[string]Node, error) {
	return snapshotBelow(ctx, tree, vfs.RootIno)
}

// snapshotBelow is Snapshot of a directory, which "/" then stands for.
func snapshotBelow(ctx context.Context, tree vfs.Tree, dir vfs.Ino) (map[string]Node, error) {
	w := &snapshotter{tree: tree, nodes: make(map[string]Node), inos: make(map[vfs.Ino][]string)}
	if err := w.walk(ctx, "/", dir); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	for _, paths := range w.inos {
		first := slices.Min(paths)
		for _, path := range paths {
			n := w.nodes[path]
			n.Link = first
			w.nodes[path] = n
		}
	}
	return w.nodes, nil
}

type snapshotter struct {
	tree  vfs.Tree
	nodes map[string]Node
	inos  map[vfs.Ino][]string
}

func (w *snapshotter) walk(ctx context.Context, path string, ino vfs.Ino) error {
	n, err := readNode(ctx, w.tree, ino)
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	w.nodes[path] = n
	w.inos[ino] = append(w.inos[ino], path)
	if n.Type != vfs.TypeDir {
		return nil
	}
	entries, err := list(ctx, w.tree, ino, 0)
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	for _, e := range entries {
		child := strings.TrimSuffix(path, "/") + "/" + e.Name
		if _, twice := w.nodes[child]; twice {
			return fmt.Errorf("%q: listed twice", child)
		}
		if err := w.walk(ctx, child, e.Ino); err != nil {
			return err
		}
	}
	return nil
}

// list returns the entries of a directory after an offset.
func list(ctx context.Context, tree vfs.Tree, dir vfs.Ino, after vfs.Offset) ([]vfs.Dirent, error) {
	var entries []vfs.Dirent
	err := tree.ReadDir(ctx, dir, after, func(e vfs.Dirent) bool {
		entries = append(entries, e)
		return true
	})
	return entries, err
}

func readNode(ctx context.Context, tree vfs.Tree, ino vfs.Ino) (Node, error) {
	a, err := tree.Stat(ctx, ino)
	if err != nil {
		return Node{}, err
	}
	n := Node{
		Type: a.Type, Mode: a.Mode, Nlink: a.Nlink, UID: a.UID, GID: a.GID, Rdev: a.Rdev, Size: a.Size, Mtime: a.Mtime,
	}
	if n.Xattrs, err = readXattrs(ctx, tree, ino); err != nil {
		return n, err
	}
	switch a.Type {
	case vfs.TypeDir:
		n.Size = 0
	case vfs.TypeSymlink:
		n.Target, err = tree.Readlink(ctx, ino)
	case vfs.TypeRegular:
		n.Content, err = hashContent(ctx, tree, ino, a.Size)
	}
	return n, err
}

func readXattrs(ctx context.Context, tree vfs.Tree, ino vfs.Ino) (map[string]string, error) {
	names, err := tree.ListXattr(ctx, ino)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	xattrs := make(map[string]string, len(names))
	for _, name := range names {
		value, err := tree.GetXattr(ctx, ino, name)
		if err != nil {
			return nil, err
		}
		xattrs[name] = string(value)
	}
	return xattrs, nil
}

// hashContent returns a hash over the blocks of a file that are not all zeros. A file up to maxFullRead is read whole;
// of a larger one, what Seek calls holes is left out, or a sparse file of tebibytes would never end.
func hashContent(ctx context.Context, tree vfs.Tree, ino vfs.Ino, size uint64) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	block, zeros := dirty(hashBlock), make([]byte, hashBlock)
	for off := uint64(0); off < size; {
		if size > maxFullRead {
			data, err := tree.Seek(ctx, ino, off, vfs.SeekData)
			if errors.Is(err, vfs.ErrNoData) {
				break
			}
			if err != nil {
				return sum, err
			}
			off = data / hashBlock * hashBlock
		}
		n, err := tree.ReadAt(ctx, ino, block, off)
		if err != nil {
			return sum, err
		}
		if want := min(hashBlock, size-off); uint64(n) != want {
			return sum, fmt.Errorf("read %d of %d bytes at %d of inode %d", n, want, off, ino)
		}
		clear(block[n:])
		if !bytes.Equal(block, zeros) {
			h.Write(binary.BigEndian.AppendUint64(nil, off))
			h.Write(block)
		}
		off += hashBlock
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Diff says how two snapshots differ, a line for each path, and "" when they do not. Times are not compared.
func Diff(a, b map[string]Node) string { return diff(a, b, false) }

// DiffTimes is Diff, and compares the mtimes as well.
func DiffTimes(a, b map[string]Node) string { return diff(a, b, true) }

func diff(a, b map[string]Node, times bool) string {
	paths := slices.Sorted(maps.Keys(a))
	for path := range b {
		if _, both := a[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var out strings.Builder
	for _, path := range paths {
		x, inA := a[path]
		y, inB := b[path]
		switch {
		case !inA:
			fmt.Fprintf(&out, "+ %s\n", y.line(path, times))
		case !inB:
			fmt.Fprintf(&out, "- %s\n", x.line(path, times))
		default:
			if before, after := x.line(path, times), y.line(path, times); before != after {
				fmt.Fprintf(&out, "- %s\n+ %s\n", before, after)
			}
		}
	}
	return out.String()
}

// line is n in one line; equal nodes, equal lines.
func (n Node) line(path string, times bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q type=%d mode=%04o nlink=%d owner=%d:%d size=%d",
		path, n.Type, n.Mode, n.Nlink, n.UID, n.GID, n.Size)
	if n.Rdev != 0 {
		fmt.Fprintf(&b, " rdev=%#x", n.Rdev)
	}
	if n.Type == vfs.TypeRegular {
		fmt.Fprintf(&b, " content=%x", n.Content[:8])
	}
	if n.Target != "" {
		fmt.Fprintf(&b, " target=%q", n.Target)
	}
	if n.Link != path {
		fmt.Fprintf(&b, " link=%q", n.Link)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Xattrs)) {
		fmt.Fprintf(&b, " %q=%q", name, n.Xattrs[name])
	}
	if times {
		fmt.Fprintf(&b, " mtime=%d", n.Mtime)
	}
	return b.String()
}

// Dump returns a whole tree as text, a line for each path, in the order of paths.
func Dump(t vfs.Tree) string {
	nodes, err := Snapshot(context.Background(), t)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(nodes)) {
		b.WriteString(nodes[path].line(path, true) + "\n")
	}
	return b.String()
}
