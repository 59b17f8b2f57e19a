package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

// randomNodes draws a tree: any bytes in names, any numbers, any runs.
func randomNodes(t *rapid.T) nodes {
	name := rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 120), func(b []byte) string {
		for i := range b {
			if b[i] == '/' || b[i] == 0 || b[i] == '.' {
				b[i] = 0x80
			}
		}
		return string(b)
	})
	dirs := []string{""}
	all := nodes{{Entry: transfer.Entry{Type: vfs.TypeDir, Mode: 0o755}}}
	taken := map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "nodes") {
		dir := rapid.SampledFrom(dirs).Draw(t, "dir")
		n := randomNode(t)
		n.Path = name.Draw(t, "name")
		if dir != "" {
			n.Path = dir + "/" + n.Path
		}
		if taken[n.Path] {
			continue
		}
		taken[n.Path] = true
		if n.Type == vfs.TypeDir {
			dirs = append(dirs, n.Path)
		}
		all = append(all, n)
	}
	return all
}

func randomNode(t *rapid.T) node {
	types := []vfs.Type{vfs.TypeRegular, vfs.TypeRegular, vfs.TypeDir, vfs.TypeSymlink, vfs.TypeFIFO}
	n := node{Entry: transfer.Entry{
		Type:  rapid.SampledFrom(types).Draw(t, "type"),
		Mode:  rapid.Uint32Range(0, vfs.ModeMask).Draw(t, "mode"),
		UID:   rapid.Uint32().Draw(t, "uid"),
		GID:   rapid.Uint32().Draw(t, "gid"),
		Atime: vfs.Time(rapid.Int64().Draw(t, "atime")),
		Mtime: vfs.Time(rapid.Int64().Draw(t, "mtime")),
	}}
	switch n.Type {
	case vfs.TypeSymlink:
		n.Mode, n.Target = 0o777, "target/"+fmt.Sprint(n.UID)
	case vfs.TypeRegular:
		n.runs = []transfer.Run{}
		for range rapid.IntRange(0, 3).Draw(t, "runs") {
			n.Size += 4096 * rapid.Uint64Range(1, 1<<30).Draw(t, "hole")
			run := transfer.Run{Off: n.Size, N: 4096 * rapid.Uint64Range(1, 4).Draw(t, "length")}
			n.runs = append(n.runs, run)
			n.content += string(bytes.Repeat([]byte{rapid.ByteMin(1).Draw(t, "byte")}, int(run.N)))
			n.Size += run.N
		}
		n.Size += 4096 * rapid.Uint64Range(0, 2).Draw(t, "end")
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "attributes") {
		value := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "value")
		n.Xattrs = append(n.Xattrs, transfer.Xattr{Name: fmt.Sprint("user.%=", i), Value: value})
	}
	return n
}

// Any tree comes out of a tar stream as it went in. Files whose holes are too large to be read as zeros in a test keep
// their entry and are compared by it.
func TestRandomTarRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := randomNodes(t)
		var b bytes.Buffer
		if _, err := transfer.Copy(context.Background(), want, transfer.NewTarSink(&b, nil), nil); err != nil {
			t.Fatal(err)
		}
		i := 0
		source := &transfer.TarSource{Reader: &b}
		err := source.Walk(context.Background(), func(got *transfer.Entry, _ transfer.Content) error {
			w := want[i].Entry
			i++
			if fmt.Sprint(sorted(*got)) != fmt.Sprint(sorted(w)) {
				t.Errorf("entry %d is\n%+v, want\n%+v", i, *got, w)
			}
			return nil
		})
		if err != nil || i != len(want) {
			t.Errorf("%d of %d entries, %v", i, len(want), err)
		}
	})
}

// sorted brings the one field without an order into one.
func sorted(e transfer.Entry) transfer.Entry {
	if len(e.Xattrs) == 2 && e.Xattrs[0].Name > e.Xattrs[1].Name {
		e.Xattrs[0], e.Xattrs[1] = e.Xattrs[1], e.Xattrs[0]
	}
	return e
}

// Any tree with its bytes comes out of a tree as it went in.
func TestRandomTreeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		a, b := vfstest.NewTree(), vfstest.NewTree()
		if _, err := transfer.Copy(ctx, randomNodes(t), transfer.NewTreeSink(a, vfs.RootIno), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.Copy(ctx, treeSource(a), transfer.NewTreeSink(b, vfs.RootIno), nil); err != nil {
			t.Fatal(err)
		}
		x, errX := vfstest.Snapshot(ctx, a)
		y, errY := vfstest.Snapshot(ctx, b)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		if d := vfstest.DiffTimes(x, y); d != "" {
			t.Errorf("trees differ:\n%s", d)
		}
	})
}
