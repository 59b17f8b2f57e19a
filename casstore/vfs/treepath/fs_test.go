package treepath_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func newFS(t *testing.T) treepath.FS {
	t.Helper()
	return treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022}
}

func check(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func write(t *testing.T, f treepath.FS, path, data string) {
	t.Helper()
	check(t, f.WriteFile(t.Context(), path, []byte(data), 0o666), nil)
}

func content(t *testing.T, f treepath.FS, path string) string {
	t.Helper()
	b, err := f.ReadFile(t.Context(), path, 0)
	check(t, err, nil)
	return string(b)
}

func TestReadWrite(t *testing.T) {
	f := newFS(t)
	check(t, f.MkdirAll(t.Context(), "a/b", 0o777), nil)
	write(t, f, "/a/b/f", "one\n")
	in := f.At("a/b")
	if got := content(t, in, "f"); got != "one\n" {
		t.Errorf("content %q", got)
	}
	if got := content(t, in, "../b/./f"); got != "one\n" {
		t.Errorf("content %q", got)
	}
	file, err := in.OpenFile(t.Context(), "f", treepath.Write|treepath.Append, 0)
	check(t, err, nil)
	write(t, in, "f", "") // truncates under it
	_, err = file.Write([]byte("two"))
	check(t, err, nil)
	_, err = file.Read(make([]byte, 1))
	check(t, err, treepath.ErrBadFile)
	check(t, file.Close(), nil)
	check(t, file.Close(), vfs.ErrClosed)
	if got := content(t, in, "f"); got != "two" {
		t.Errorf("content %q", got)
	}
	a, err := in.Stat(t.Context(), "f")
	check(t, err, nil)
	if a.Mode != 0o644 || a.Size != 3 {
		t.Errorf("mode %o, size %d", a.Mode, a.Size)
	}
	_, err = in.ReadFile(t.Context(), "f", 2)
	check(t, err, vfs.ErrTooBig)
}

func TestSeek(t *testing.T) {
	f := newFS(t)
	write(t, f, "f", "0123456789")
	file, err := f.OpenFile(t.Context(), "f", treepath.Read|treepath.Write, 0)
	check(t, err, nil)
	defer file.Close()
	p := make([]byte, 4)
	for _, tt := range []struct {
		off    int64
		whence int
		want   string
	}{{3, io.SeekStart, "3456"}, {-2, io.SeekCurrent, "5678"}, {-1, io.SeekEnd, "9"}, {5, io.SeekEnd, ""}} {
		_, err := file.Seek(tt.off, tt.whence)
		check(t, err, nil)
		n, _ := file.Read(p)
		if got := string(p[:n]); got != tt.want {
			t.Errorf("at %d, %d: %q, want %q", tt.off, tt.whence, got, tt.want)
		}
	}
	_, err = file.Seek(-1, io.SeekStart)
	check(t, err, vfs.ErrInvalid)
	n, err := file.ReadAt(p, 8)
	if n != 2 || err != io.EOF {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
	check(t, file.Truncate(2), nil)
	if got := content(t, f, "f"); got != "01" {
		t.Errorf("content %q", got)
	}
}

// What is open outlives its name.
func TestOpenRemoved(t *testing.T) {
	f := newFS(t)
	write(t, f, "f", "still")
	file, err := f.Open(t.Context(), "f")
	check(t, err, nil)
	check(t, f.Remove(t.Context(), "f"), nil)
	b, err := io.ReadAll(file)
	check(t, err, nil)
	if string(b) != "still" {
		t.Errorf("content %q", b)
	}
	check(t, file.Close(), nil)
}

func TestOpenErrors(t *testing.T) {
	f := newFS(t)
	ctx := t.Context()
	check(t, f.Mkdir(ctx, "d", 0o777), nil)
	write(t, f, "f", "x")
	check(t, f.Symlink(ctx, "new", "dangling"), nil)
	check(t, f.Symlink(ctx, "loop", "loop"), nil)
	for _, tt := range []struct {
		path string
		flag treepath.Flag
		want error
	}{
		{"none", treepath.Read, vfs.ErrNotExist},
		{"", treepath.Read, vfs.ErrNotExist},
		{"d", treepath.Write | treepath.Create, vfs.ErrIsDir},
		{"d", treepath.Read, nil},
		{"f/x", treepath.Read, vfs.ErrNotDir},
		{"f", treepath.Write | treepath.Create | treepath.Exclusive, vfs.ErrExist},
		{"dangling", treepath.Write | treepath.Create | treepath.Exclusive, vfs.ErrExist},
		{"dangling", treepath.Read | treepath.NoFollow, treepath.ErrLoop},
		{"dangling", treepath.Write | treepath.Create, nil},
		{"new", treepath.Read, nil},
		{"loop", treepath.Write | treepath.Create, treepath.ErrLoop},
		{"none/x", treepath.Write | treepath.Create, vfs.ErrNotExist},
	} {
		file, err := f.OpenFile(ctx, tt.path, tt.flag, 0o666)
		if !errors.Is(err, tt.want) {
			t.Errorf("open %q, %x: %v, want %v", tt.path, tt.flag, err, tt.want)
		}
		if err == nil {
			check(t, file.Close(), nil)
		}
	}
	dir, err := f.Open(ctx, "d")
	check(t, err, nil)
	_, err = dir.Read(make([]byte, 1))
	check(t, err, vfs.ErrIsDir)
	check(t, dir.Close(), nil)
}

func TestChange(t *testing.T) {
	f := newFS(t)
	ctx := t.Context()
	check(t, f.MkdirAll(ctx, "a/b/c", 0o755), nil)
	check(t, f.MkdirAll(ctx, "a/b/c/", 0o755), nil)
	check(t, f.Mkdir(ctx, "/", 0o755), vfs.ErrExist)
	check(t, f.Mkdir(ctx, "a", 0o755), vfs.ErrExist)
	write(t, f, "a/f", "f")
	check(t, f.MkdirAll(ctx, "a/f/x", 0o755), vfs.ErrNotDir)
	check(t, f.Link(ctx, "a/f", "a/g"), nil)
	check(t, f.Rename(ctx, "a/g", "a/b/f"), nil)
	check(t, f.Rename(ctx, "a", "a/b/x"), vfs.ErrInvalid)
	check(t, f.Remove(ctx, "a"), vfs.ErrNotEmpty)
	check(t, f.Symlink(ctx, "b/c", "a/l"), nil)
	target, err := f.Readlink(ctx, "a/l")
	check(t, err, nil)
	real, err := f.At("a").RealPath(ctx, "l/../f")
	check(t, err, nil)
	if target != "b/c" || real != "/a/b/f" {
		t.Errorf("link to %q, real path %q", target, real)
	}
	check(t, f.Chmod(ctx, "a/f", 0o4711), nil)
	then := vfs.TimeFromUnix(1000, 5)
	check(t, f.Chtimes(ctx, "a/f", nil, &then, true), nil)
	a, err := f.Stat(ctx, "a/b/f")
	check(t, err, nil)
	if a.Mode != 0o4711 || a.Mtime != then || a.Nlink != 2 {
		t.Errorf("attributes %+v", a)
	}
	check(t, f.RemoveAll(ctx, "a"), nil)
	check(t, f.RemoveAll(ctx, "a"), nil)
	_, err = f.Lstat(ctx, "a")
	check(t, err, vfs.ErrNotExist)
}

func TestWalk(t *testing.T) {
	f := newFS(t)
	for _, d := range []string{"t/b", "t/a/deep", "t/skip/in"} {
		check(t, f.MkdirAll(t.Context(), d, 0o755), nil)
	}
	write(t, f, "t/a/f", "")
	check(t, f.Symlink(t.Context(), "..", "t/up"), nil)
	var seen []string
	err := f.Walk(t.Context(), "t", func(path string, _ vfs.Attr, err error) error {
		check(t, err, nil)
		seen = append(seen, path)
		if path == "t/skip" {
			return treepath.SkipDir
		}
		return nil
	})
	check(t, err, nil)
	if got, want := strings.Join(seen, " "), "t t/a t/a/deep t/a/f t/b t/skip t/up"; got != want {
		t.Errorf("walk %q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = f.Walk(ctx, "t", func(_ string, _ vfs.Attr, err error) error { return err })
	check(t, err, vfs.ErrInterrupted)
}

func TestAccess(t *testing.T) {
	root := newFS(t)
	ctx := t.Context()
	check(t, root.Mkdir(ctx, "open", 0o777), nil)
	check(t, root.Chmod(ctx, "open", 0o1777), nil)
	check(t, root.Mkdir(ctx, "shut", 0o700), nil)
	write(t, root, "open/mine", "x")
	write(t, root, "shut/f", "x")
	user := root
	user.Cred = treepath.Cred{UID: 7, GID: 70, Groups: []uint32{71}}
	_, err := user.Stat(ctx, "shut/f")
	check(t, err, treepath.ErrAccess)
	_, err = user.ReadDir(ctx, "shut")
	check(t, err, treepath.ErrAccess)
	check(t, user.WriteFile(ctx, "open/mine", nil, 0o666), treepath.ErrAccess)
	check(t, user.Remove(ctx, "open/mine"), vfs.ErrNotPermitted)
	check(t, user.Chmod(ctx, "open/mine", 0o777), vfs.ErrNotPermitted)
	check(t, user.Mkdir(ctx, "new", 0o777), treepath.ErrAccess)
	write(t, user, "open/his", "y")
	check(t, user.Chown(ctx, "open/his", 7, 71, true), nil)
	check(t, user.Chown(ctx, "open/his", 0, 71, true), vfs.ErrNotPermitted)
	check(t, user.Access(ctx, "open/his", treepath.AccessExec), treepath.ErrAccess)
	check(t, root.Access(ctx, "open/his", treepath.AccessExec), treepath.ErrAccess)
	check(t, user.Rename(ctx, "open/his", "open/mine"), vfs.ErrNotPermitted)
	check(t, user.Remove(ctx, "open/his"), nil)
}

type echoDevice struct{ strings.Builder }

func (*echoDevice) Read([]byte) (int, error) { return 0, io.EOF }
func (*echoDevice) Close() error             { return nil }

func TestDevice(t *testing.T) {
	f := newFS(t)
	check(t, f.Mkfifo(t.Context(), "p", 0o666), nil)
	_, err := f.Open(t.Context(), "p")
	check(t, err, vfs.ErrNotSupported)
	dev := new(echoDevice)
	f.Device = func(_ context.Context, path string, a vfs.Attr, _ treepath.Flag) (treepath.Device, error) {
		if path != "/p" || a.Type != vfs.TypeFIFO {
			t.Errorf("device %q, %+v", path, a)
		}
		return dev, nil
	}
	file, err := f.OpenFile(t.Context(), "p", treepath.Write, 0)
	check(t, err, nil)
	_, err = io.WriteString(file, "hello")
	check(t, err, nil)
	_, err = file.Seek(0, io.SeekStart)
	check(t, err, treepath.ErrSeek)
	check(t, file.Close(), nil)
	if dev.String() != "hello" {
		t.Errorf("device got %q", dev.String())
	}
}
