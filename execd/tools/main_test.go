package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a set on a tree in memory.
type desk struct {
	*tools.Set
	t *testing.T
}

func newDesk(t *testing.T) desk {
	return desk{tools.New(tools.Options{FS: treepath.FS{Tree: vfstest.NewTree()}}), t}
}

func (d desk) put(path, text string) {
	d.t.Helper()
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		d.ok(d.FS.MkdirAll(d.t.Context(), path[:i], 0o755))
	}
	d.ok(d.FS.WriteFile(d.t.Context(), path, []byte(text), 0o640))
}

func (d desk) link(target, path string) {
	d.t.Helper()
	d.ok(d.FS.Symlink(d.t.Context(), target, path))
}

func (d desk) ok(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) has(path, text string) {
	d.t.Helper()
	b, err := d.FS.ReadFile(d.t.Context(), path, 0)
	d.ok(err)
	if string(b) != text {
		d.t.Errorf("%s holds %.200q, want %.200q", path, b, text)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// Every tool that changes something refuses to when the set may only read.
func TestReadOnly(t *testing.T) {
	d := newDesk(t)
	d.put("/f", "text")
	d.Set.ReadOnly = true
	d.History, d.Execs = &history{}, &execs{}
	ctx := t.Context()
	for what, call := range map[string]func() error{
		"write":    func() error { _, err := d.Write(ctx, tools.WriteArgs{Path: "/f"}); return err },
		"edit":     func() error { return d.edit("/f", "text", "x") },
		"delete":   func() error { _, err := d.Delete(ctx, tools.DeleteArgs{Path: "/f"}); return err },
		"snapshot": func() error { _, err := d.Snapshot(ctx, tools.SnapshotArgs{Name: "s"}); return err },
		"exec":     func() error { _, err := d.Exec(ctx, tools.ExecArgs{Command: "true"}); return err },
	} {
		wantErr(t, what, call(), vfs.ErrReadOnly)
	}
	d.has("/f", "text")
}

// Nothing leads out of the root of a set.
func TestRoot(t *testing.T) {
	d := newDesk(t)
	d.put("/secret", "s3cret")
	d.put("/jail/in", "in")
	d.link("/secret", "/jail/absolute")
	d.link("../secret", "/jail/relative")
	d.link("..", "/jail/up")
	jail, err := d.FS.Stat(t.Context(), "/jail")
	d.ok(err)
	in := desk{tools.New(tools.Options{FS: treepath.FS{Tree: d.FS.Tree, Root: jail.Ino}}), t}
	in.has("/in", "in")
	for _, path := range []string{"/absolute", "/relative", "../secret", "/../../secret", "/up/secret", "up/../secret"} {
		_, err := in.Read(t.Context(), tools.ReadArgs{Path: path})
		wantErr(t, "read "+path, err, vfs.ErrNotExist)
		wantErr(t, "edit "+path, in.edit(path, "s3cret", "x"), vfs.ErrNotExist)
		_, err = in.Grep(t.Context(), tools.GrepArgs{Pattern: "s3cret", Path: path})
		wantErr(t, "grep "+path, err, vfs.ErrNotExist)
	}
	_, err = in.Write(t.Context(), tools.WriteArgs{Path: "/absolute", Text: "made"})
	in.ok(err)
	d.has("/jail/secret", "made")
	d.has("/secret", "s3cret")
	for _, path := range []string{"/", "..", "/up/", "/."} {
		_, err = in.Delete(t.Context(), tools.DeleteArgs{Path: path, Recursive: true})
		if err == nil {
			t.Errorf("deleted the root as %q", path)
		}
	}
	found, err := in.Grep(t.Context(), tools.GrepArgs{Pattern: "s3cret"})
	in.ok(err)
	if len(found.Matches) != 0 {
		t.Errorf("found outside: %v", found.Matches)
	}
}

// An ended context ends a call.
func TestCancelled(t *testing.T) {
	d := newDesk(t)
	d.put("/d/f", "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Find(ctx, tools.FindArgs{})
	wantErr(t, "find", err, vfs.ErrInterrupted)
	_, err = d.Write(ctx, tools.WriteArgs{Path: "/d/f", Text: "new"})
	wantErr(t, "write", err, vfs.ErrInterrupted)
	d.has("/d/f", "text")
}
