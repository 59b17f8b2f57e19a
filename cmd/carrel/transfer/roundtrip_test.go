package transfer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func treeSource(tree vfs.Tree) *transfer.TreeSource {
	return &transfer.TreeSource{Tree: tree, Root: vfs.RootIno}
}

func TestTarRoundTrip(t *testing.T) {
	want := treeOf(t, sample())
	got := treeOf(t, &transfer.TarSource{Reader: bytes.NewReader(tarOf(t, treeSource(want)))})
	same(t, want, got)
}

// toHost writes a tree into a new directory of the host.
func toHost(t *testing.T, from transfer.Source) string {
	t.Helper()
	dir := t.TempDir()
	sink, err := transfer.NewHostSink(dir, func(text string) { t.Errorf("warning: %s", text) })
	if err != nil {
		t.Fatal(err)
	}
	copyTo(t, from, sink)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestHostRoundTrip(t *testing.T) {
	socket := transfer.Entry{Path: "socket", Type: vfs.TypeSocket, Mode: 0o755, Atime: when, Mtime: when}
	nodes := append(sample(), node{Entry: socket})
	want := treeOf(t, nodes)
	dir := toHost(t, treeSource(want))
	same(t, want, treeOf(t, &transfer.HostSource{Path: dir}))
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "sparse"), &st); err != nil {
		t.Fatal(err)
	}
	if st.Blocks*512 > 1<<20 {
		t.Errorf("a sparse file of %d bytes takes %d on the host", st.Size, st.Blocks*512)
	}
}

// Writing again over what is there gives the same tree, and leaves nothing beside it.
func TestOverwrite(t *testing.T) {
	want := treeOf(t, sample())
	got := treeOf(t, sample())
	copyTo(t, treeSource(want), transfer.NewTreeSink(got, vfs.RootIno))
	same(t, want, got)

	dir := toHost(t, treeSource(want))
	sink, err := transfer.NewHostSink(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	copyTo(t, treeSource(want), sink)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, want, treeOf(t, &transfer.HostSource{Path: dir}))
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// GNU tar unpacks what we write, holes and all, and we read what it writes in each of its formats.
func TestGNUTar(t *testing.T) {
	want := treeOf(t, sample())
	stream := filepath.Join(t.TempDir(), "sample.tar")
	if err := os.WriteFile(stream, tarOf(t, treeSource(want)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run(t, "tar", "--extract", "--numeric-owner", "--same-owner", "--preserve-permissions", "--xattrs",
		"--xattrs-include=*",
		"--atime-preserve=system", "--file", stream, "--directory", dir)
	tree := treeOf(t, &transfer.HostSource{Path: dir})
	equal(t, want, tree)

	for _, format := range []string{"pax", "gnu"} {
		packed := filepath.Join(t.TempDir(), format)
		args := []string{"--create", "--numeric-owner", "--sparse", "--format", format, "--file", packed, "--directory",
			dir, "."}
		if format == "pax" {
			args = append([]string{"--xattrs", "--xattrs-include=*"}, args...)
		}
		run(t, "tar", args...)
		f, err := os.Open(packed)
		if err != nil {
			t.Fatal(err)
		}
		got := treeOf(t, &transfer.TarSource{Reader: f})
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if format == "pax" {
			equal(t, want, got)
		} else if n := len(describe(t, got)); n != len(describe(t, want)) {
			t.Errorf("%d nodes in GNU format, want %d", n, len(describe(t, want)))
		}
	}
}

// equal is same without access times, which GNU tar does not restore.
func equal(t *testing.T, want, got vfs.Tree) {
	t.Helper()
	a, errA := vfstest.Snapshot(t.Context(), want)
	b, errB := vfstest.Snapshot(t.Context(), got)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if d := vfstest.DiffTimes(a, b); d != "" {
		t.Errorf("trees differ:\n%s", d)
	}
}

func TestOneFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(file, []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	tree := treeOf(t, &transfer.HostSource{Path: file, As: "renamed"})
	a, err := tree.Lookup(t.Context(), vfs.RootIno, "renamed")
	if err != nil || a.Size != 4 || a.Mode != 0o640 {
		t.Errorf("Lookup = %+v, %v", a, err)
	}
}

func TestProgressAndReport(t *testing.T) {
	want := treeOf(t, sample())
	var last transfer.Report
	r, err := transfer.Copy(t.Context(), treeSource(want), transfer.NewTarSink(new(bytes.Buffer), nil),
		func(r transfer.Report) {
			if r.Bytes < last.Bytes || r.Entries < last.Entries {
				t.Errorf("progress went back from %+v to %+v", last, r)
			}
			last = r
		})
	if err != nil || r != last || r.Entries != uint64(len(sample())) || r.Files != 9 {
		t.Errorf("Copy = %+v, %v; the last progress was %+v", r, err, last)
	}
}

func TestSocketsAreLeftOutOfTar(t *testing.T) {
	var warned []string
	sink := transfer.NewTarSink(new(bytes.Buffer), func(text string) { warned = append(warned, text) })
	copyTo(t, nodes{{Entry: transfer.Entry{Path: "s", Type: vfs.TypeSocket}}}, sink)
	if len(warned) != 1 || !strings.Contains(warned[0], `"s"`) {
		t.Errorf("warnings %q", warned)
	}
}
