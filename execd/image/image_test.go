package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// entries is an archive of what headers describe; the files have their names as bytes.
func entries(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		var body []byte
		if h.Typeflag == tar.TypeReg {
			body = []byte(h.Name)
			h.Size = int64(len(body))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		h.Uid, h.Gid = os.Geteuid(), os.Getegid()
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
func dir(name string) tar.Header  { return tar.Header{Typeflag: tar.TypeDir, Name: name} }
func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}
func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// layout is an image, as files by their names.
type layout map[string][]byte

func (l layout) blob(b []byte) descriptor {
	d := descriptor{Digest: digestOf(b), Size: int64(len(b))}
	l["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")] = b
	return d
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newLayout makes an image of layers, which are compressed in turns.
func newLayout(t *testing.T, layers ...[]byte) layout {
	t.Helper()
	l := layout{layoutFile: []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	var m document
	c := config{OS: "linux", Architecture: runtime.GOARCH}
	c.Config.Env = []string{"A=of the image"}
	for i, b := range layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, digestOf(b))
		switch i % 3 {
		case 1:
			b = gzipped(t, b)
		case 2:
			b = zstandard(t, b)
		}
		m.Layers = append(m.Layers, l.blob(b))
	}
	of := l.blob(marshal(t, c))
	m.Config = &of
	inner := document{Manifests: []descriptor{l.blob(marshal(t, m))}}
	l["index.json"] = marshal(t, document{Manifests: []descriptor{l.blob(marshal(t, inner))}})
	return l
}

// write writes the image as a directory.
func (l layout) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range l {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// archive writes it as a tarball.
func (l layout) archive(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for name, b := range l {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Size: int64(len(b)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// newCache is a cache of nothing.
func newCache(t *testing.T) *Cache {
	t.Helper()
	c := Open(Config{Dir: filepath.Join(t.TempDir(), "images")})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// left are the names in a cache.
func (c *Cache) left(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(c.config.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// list lists what is in a directory: files with their bytes, symlinks with their targets.
func list(t *testing.T, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case e.IsDir():
			got[name] = "/"
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		default:
			b, err := os.ReadFile(path)
			got[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func equal(a, b map[string]string) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return len(a) == len(b)
}

// Layers are put on each other, whatever they are compressed with and wherever the image lies, once.
func TestUnpack(t *testing.T) {
	old := tar.Header{Typeflag: tar.TypeReg, Name: "etc/old", Mode: 0o4640, ModTime: time.Unix(1e9, 0)}
	closed := tar.Header{Typeflag: tar.TypeDir, Name: "closed", Mode: 0o500, ModTime: time.Unix(2e9, 0)}
	l := newLayout(t,
		entries(t, dir("./"), dir("usr/"), dir("usr/lib/"), symlink("lib", "usr/lib"), symlink("var", "/srv/data"), old, closed,
			file("closed/in"), file("gone/a"), file("gone/b"), file("opaque/a"), file("opaque/sub/a"), file("kept"), file("dir/x"), file("x")),
		entries(t, file("lib/one"), file("var/two"), file(".wh.gone"), file("opaque/sub/b"), file("opaque/.wh..wh..opq"), file("opaque/c"),
			link("same", "kept"), file("dir"), dir("x"), file("...")),
		entries(t, file("gone/new"), tar.Header{Typeflag: tar.TypeChar, Name: "dev/null", Devmajor: 1, Devminor: 3},
			tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"}),
	)
	want := map[string]string{
		"usr": "/", "usr/lib": "/", "lib": "-> usr/lib", "usr/lib/one": "lib/one", "var": "-> /srv/data", "srv": "/", "srv/data": "/",
		"srv/data/two": "var/two", "etc": "/", "etc/old": "etc/old", "closed": "/", "closed/in": "closed/in", "gone": "/",
		"gone/new": "gone/new", "opaque": "/", "opaque/sub": "/", "opaque/sub/b": "opaque/sub/b", "opaque/c": "opaque/c",
		"kept": "kept", "same": "kept", "dir": "dir", "x": "/", "...": "...",
	}
	c := newCache(t)
	directory := l.write(t)
	im, err := c.Unpack(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	if got := list(t, im.Root); !equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if len(im.Env) != 1 || im.Env[0] != "A=of the image" || !Is(directory) {
		t.Errorf("%q", im.Env)
	}
	for name, want := range map[string]tar.Header{"etc/old": old, "closed": closed} {
		info, err := os.Stat(filepath.Join(im.Root, name))
		if err != nil || info.Mode()&^fs.ModeDir != fs.FileMode(want.Mode&0o777) || !info.ModTime().Equal(want.ModTime) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	mark := filepath.Join(im.Root, "mark")
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := c.Unpack(t.Context(), l.archive(t))
	if _, missing := os.Stat(mark); err != nil || again.Root != im.Root || missing != nil {
		t.Errorf("a second time: %+v, %v, %v", again, err, missing)
	}
}

// What docker save writes is an image too.
func TestUnpackSaved(t *testing.T) {
	layer := entries(t, file("a"))
	c := config{OS: "linux", Architecture: runtime.GOARCH}
	c.RootFS.DiffIDs = []string{digestOf(layer)}
	l := layout{
		"manifest.json": []byte(`[{"Config":"c.json","RepoTags":null,"Layers":["1/layer.tar"]}]`),
		"c.json":        marshal(t, c), "1/layer.tar": layer,
	}
	im, err := newCache(t).Unpack(t.Context(), l.archive(t))
	if err != nil || !equal(list(t, im.Root), map[string]string{"a": "a"}) {
		t.Errorf("%+v, %v", im, err)
	}
}

// In a tarball a blob can have other names, which lead nowhere else.
func TestTarballLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.tar")
	archive := entries(t, file("a/layer.tar"), symlink("b/layer.tar", "../a/layer.tar"), link("c/layer.tar", "b/layer.tar"),
		symlink("out", "../../../../../../../../../../etc/passwd"), symlink("loop", "loop"), file(strings.Repeat("x", maxBlobName+1)))
	if err := os.WriteFile(path, archive, 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/layer.tar", "./b/layer.tar", "c/layer.tar"} {
		if b, err := readDocument(from, name); string(b) != "a/layer.tar" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"out", "loop", "none", "/etc/passwd", strings.Repeat("x", maxBlobName+1)} {
		if _, err := readDocument(from, name); !errors.Is(err, vfs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
}

// Archives that mean harm are refused, and nothing of theirs stays: not here, and not elsewhere.
func TestHostileLayers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	up := strings.Repeat("../", 40)
	var long [40]tar.Header
	for i := range long {
		long[i] = file(fmt.Sprint(i) + strings.Repeat("/"+strings.Repeat("n", 200), 2))
		long[i].Typeflag = tar.TypeFifo // not even made
	}
	many := make([]tar.Header, 60)
	for i := range many {
		many[i] = file(strings.Repeat("x", i+1))
	}
	for _, tt := range []struct {
		name   string
		layers [][]byte
		err    error // nil when it does no harm and is unpacked
	}{
		{"dots", [][]byte{entries(t, file("../outside"))}, vfs.ErrInvalid},
		{"dots inside", [][]byte{entries(t, file("a/../../outside"))}, vfs.ErrInvalid},
		{"absolute", [][]byte{entries(t, file(outside))}, nil},
		{"an owner that is none", [][]byte{owned(t, -2)}, vfs.ErrInvalid},
		{"an owner that would wrap around", [][]byte{owned(t, 1<<32)}, vfs.ErrInvalid},
		{"a symlink to nothing", [][]byte{entries(t, symlink("a", ""))}, vfs.ErrInvalid},
		{"a long element", [][]byte{entries(t, file(strings.Repeat("x", 300)))}, vfs.ErrNameTooLong},
		{"deep directories", [][]byte{entries(t, file(strings.Repeat("a/", 300)+"x"))}, vfs.ErrNameTooLong},
		{"deep directories through symlinks", [][]byte{entries(t, symlink("a", strings.Repeat("b/", 300)), file("a/x"))}, vfs.ErrTooBig},
		{"directories that no archive names", [][]byte{entries(t, file(strings.Repeat("a/", 60)+"x"))}, vfs.ErrTooBig},
		{"names without end", [][]byte{entries(t, long[:]...)}, vfs.ErrTooBig},
		{"headers without end", [][]byte{endless(t)}, vfs.ErrTooBig},
		{"a symlink out, and through it", [][]byte{entries(t, symlink("a", filepath.Dir(outside)), file("a/outside"))}, nil},
		{"a relative symlink out, and through it", [][]byte{entries(t, symlink("a", up+filepath.Dir(outside)), file("a/outside"))}, nil},
		{"through a symlink of a lower layer", [][]byte{entries(t, symlink("a", filepath.Dir(outside))), entries(t, file("a/outside"))}, nil},
		{"over a symlink out", [][]byte{entries(t, symlink("a", outside), file("a"))}, nil},
		{"a directory over a symlink out", [][]byte{entries(t, symlink("a", filepath.Dir(outside)), dir("a"), file("a/outside"))}, nil},
		{"symlinks in a circle", [][]byte{entries(t, symlink("a", "b"), symlink("b", "a"), file("a/x"))}, vfs.ErrInvalid},
		{"a hard link out", [][]byte{entries(t, link("a", "../../../../etc/passwd"))}, vfs.ErrInvalid},
		{"an absolute hard link", [][]byte{entries(t, link("a", "/etc/passwd"))}, vfs.ErrInvalid},
		{"a hard link through a symlink", [][]byte{entries(t, symlink("e", "/etc"), link("a", "e/passwd"))}, vfs.ErrInvalid},
		{"a hard link to a symlink out, and over it", [][]byte{entries(t, symlink("s", outside), link("a", "s"), file("a"))}, nil},
		{"a hard link to itself", [][]byte{entries(t, file("a"), link("a", "a"))}, vfs.ErrInvalid},
		{"a hard link to a directory", [][]byte{entries(t, dir("d"), link("a", "d"))}, vfs.ErrInvalid},
		{"the root as a symlink", [][]byte{entries(t, symlink(".", filepath.Dir(outside)), file("outside"))}, vfs.ErrInvalid},
		{"a file as a directory", [][]byte{entries(t, file("a"), file("a/b"))}, vfs.ErrNotDir},
		{"hiding the parent", [][]byte{entries(t, file(".wh..."))}, vfs.ErrInvalid},
		{"hiding the directory itself", [][]byte{entries(t, file("a/.wh.."))}, vfs.ErrInvalid},
		{"hiding nothing", [][]byte{entries(t, file(".wh."))}, vfs.ErrInvalid},
		{"hiding through a symlink", [][]byte{entries(t, symlink("a", filepath.Dir(outside)), file("a/.wh.victim"))}, nil},
		{"everything through a symlink", [][]byte{entries(t, symlink("a", filepath.Dir(outside)), file("a/.wh..wh..opq"))}, nil},
		{"devices", [][]byte{entries(t, tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8})}, nil},
		{"a long name", [][]byte{entries(t, file(strings.Repeat("a/", 3000)+"x"))}, vfs.ErrNameTooLong},
		{"many files", [][]byte{entries(t, many...)}, vfs.ErrTooBig},
		{"many files in layers", [][]byte{entries(t, many[:30]...), entries(t, many[30:]...)}, vfs.ErrTooBig},
		{"a huge file", [][]byte{huge(t)}, vfs.ErrTooBig},
		{"half an archive", [][]byte{entries(t, file("a"))[:300]}, vfs.ErrInvalid},
		{"no archive", [][]byte{bytes.Repeat([]byte("x"), 2000)}, vfs.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			victim := filepath.Join(filepath.Dir(outside), "victim")
			if err := os.WriteFile(victim, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			c := newCache(t)
			c.bounds.entries, c.bounds.names, c.bounds.bytes = 50, 10_000, 1<<20
			im, err := c.Unpack(t.Context(), newLayout(t, tt.layers...).write(t))
			if !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if left := c.left(t); tt.err != nil && len(left) != 0 {
				t.Errorf("in the cache: %v", left)
			}
			if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("outside: %v", err)
			}
			if _, err := os.Lstat(victim); err != nil {
				t.Error(err)
			}
			if tt.name == "devices" && len(list(t, im.Root)) != 0 {
				t.Error("a device was made")
			}
		})
	}
}

// huge is an archive with a sparse file of many bytes that takes none.
func huge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// owned is an archive with a file of an owner.
func owned(t *testing.T, uid int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Uid: uid, Format: tar.FormatGNU}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// endless is an archive of headers that belong to no file.
func endless(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	records := map[string]string{"comment": strings.Repeat("x", 1<<19)}
	for range 8 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: records}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What has other bytes than its digest says is not used, and neither is an image that is incomplete or for another machine.
func TestDamagedImages(t *testing.T) {
	good := func() layout { return newLayout(t, entries(t, file("a"))) }
	for _, tt := range []struct {
		name   string
		change func(layout)
		err    error
	}{
		{"another layer", func(l layout) {
			for name, b := range l {
				if bytes.HasPrefix(b, []byte("a\x00")) {
					l[name] = entries(t, file("b"))
				}
			}
		}, vfs.ErrCorrupt},
		{"bytes after the layer", func(l layout) {
			for name, b := range l {
				if bytes.HasPrefix(b, []byte("a\x00")) {
					l[name] = append(b, 'x')
				}
			}
		}, vfs.ErrCorrupt},
		{"a document changed", func(l layout) {
			for name, b := range l {
				if bytes.Contains(b, []byte("of the image")) {
					l[name] = append(b, ' ')
				}
			}
		}, vfs.ErrCorrupt},
		{"no blobs", func(l layout) {
			for name := range l {
				if strings.HasPrefix(name, "blobs") {
					delete(l, name)
				}
			}
		}, vfs.ErrNotExist},
		{"no index", func(l layout) { delete(l, "index.json") }, vfs.ErrNotExist},
		{"no JSON", func(l layout) { l["index.json"] = []byte("x") }, vfs.ErrInvalid},
		{"no manifests", func(l layout) { l["index.json"] = []byte("{}") }, vfs.ErrNotSupported},
		{"a digest that is a path", func(l layout) {
			l["index.json"] = []byte(`{"manifests":[{"digest":"sha256:../../../../etc/passwd"}]}`)
		}, vfs.ErrNotSupported},
		{"another machine", func(l layout) {
			l["index.json"] = []byte(`{"manifests":[{"platform":{"os":"linux","architecture":"vax"}}]}`)
		}, vfs.ErrNotSupported},
		{"an environment that is none", func(l layout) {
			c := config{OS: "linux", Architecture: runtime.GOARCH}
			c.Config.Env = []string{"A\x00B=1"}
			m := document{Config: new(l.blob(marshal(t, c)))}
			l["index.json"] = marshal(t, document{Manifests: []descriptor{l.blob(marshal(t, m))}})
		}, vfs.ErrInvalid},
		{"a large document", func(l layout) { l["index.json"] = make([]byte, maxDocument+1) }, vfs.ErrTooBig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := good()
			tt.change(l)
			c := newCache(t)
			if _, err := c.Unpack(t.Context(), l.write(t)); !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if left := c.left(t); len(left) != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A file that is none, and an unpacking that nobody waits for any more.
func TestUnpackErrors(t *testing.T) {
	c := newCache(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, gzipped(t, entries(t, file("a"))), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unpack(t.Context(), path); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("a compressed tarball: %v", err)
	}
	if _, err := c.Unpack(t.Context(), path+"2"); !errors.Is(err, vfs.ErrNotExist) || Is(path+"2") {
		t.Errorf("no such file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Unpack(ctx, newLayout(t, entries(t, file("a"))).write(t)); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unpack(t.Context(), fifo); !errors.Is(err, vfs.ErrInvalid) || Is(fifo) {
		t.Errorf("a FIFO: %v", err)
	}
	odd := newLayout(t, entries(t, file("a"))).write(t)
	if err := errors.Join(os.Remove(filepath.Join(odd, "index.json")), unix.Mkfifo(filepath.Join(odd, "index.json"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unpack(t.Context(), odd); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("a FIFO in a layout: %v", err)
	}
}
