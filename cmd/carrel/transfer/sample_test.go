package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

// when is a time with nanoseconds that no clock is about to show.
const when vfs.Time = 1_234_567_890_123_456_789

// memContent is a file in memory.
type memContent struct {
	runs []transfer.Run
	data io.Reader
}

func (c *memContent) Runs(context.Context) ([]transfer.Run, bool, error) { return c.runs, true, nil }
func (c *memContent) Read(p []byte) (int, error)                         { return c.data.Read(p) }

// dense is a file without holes.
func dense(text string) *memContent {
	if text == "" {
		return &memContent{data: strings.NewReader("")}
	}
	return &memContent{[]transfer.Run{{Off: 0, N: uint64(len(text))}}, strings.NewReader(text)}
}

// node is an entry with its content.
type node struct {
	transfer.Entry
	content string // of a regular file without holes
	runs    []transfer.Run
}

// nodes is a source.
type nodes []node

func (n nodes) Walk(_ context.Context, visit func(*transfer.Entry, transfer.Content) error) error {
	for _, x := range n {
		var content transfer.Content
		if x.Type == vfs.TypeRegular && x.Link == "" {
			x.Size = max(x.Size, uint64(len(x.content)))
			content = dense(x.content)
			if x.runs != nil {
				content = &memContent{x.runs, strings.NewReader(x.content)}
			}
		}
		if err := visit(&x.Entry, content); err != nil {
			return err
		}
	}
	return nil
}

// sample has one of everything that is kept.
func sample() nodes {
	entry := func(path string, t vfs.Type, mode uint32, n int) transfer.Entry {
		return transfer.Entry{
			Path: path, Type: t, Mode: mode, UID: 1000 + uint32(n), GID: 3_000_000_000, Atime: when + vfs.Time(n),
			Mtime: when - vfs.Time(n),
		}
	}
	with := func(e transfer.Entry, change func(*transfer.Entry)) transfer.Entry {
		change(&e)
		return e
	}
	long := strings.Repeat("d", 200)
	return nodes{
		{Entry: with(entry("", vfs.TypeDir, 0o751, 1), func(e *transfer.Entry) {
			e.Xattrs = []transfer.Xattr{{Name: "user.root", Value: []byte("r")}}
		})},
		{Entry: entry("sealed", vfs.TypeDir, 0o500, 2)},
		{Entry: entry("sealed/inside", vfs.TypeRegular, 0o400, 3), content: "bytes"},
		{Entry: entry("empty", vfs.TypeRegular, 0o644, 4)},
		{Entry: entry("suid", vfs.TypeRegular, 0o6755, 5), content: "#!"},
		{Entry: entry("sticky", vfs.TypeDir, 0o1777, 6)},
		{Entry: with(entry("attributes", vfs.TypeRegular, 0o600, 7), func(e *transfer.Entry) {
			e.Xattrs = []transfer.Xattr{
				{Name: "security.capability", Value: []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
				{Name: "trusted.t", Value: []byte("t")},
				{Name: "user.a=b%3D", Value: []byte("\x00\n\xff")},
				{Name: "user.empty", Value: nil},
			}
		}), content: "x"},
		{Entry: with(entry("before-1970", vfs.TypeRegular, 0o644, 8), func(e *transfer.Entry) {
			e.Mtime, e.Atime = -1_250_000_001, -1
		})},
		{Entry: entry("name \xff\xfe\n\"quoted\"", vfs.TypeRegular, 0o644, 9), content: strings.Repeat("long\n", 300_000)},
		{Entry: entry(long, vfs.TypeDir, 0o755, 10)},
		{Entry: entry(long+"/"+long, vfs.TypeDir, 0o755, 11)},
		{Entry: entry(long+"/"+long+"/f", vfs.TypeRegular, 0o644, 12), content: "deep"},
		{Entry: transfer.Entry{Path: "hard", Type: vfs.TypeRegular, Link: long + "/" + long + "/f"}},
		{Entry: with(entry("symlink", vfs.TypeSymlink, 0o777, 13), func(e *transfer.Entry) { e.Target = "../\xff/" + long })},
		{Entry: entry("fifo", vfs.TypeFIFO, 0o620, 14)},
		{Entry: with(entry("char", vfs.TypeCharDev, 0o666, 15), func(e *transfer.Entry) {
			e.Rdev = uint32(unix.Mkdev(1, 3))
		})},
		{Entry: with(entry("block", vfs.TypeBlockDev, 0o660, 16), func(e *transfer.Entry) {
			e.Rdev = uint32(unix.Mkdev(259, 70_000))
		})},
		{Entry: with(entry("sparse", vfs.TypeRegular, 0o644, 17), func(e *transfer.Entry) { e.Size = 9 << 30 }),
			content: strings.Repeat("s", 8192) + strings.Repeat("t", 4096),
			runs:    []transfer.Run{{Off: 1 << 20, N: 8192}, {Off: 8 << 30, N: 4096}}},
		{Entry: with(entry("hole", vfs.TypeRegular, 0o644, 18), func(e *transfer.Entry) {
			e.Size = 5 << 20
			e.Xattrs = []transfer.Xattr{{Name: "user.h", Value: []byte("h")}}
		}), runs: []transfer.Run{}},
	}
}

func copyTo(t *testing.T, from transfer.Source, to transfer.Sink) transfer.Report {
	t.Helper()
	r, err := transfer.Copy(t.Context(), from, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// treeOf returns a tree that holds a source's nodes.
func treeOf(t *testing.T, from transfer.Source) *vfstest.Tree {
	t.Helper()
	tree := vfstest.NewTree()
	copyTo(t, from, transfer.NewTreeSink(tree, vfs.RootIno))
	return tree
}

// same reports what differs between two trees: all that vfstest compares, access times, and holes.
func same(t *testing.T, want, got vfs.Tree) {
	t.Helper()
	a, errA := vfstest.Snapshot(t.Context(), want)
	b, errB := vfstest.Snapshot(t.Context(), got)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if d := vfstest.DiffTimes(a, b); d != "" {
		t.Errorf("trees differ:\n%s", d)
	}
	if a, b := describe(t, want), describe(t, got); !slices.Equal(a, b) {
		t.Errorf("access times or holes differ:\n%s\n%s", a, b)
	}
}

// describe gives a line for each file, by the lowest of its names.
func describe(t *testing.T, tree vfs.Tree) []string {
	t.Helper()
	names, rest := map[string]string{}, map[string]string{} // by the first name that the walk met
	source := &transfer.TreeSource{Tree: tree, Root: vfs.RootIno}
	err := source.Walk(t.Context(), func(e *transfer.Entry, c transfer.Content) error {
		if e.Link != "" {
			names[e.Link] = min(names[e.Link], e.Path)
			return nil
		}
		names[e.Path], rest[e.Path] = e.Path, fmt.Sprintf("atime=%d", e.Atime)
		if c == nil {
			return nil
		}
		runs, _, err := c.Runs(t.Context())
		rest[e.Path] += fmt.Sprint(" runs=", runs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for first, name := range names {
		lines = append(lines, fmt.Sprintf("%q %s\n", name, rest[first]))
	}
	slices.Sort(lines)
	return lines
}

func tarOf(t *testing.T, from transfer.Source) []byte {
	t.Helper()
	var b bytes.Buffer
	copyTo(t, from, transfer.NewTarSink(&b, nil))
	return b.Bytes()
}
