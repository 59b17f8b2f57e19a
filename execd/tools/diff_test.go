package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/tools"
)

// history is some states of a workspace.
type history struct {
	states map[string]vfs.Tree
	made   []string
	open   int
}

func (h *history) Snapshot(_ context.Context, name, _ string) (vfs.Rev, error) {
	h.made = append(h.made, name)
	return 7, nil
}

func (h *history) At(_ context.Context, when string) (vfs.Tree, func() error, error) {
	tree, ok := h.states[when]
	if !ok {
		return nil, nil, fmt.Errorf("%q: %w", when, vfs.ErrNoRevision)
	}
	h.open++
	return tree, func() error { h.open--; return nil }, nil
}

func TestDiff(t *testing.T) {
	old, d := newDesk(t), newDesk(t)
	h := &history{states: map[string]vfs.Tree{"start": old.FS.Tree, "end": d.FS.Tree}}
	d.History, d.Since = h, "start"
	for path, texts := range map[string][2]string{
		"/same": {"same\n", "same\n"}, "/text": {"a\nb\nc\n", "a\nB\nc\n"}, "/binary": {"\x00a", "\x00b"},
		"/unended": {"x", "x\n"}, "/.git/index": {"1", "2"},
	} {
		old.put(path, texts[0])
		d.put(path, texts[1])
	}
	old.put("/gone/f", "was\n")
	d.put("/new/f", "is\n")
	old.put("/kind", "file\n")
	d.put("/kind/f", "dir\n")
	d.ok(d.FS.Chmod(t.Context(), "/same", 0o755))
	old.link("x", "/link")
	d.link("y", "/link")
	r, err := d.Diff(t.Context(), tools.DiffArgs{})
	d.ok(err)
	var got []string
	for _, c := range r.Changed {
		got = append(got, c.Change+" "+c.Path)
	}
	want := "modified /binary, deleted /gone, deleted /gone/f, modified /kind, added /kind/f, modified /link, added /new, " +
		"added /new/f, mode /same, modified /text, modified /unended"
	if strings.Join(got, ", ") != want {
		t.Errorf("changed %q, want %q", got, want)
	}
	for _, part := range []string{"--- a/text\n+++ b/text\n", "-b\n+B\n", "--- /dev/null\n+++ b/new/f\n", "-was\n", "-x\n\\ No newline"} {
		if !strings.Contains(r.Diff, part) {
			t.Errorf("%q is not in the diff:\n%s", part, r.Diff)
		}
	}
	if strings.Contains(r.Diff, "\x00") || h.open != 0 {
		t.Errorf("%d states left open; diff %q", h.open, r.Diff)
	}
	r, err = d.Diff(t.Context(), tools.DiffArgs{Path: "/text", From: "start", To: "end", Names: true})
	d.ok(err)
	if len(r.Changed) != 1 || r.Diff != "" {
		t.Errorf("%+v", r)
	}
	_, err = d.Diff(t.Context(), tools.DiffArgs{From: "never"})
	wantErr(t, "state", err, vfs.ErrNoRevision)
	_, err = d.Diff(t.Context(), tools.DiffArgs{Path: "/nowhere"})
	wantErr(t, "path", err, vfs.ErrNotExist)
	_, err = newDesk(t).Diff(t.Context(), tools.DiffArgs{})
	wantErr(t, "no history", err, vfs.ErrNoRevision)
}

// A comparison of much comes in pages that name every file once.
func TestDiffOn(t *testing.T) {
	old, d := newDesk(t), newDesk(t)
	d.History, d.Since = &history{states: map[string]vfs.Tree{"start": old.FS.Tree}}, "start"
	d.put("/huge", strings.Repeat("x\n", tools.MaxDiff))
	d.put("/larger", strings.Repeat("y\n", tools.MaxEdit))
	for i := range 2 * tools.MaxChanged {
		d.put(fmt.Sprintf("/d%d/f%d", i%10, i), "text\n")
	}
	seen, calls := map[string]bool{}, 0
	for after := ""; ; calls++ {
		r, err := d.Diff(t.Context(), tools.DiffArgs{After: after})
		d.ok(err)
		if len(r.Changed) > tools.MaxChanged || len(r.Diff) > tools.MaxDiff+200 {
			t.Fatalf("%d files, %d bytes", len(r.Changed), len(r.Diff))
		}
		for _, c := range r.Changed {
			if seen[c.Path] {
				t.Fatalf("%s twice", c.Path)
			}
			seen[c.Path] = true
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if len(seen) != 2+10+2*tools.MaxChanged {
		t.Errorf("%d paths in %d calls", len(seen), calls)
	}
}

func TestSnapshot(t *testing.T) {
	d := newDesk(t)
	_, err := d.Snapshot(t.Context(), tools.SnapshotArgs{Name: "s"})
	wantErr(t, "no history", err, vfs.ErrNotSupported)
	h := &history{}
	d.History = h
	r, err := d.Snapshot(t.Context(), tools.SnapshotArgs{Name: "s"})
	d.ok(err)
	if r.Revision != 7 || len(h.made) != 1 {
		t.Errorf("%+v, %v", r, h.made)
	}
}
