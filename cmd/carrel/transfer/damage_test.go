package transfer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func readFile(t *testing.T, tree vfs.Tree, name string) string {
	t.Helper()
	a, err := tree.Lookup(t.Context(), vfs.RootIno, name)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, a.Size)
	if _, err := tree.ReadAt(t.Context(), a.Ino, p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func names(t *testing.T, tree vfs.Tree) string {
	t.Helper()
	var names []string
	err := tree.ReadDir(t.Context(), vfs.RootIno, 0, func(d vfs.Dirent) bool {
		names = append(names, d.Name)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// A stream that is cut anywhere is an error, and what was there is there.
func TestTruncatedTar(t *testing.T) {
	whole := tarOf(t, nodes{
		{Entry: transfer.Entry{Path: "first", Type: vfs.TypeRegular, Mode: 0o644}, content: strings.Repeat("1", 700)},
		{Entry: transfer.Entry{Path: "kept", Type: vfs.TypeRegular, Mode: 0o644}, content: strings.Repeat("2", 1500)},
	})
	end := len(whole) - 1024 // the end mark is two blocks of zeros, and one is enough
	for n := 0; n < end+512; n += 64 {
		tree := treeOf(t, nodes{{Entry: transfer.Entry{Path: "kept", Type: vfs.TypeRegular}, content: "old"}})
		source := &transfer.TarSource{Reader: bytes.NewReader(whole[:n])}
		_, err := transfer.Copy(t.Context(), source, transfer.NewTreeSink(tree, vfs.RootIno), nil)
		if !errors.Is(err, transfer.ErrTruncated) && !(n < 512 && errors.Is(err, transfer.ErrNotTar)) {
			t.Fatalf("%d of %d bytes: %v, want ErrTruncated", n, len(whole), err)
		}
		if got := readFile(t, tree, "kept"); got != "old" && got != strings.Repeat("2", 1500) {
			t.Fatalf("%d of %d bytes: the old file is now %q", n, len(whole), got)
		}
		if got := names(t, tree); got != "kept" && got != "kept first" {
			t.Fatalf("%d of %d bytes: names %q", n, len(whole), got)
		}
	}
}

func TestNotTar(t *testing.T) {
	for text, hint := range map[string]string{
		"\x1f\x8b" + strings.Repeat("z", 600): "gzip -dc",
		strings.Repeat("hello\n", 200):        "",
		"short":                               "5 bytes",
	} {
		err := (&transfer.TarSource{Reader: strings.NewReader(text)}).Walk(t.Context(), nil)
		if !errors.Is(err, transfer.ErrNotTar) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%.10q: %v, want ErrNotTar with %q", text, err, hint)
		}
	}
}

// rawTar writes headers as they are.
func rawTar(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestHostileTar(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	symlink := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	tests := map[string]struct {
		headers []tar.Header
		want    error
	}{
		"up":               {[]tar.Header{file("a/../../x")}, vfs.ErrInvalid},
		"absolute":         {[]tar.Header{file("/x")}, nil},
		"through symlink":  {[]tar.Header{symlink("out", "../../../"), file("out/x")}, nil},
		"long name":        {[]tar.Header{file(strings.Repeat("n", 256))}, vfs.ErrNameTooLong},
		"device":           {[]tar.Header{{Typeflag: tar.TypeChar, Name: "d", Devmajor: 5000}}, vfs.ErrInvalid},
		"link to nothing":  {[]tar.Header{{Typeflag: tar.TypeLink, Name: "l", Linkname: "none"}}, vfs.ErrNotExist},
		"link to outside":  {[]tar.Header{{Typeflag: tar.TypeLink, Name: "l", Linkname: "../secret"}}, vfs.ErrInvalid},
		"link to root":     {[]tar.Header{{Typeflag: tar.TypeLink, Name: "l", Linkname: "/"}}, vfs.ErrInvalid},
		"file in a file":   {[]tar.Header{file("f"), file("f/x")}, vfs.ErrNotDir},
		"file over a dir":  {[]tar.Header{file("dir")}, vfs.ErrIsDir},
		"dir over a file":  {[]tar.Header{file("f"), {Typeflag: tar.TypeDir, Name: "f/"}}, vfs.ErrNotDir},
		"symlink to empty": {[]tar.Header{symlink("s", "")}, vfs.ErrInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree := vfstest.NewTree()
			in, err := tree.Mkdir(t.Context(), vfs.RootIno, "in", vfs.NewNode{Mode: 0o755})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Mkdir(t.Context(), in.Ino, "dir", vfs.NewNode{Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
			source := &transfer.TarSource{Reader: rawTar(t, tt.headers...)}
			_, err = transfer.Copy(t.Context(), source, transfer.NewTreeSink(tree, in.Ino), nil)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if got := names(t, tree); got != "in" {
				t.Errorf("outside of the root there is %q now", got)
			}
		})
	}
}

// A file that is too large is refused before any of its bytes is read.
func TestTooLarge(t *testing.T) {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: vfs.MaxFileSize +
		1}); err != nil {
		t.Fatal(err)
	}
	tree := vfstest.NewTree()
	_, err := transfer.Copy(t.Context(), &transfer.TarSource{Reader: &b}, transfer.NewTreeSink(tree, vfs.RootIno), nil)
	if !errors.Is(err, vfs.ErrTooBig) {
		t.Errorf("Copy = %v, want ErrTooBig", err)
	}
	if got := names(t, tree); got != "" {
		t.Errorf("the tree has %q", got)
	}
}

var errDisk = errors.New("the disk is broken")

// A source that fails in the middle of a file leaves the old one, and no leftovers.
func TestFailingContent(t *testing.T) {
	for _, name := range []string{"old", "new"} {
		tree := treeOf(t, nodes{{Entry: transfer.Entry{Path: "old", Type: vfs.TypeRegular}, content: "old"}})
		sink := transfer.NewTreeSink(tree, vfs.RootIno)
		e := &transfer.Entry{Path: name, Type: vfs.TypeRegular, Size: 100}
		content := &memContent{[]transfer.Run{{Off: 0, N: 100}}, io.MultiReader(strings.NewReader("part"), failing{})}
		if err := sink.Put(t.Context(), e, content); !errors.Is(err, errDisk) {
			t.Errorf("Put = %v", err)
		}
		if got := names(t, tree) + " " + readFile(t, tree, "old"); got != "old old" {
			t.Errorf("the tree now has %q", got)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := transfer.Copy(ctx, treeSource(treeOf(t, sample())), transfer.NewTarSink(io.Discard, nil), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Copy = %v, want Canceled", err)
	}
}

// Whatever bytes come in, there is an answer, and the tree stays whole.
func FuzzTar(f *testing.F) {
	var b bytes.Buffer
	sink := transfer.NewTarSink(&b, nil)
	seed := nodes{
		{Entry: transfer.Entry{Path: "d", Type: vfs.TypeDir, Mode: 0o755}},
		{Entry: transfer.Entry{Path: "d/f", Type: vfs.TypeRegular, Xattrs: []transfer.Xattr{{Name: "user.a",
			Value: []byte("v")}}}, content: "bytes"},
		{Entry: transfer.Entry{Path: "d/hard", Type: vfs.TypeRegular, Link: "d/f"}},
		{Entry: transfer.Entry{Path: "s", Type: vfs.TypeRegular, Size: 16 << 10}, content: "x",
			runs: []transfer.Run{{Off: 4096, N: 1}}},
	}
	if _, err := transfer.Copy(context.Background(), seed, sink, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // a hole of terabytes is read as zeros
		defer cancel()
		tree := vfstest.NewTree()
		source := &transfer.TarSource{Reader: bytes.NewReader(stream)}
		_, err := transfer.Copy(ctx, source, transfer.NewTreeSink(tree, vfs.RootIno), nil)
		if err == nil && len(stream) < 512 {
			t.Errorf("%d bytes are taken for a whole tar stream", len(stream))
		}
		if err := vfstest.Audit(t.Context(), tree); err != nil {
			t.Error(err)
		}
	})
}
