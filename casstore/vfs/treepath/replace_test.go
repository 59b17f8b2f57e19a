package treepath_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// A file that is replaced keeps what it had beside its bytes, and is another inode: who has the old one open keeps it.
func TestReplaceFile(t *testing.T) {
	f := newFS(t)
	ctx := t.Context()
	write(t, f, "f", "old")
	check(t, f.Chmod(ctx, "f", 0o4751), nil)
	check(t, f.Chown(ctx, "f", 7, 8, true), nil)
	check(t, f.Chmod(ctx, "f", 0o4751), nil)
	before, err := f.Stat(ctx, "f")
	check(t, err, nil)
	check(t, f.Tree.SetXattr(ctx, before.Ino, "user.k", []byte("v"), 0), nil)
	open, err := f.Open(ctx, "f")
	check(t, err, nil)
	check(t, f.Symlink(ctx, "f", "link"), nil)
	check(t, replace(t, f, "link", "new", false), nil)
	want(t, f, "f", "new")
	after, err := f.Stat(ctx, "f")
	check(t, err, nil)
	if after.Ino == before.Ino || after.Mode != before.Mode || after.UID != 7 || after.GID != 8 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	value, err := f.Tree.GetXattr(ctx, after.Ino, "user.k")
	check(t, err, nil)
	if string(value) != "v" {
		t.Errorf("attribute %q", value)
	}
	old, err := io.ReadAll(open)
	check(t, errors.Join(err, open.Close()), nil)
	if string(old) != "old" {
		t.Errorf("the open file has %q", old)
	}
}

func TestReplaceFileMade(t *testing.T) {
	f := newFS(t)
	ctx := t.Context()
	check(t, f.Mkdir(ctx, "d", 0o755), nil)
	check(t, f.Symlink(ctx, "d/target", "dangling"), nil)
	check(t, f.Symlink(ctx, "loop", "loop"), nil)
	check(t, replace(t, f, "dangling", strings.Repeat("x", 600<<10), true), nil)
	want(t, f, "d/target", strings.Repeat("x", 600<<10))
	a, err := f.Stat(ctx, "d/target")
	check(t, err, nil)
	if a.Mode != 0o644 {
		t.Errorf("mode %o", a.Mode)
	}
	check(t, replace(t, f, "d", "", false), vfs.ErrIsDir)
	check(t, replace(t, f, "none/f", "", false), vfs.ErrNotExist)
	check(t, replace(t, f, "loop", "", false), treepath.ErrLoop)
	check(t, replace(t, f, "d/target/x", "", false), vfs.ErrNotDir)
}

// A file with two names stays one file.
func TestReplaceFileLinked(t *testing.T) {
	f := newFS(t)
	write(t, f, "a", "longer than the new")
	check(t, f.Link(t.Context(), "a", "b"), nil)
	check(t, replace(t, f, "a", "new", false), nil)
	want(t, f, "b", "new")
}

// After an error the old file is there and nothing else.
func TestReplaceFileFails(t *testing.T) {
	f := newFS(t)
	write(t, f, "f", "old")
	broken := errors.New("broken")
	_, err := f.ReplaceFile(t.Context(), "f", io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken)), 0o666)
	check(t, err, broken)
	want(t, f, "f", "old")
	entries, err := f.ReadDir(t.Context(), "/")
	check(t, err, nil)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func replace(t *testing.T, f treepath.FS, path, text string, made bool) error {
	t.Helper()
	got, err := f.ReplaceFile(t.Context(), path, strings.NewReader(text), 0o666)
	if got != made {
		t.Errorf("replace %q: made %t", path, got)
	}
	return err
}

func want(t *testing.T, f treepath.FS, path, text string) {
	t.Helper()
	b, err := f.ReadFile(t.Context(), path, 0)
	check(t, err, nil)
	if string(b) != text {
		t.Errorf("%q has %d bytes, want %d", path, len(b), len(text))
	}
}
