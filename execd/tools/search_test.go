package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/tools"
)

func TestList(t *testing.T) {
	d := newDesk(t)
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("f%02d", i*7%25)
		d.put("/d/"+name, "x")
		want = append(want, name)
	}
	d.link("f01", "/d/link")
	d.put("/d/\xff", "")
	want = append(want, "link", "\uFFFD")
	slices.Sort(want)
	var got []string
	for after := ""; ; {
		r, err := d.List(t.Context(), tools.ListArgs{Path: "d", Limit: 4, After: after})
		d.ok(err)
		for _, e := range r.Entries {
			got = append(got, e.Name)
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	r, err := d.List(t.Context(), tools.ListArgs{Path: "d", After: "f24"})
	d.ok(err)
	if e := r.Entries[0]; e.Type != "symlink" || e.Target != "f01" || e.Mode != "0777" {
		t.Errorf("entry %+v", e)
	}
	_, err = d.List(t.Context(), tools.ListArgs{Path: "/d/f01"})
	wantErr(t, "file", err, vfs.ErrNotDir)
	_, err = d.List(t.Context(), tools.ListArgs{Path: "/none"})
	wantErr(t, "missing", err, vfs.ErrNotExist)
	_, err = d.List(t.Context(), tools.ListArgs{Limit: -1})
	wantErr(t, "limit", err, vfs.ErrInvalid)
	r, err = d.List(t.Context(), tools.ListArgs{})
	d.ok(err)
	if len(r.Entries) != 1 || r.Entries[0].Type != "dir" {
		t.Errorf("root %+v", r)
	}
}

// project is a tree to look for things in.
func project(d desk) {
	for path, text := range map[string]string{
		"/a.go": "package a\n", "/src/b.go": "package b\n\nfunc B() {}\n", "/src/b_test.go": "package b\n",
		"/src/deep/c.txt": "one\nTWO\nthree\n", "/node_modules/m/x.go": "package m\n", "/.git/config": "package\n",
		"/src/bin": "package\x00",
	} {
		d.put(path, text)
	}
	d.link("/", "/src/loop")
}

func TestFind(t *testing.T) {
	d := newDesk(t)
	project(d)
	for _, tt := range []struct {
		args tools.FindArgs
		want string
	}{
		{tools.FindArgs{}, "/a.go /src/ /src/b.go /src/b_test.go /src/bin /src/deep/ /src/deep/c.txt /src/loop"},
		{tools.FindArgs{Path: "src"}, "/src/b.go /src/b_test.go /src/bin /src/deep/ /src/deep/c.txt /src/loop"},
		{tools.FindArgs{Path: "/src/b.go"}, "/src/b.go"},
		{tools.FindArgs{Glob: "*.go"}, "/a.go /src/b.go /src/b_test.go"},
		{tools.FindArgs{Glob: "*.{go,txt}", Exclude: []string{"*_test.go", ".git"}},
			"/a.go /node_modules/m/x.go /src/b.go /src/deep/c.txt"},
		{tools.FindArgs{Glob: "src/*.go"}, "/src/b.go /src/b_test.go"},
		{tools.FindArgs{Glob: "**/c.*"}, "/src/deep/c.txt"},
		{tools.FindArgs{Path: "/src", Glob: "deep/**"}, "/src/deep/ /src/deep/c.txt"},
		{tools.FindArgs{Type: "dir", Exclude: []string{}}, "/.git/ /node_modules/ /node_modules/m/ /src/ /src/deep/"},
		{tools.FindArgs{Type: "symlink"}, "/src/loop"},
		{tools.FindArgs{Glob: "nothing"}, ""},
	} {
		for _, limit := range []int{0, 1, 2} { // in pages of any size
			var got []string
			args := tt.args
			args.Limit = limit
			for {
				r, err := d.Find(t.Context(), args)
				d.ok(err)
				got = append(got, r.Paths...)
				if args.After = r.NextAfter; args.After == "" {
					break
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%+v: %q, want %q", args, got, tt.want)
			}
		}
	}
	_, err := d.Find(t.Context(), tools.FindArgs{Glob: "[a"})
	wantErr(t, "pattern", err, vfs.ErrInvalid)
	_, err = d.Find(t.Context(), tools.FindArgs{Path: "/none"})
	wantErr(t, "missing", err, vfs.ErrNotExist)
	_, err = d.Find(t.Context(), tools.FindArgs{Path: "/src", After: "/a.go"})
	wantErr(t, "continuation of another", err, vfs.ErrInvalid)
}

func TestGrep(t *testing.T) {
	d := newDesk(t)
	project(d)
	d.put("/crlf", "alpha\r\nbeta\r\n")
	d.put("/unended", "gamma")
	d.put("/latin", "caf\xe9 delta\n")
	for _, tt := range []struct {
		args tools.GrepArgs
		want string
	}{
		{tools.GrepArgs{Pattern: "^package"}, "/a.go:1:package a /src/b.go:1:package b /src/b_test.go:1:package b"},
		{tools.GrepArgs{Pattern: "package", Glob: "*_test.go"}, "/src/b_test.go:1:package b"},
		{tools.GrepArgs{Pattern: "PACKAGE", IgnoreCase: true, Path: "/a.go"}, "/a.go:1:package a"},
		{tools.GrepArgs{Pattern: "B()", Fixed: true}, "/src/b.go:3:func B() {}"},
		{tools.GrepArgs{Pattern: "TWO", Context: 1}, "/src/deep/c.txt:1-one /src/deep/c.txt:2:TWO /src/deep/c.txt:3-three"},
		{tools.GrepArgs{Pattern: "b", Files: true}, "/crlf:0: /src/b.go:0: /src/b_test.go:0:"},
		{tools.GrepArgs{Pattern: "a$", Path: "/crlf"}, "/crlf:1:alpha /crlf:2:beta"},
		{tools.GrepArgs{Pattern: "gamma$"}, "/unended:1:gamma"},
		{tools.GrepArgs{Pattern: "delta"}, "/latin:1:caf\uFFFD delta"},
		{tools.GrepArgs{Pattern: "nowhere"}, ""},
	} {
		for _, limit := range []int{0, 1} {
			var got []string
			args := tt.args
			args.Limit = limit
			for {
				r, err := d.Grep(t.Context(), args)
				d.ok(err)
				for _, m := range r.Matches {
					mark := ":"
					if m.Context {
						mark = "-"
					}
					got = append(got, fmt.Sprintf("%s:%d%s%s", m.Path, m.Line, mark, m.Text))
				}
				if args.After = r.NextAfter; args.After == "" {
					break
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%+v: %q, want %q", args, got, tt.want)
			}
		}
	}
	for _, pattern := range []string{"", "("} {
		_, err := d.Grep(t.Context(), tools.GrepArgs{Pattern: pattern})
		wantErr(t, "pattern "+pattern, err, vfs.ErrInvalid)
	}
}

// Long lines, and many of them, do not flood a result, and nothing is lost over its pages.
func TestGrepBounds(t *testing.T) {
	d := newDesk(t)
	d.put("/long", strings.Repeat("x", 700<<10)+"needle"+strings.Repeat("y", 700<<10))
	r, err := d.Grep(t.Context(), tools.GrepArgs{Pattern: "needle"})
	d.ok(err)
	if len(r.Matches) != 1 || !r.Matches[0].Cut || !strings.Contains(r.Matches[0].Text, "needle") ||
		len(r.Matches[0].Text) > tools.MaxLine {
		t.Errorf("%+v", r)
	}
	d.put("/many", strings.Repeat(strings.Repeat("z", 300)+"\n", 2000))
	lines, after := map[int]int{}, ""
	for calls := 0; ; calls++ {
		r, err := d.Grep(t.Context(), tools.GrepArgs{Pattern: "z", Limit: tools.MaxMatches, After: after})
		d.ok(err)
		size := 0
		for _, m := range r.Matches {
			lines[m.Line]++
			size += len(m.Text)
		}
		if size > 2*tools.MaxFound || calls > 100 {
			t.Fatalf("a result of %d bytes in call %d", size, calls)
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if len(lines) != 2000 {
		t.Errorf("%d lines, want 2000", len(lines))
	}
}

// Names of any bytes do not end a listing that comes in pages: a place to go on from is text all the same.
func TestPlacesOfBytes(t *testing.T) {
	d := newDesk(t)
	names := []string{"=", "=a", "\xfe", "\xff\xfe", "é"}
	for _, name := range names {
		d.put("/d/"+name, "x\nx\n")
	}
	slices.Sort(names)
	for what, page := range map[string]func(after string) (paths []string, next string, err error){
		"ls": func(after string) (paths []string, next string, err error) {
			list, next, err := d.Dirents(t.Context(), tools.ListArgs{Path: "/d", Limit: 1, After: after})
			for _, e := range list {
				paths = append(paths, "/d/"+e.Name)
			}
			return paths, next, err
		},
		"find": func(after string) (paths []string, next string, err error) {
			found, next, err := d.Locate(t.Context(), tools.FindArgs{Path: "/d", Limit: 1, After: after})
			for _, f := range found {
				paths = append(paths, f.Path)
			}
			return paths, next, err
		},
		"grep": func(after string) (paths []string, next string, err error) {
			r, err := d.Grep(t.Context(), tools.GrepArgs{Pattern: "x", Limit: 1, After: after})
			d.ok(err)
			for _, m := range r.Matches {
				paths = append(paths, m.RawPath)
			}
			return paths, r.NextAfter, err
		},
	} {
		var got []string
		for after := ""; ; {
			paths, next, err := page(after)
			d.ok(err)
			got = append(got, paths...)
			if after = next; after == "" {
				break
			}
			if !utf8.ValidString(after) {
				t.Fatalf("%s goes on after %q", what, after)
			}
		}
		got = slices.Compact(got) // grep comes to each file twice, once for each line
		for i, name := range names {
			if i >= len(got) || got[i] != "/d/"+name {
				t.Errorf("%s: %q, want %q", what, got, names)
				break
			}
		}
	}
	_, err := d.Find(t.Context(), tools.FindArgs{After: "=!"})
	wantErr(t, "place", err, vfs.ErrInvalid)
}
