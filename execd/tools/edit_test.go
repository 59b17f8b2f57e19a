package tools_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/tools"
)

// edit makes changes that are given as old, new, old, new.
func (d desk) edit(path string, texts ...string) error {
	a := tools.EditArgs{Path: path}
	for i := 0; i < len(texts); i += 2 {
		a.Edits = append(a.Edits, tools.Replacement{Old: texts[i], New: texts[i+1]})
	}
	_, err := d.Edit(d.t.Context(), a)
	return err
}

func TestEdit(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name, text string
		edits      []string
		want       string
		err        error
	}{
		{name: "plain", text: "a\nb\nc\n", edits: []string{"b", "B"}, want: "a\nB\nc\n"},
		{name: "several, in any order", text: "a b c", edits: []string{"c", "3", "a", "1"}, want: "1 b 3"},
		{name: "against the original", text: "a b", edits: []string{"a", "b", "b", "a"}, want: "b a"},
		{name: "adjacent", text: "abcd", edits: []string{"ab", "1", "cd", "2"}, want: "12"},
		{name: "delete", text: "a\nb\n", edits: []string{"a\n", ""}, want: "b\n"},
		{name: "all", text: "a", edits: []string{"a", ""}, want: ""},
		{name: "no final newline", text: "a\nb", edits: []string{"b", "c"}, want: "a\nc"},
		{name: "CRLF by LF", text: "a\r\nb\r\nc\r\n", edits: []string{"a\nb", "x\ny\nz"}, want: "x\r\ny\r\nz\r\nc\r\n"},
		{name: "CRLF by CRLF", text: "a\r\nb\r\n", edits: []string{"a\r\nb", "x\r\ny"}, want: "x\r\ny\r\n"},
		{name: "CRLF, a line more", text: "a\r\n", edits: []string{"a", "a\nb"}, want: "a\r\nb\r\n"},
		{name: "mixed, at LF", text: "a\nb\nc\r\nd\n", edits: []string{"a\nb", "x\ny"}, want: "x\ny\nc\r\nd\n"},
		{name: "mixed, at CRLF", text: "a\nb\r\nc\nd\n", edits: []string{"b\nc", "x\ny"}, want: "a\nx\r\ny\nd\n"},
		{name: "BOM", text: "\uFEFFa\n", edits: []string{"a", "b"}, want: "\uFEFFb\n"},
		{name: "BOM given", text: "\uFEFFa\n", edits: []string{"\uFEFFa", "b"}, want: "\uFEFFb\n"},
		{name: "not UTF-8", text: "caf\xe9 a\n", edits: []string{"a\n", "b\n"}, want: "caf\xe9 b\n"},
		{name: "long line", text: long + "y" + long, edits: []string{"xyx", "z"}, want: long[1:] + "z" + long[1:]},
		{name: "unicode", text: "日本語", edits: []string{"本", "x"}, want: "日x語"},

		{name: "no match", text: "a", edits: []string{"b", "c"}, err: tools.ErrNoMatch},
		{name: "one of two", text: "a", edits: []string{"a", "x", "b", "c"}, err: tools.ErrNoMatch},
		{name: "white space", text: "if x {\n\ty()\n}\n", edits: []string{"if x {\n  y()\n}", "z"}, err: tools.ErrNoMatch},
		{name: "ambiguous", text: "a\nb\na\n", edits: []string{"a", "x"}, err: tools.ErrAmbiguous},
		{name: "ambiguous overlap", text: "aaa", edits: []string{"aa", "x"}, err: tools.ErrAmbiguous},
		{name: "overlap", text: "abc", edits: []string{"ab", "x", "bc", "y"}, err: tools.ErrOverlap},
		{name: "twice", text: "abc", edits: []string{"b", "x", "b", "y"}, err: tools.ErrOverlap},
		{name: "within", text: "abc", edits: []string{"abc", "x", "b", "y"}, err: tools.ErrOverlap},
		{name: "empty old", text: "abc", edits: []string{"", "x"}, err: vfs.ErrInvalid},
		{name: "empty file", text: "", edits: []string{"a", "x"}, err: tools.ErrNoMatch},
		{name: "no change", text: "abc", edits: []string{"b", "b"}, err: tools.ErrNoChange},
		{name: "binary", text: "a\x00b", edits: []string{"a", "x"}, err: tools.ErrBinary},
		{name: "none", text: "a", err: vfs.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("/f", tt.text)
			wantErr(t, "edit", d.edit("/f", tt.edits...), tt.err)
			if tt.err != nil {
				tt.want = tt.text
			}
			d.has("/f", tt.want)
			a, err := d.FS.Stat(t.Context(), "/f")
			d.ok(err)
			if a.Mode != 0o640 {
				t.Errorf("mode %o", a.Mode)
			}
		})
	}
}

func TestEditNodes(t *testing.T) {
	d := newDesk(t)
	d.put("/d/f", "old")
	d.link("d/f", "/link")
	d.put("/big", strings.Repeat("x", tools.MaxEdit+1))
	d.ok(d.edit("/link", "old", "new"))
	d.has("/d/f", "new")
	if a, err := d.FS.Lstat(t.Context(), "/link"); err != nil || a.Type != vfs.TypeSymlink {
		t.Errorf("the symlink became %+v, %v", a, err)
	}
	wantErr(t, "directory", d.edit("/d", "a", "b"), vfs.ErrIsDir)
	wantErr(t, "missing", d.edit("/none", "a", "b"), vfs.ErrNotExist)
	wantErr(t, "large", d.edit("/big", "a", "b"), vfs.ErrTooBig)
	wantErr(t, "many", d.edit("/d/f", make([]string, 2*tools.MaxEdits+2)...), vfs.ErrInvalid)
}

// What an edit says is for a model: where the text is, and what changed.
func TestEditTells(t *testing.T) {
	d := newDesk(t)
	d.put("/f", "a\nb\na\n\tc d\n")
	for old, part := range map[string]string{"a": "lines 1, 3", "c  d": "line 4", "none": "not in the file"} {
		if err := d.edit("/f", old, "x"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q in it", old, err, part)
		}
	}
	r, err := d.Edit(t.Context(), tools.EditArgs{Path: "f", Edits: []tools.Replacement{{Old: "b", New: "B"}}})
	d.ok(err)
	if want := "--- /f\n+++ /f\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n a\n \tc d\n"; r.Diff != want {
		t.Errorf("diff %q, want %q", r.Diff, want)
	}
	d.put("/g", strings.Repeat("x", 2*tools.MaxDiff)+"y")
	r, err = d.Edit(t.Context(), tools.EditArgs{Path: "/g", Edits: []tools.Replacement{{Old: "y", New: "z"}}})
	d.ok(err)
	if len(r.Diff) > tools.MaxDiff || !r.Cut {
		t.Errorf("%d bytes of diff, cut %t", len(r.Diff), r.Cut)
	}
}

// Edits at the same time are all in the file.
func TestEditsAtOnce(t *testing.T) {
	d := newDesk(t)
	const letters = "abcdefghijklmnop"
	d.put("/f", letters)
	var group sync.WaitGroup
	errs := make([]error, len(letters))
	for i := range letters {
		group.Go(func() { errs[i] = d.edit("/f", letters[i:i+1], strings.ToUpper(letters[i:i+1])) })
	}
	group.Wait()
	d.ok(errors.Join(errs...))
	d.has("/f", strings.ToUpper(letters))
}
