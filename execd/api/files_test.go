package api

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// must returns the message of an answer.
func must[M any](t *testing.T) func(*connect.Response[M], error) *M {
	return func(r *connect.Response[M], err error) *M {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r.Msg
	}
}

func (d *desk) write(t *testing.T, path, text string) {
	t.Helper()
	q := &carrelv1.WriteFileRequest{Workspace: "ws", Data: []byte(text), Parents: true}
	q.Path, q.RawPath = readable(path)
	must[carrelv1.WriteFileResponse](t)(d.Files().WriteFile(t.Context(), connect.NewRequest(q)))
}

func (d *desk) read(t *testing.T, path string, offset, length uint64) (string, uint64) {
	t.Helper()
	q := &carrelv1.ReadFileRequest{Workspace: "ws", Offset: offset, Length: length}
	q.Path, q.RawPath = readable(path)
	r := must[carrelv1.ReadFileResponse](t)(d.Files().ReadFile(t.Context(), connect.NewRequest(q)))
	return string(r.Data), r.Size
}

// Files by calls: whole and in ranges, with names of any bytes.
func TestFilesService(t *testing.T) {
	d := newDesk(t, nil)
	files, ctx := d.Files(), t.Context()
	for _, path := range []string{"/d/f", "/d/\xff", "plain"} {
		d.write(t, path, "0123456789")
		for _, tt := range []struct {
			offset, length uint64
			want           string
		}{
			{0, 0, "0123456789"}, {2, 3, "234"}, {8, 9, "89"}, {10, 1, ""}, {1 << 63, 1, ""}, {0, 1 << 60, "0123456789"},
		} {
			if got, size := d.read(t, path, tt.offset, tt.length); got != tt.want || size != 10 {
				t.Errorf("%q from %d, %d bytes: %q of %d, want %q", path, tt.offset, tt.length, got, size, tt.want)
			}
		}
	}
	at := uint64(8)
	made := must[carrelv1.WriteFileResponse](t)(files.WriteFile(ctx, connect.NewRequest(&carrelv1.WriteFileRequest{
		Workspace: "ws", Path: "/plain", Data: []byte("xyz"), Offset: &at,
	})))
	if got, size := d.read(t, "/plain", 0, 0); got != "01234567xyz" || size != 11 || made.Made {
		t.Errorf("after a write of a range: %q, %d, %v", got, size, made)
	}
	n := must[carrelv1.Node](t)(files.Stat(ctx, connect.NewRequest(&carrelv1.StatRequest{Workspace: "ws", RawPath: []byte("d/\xff")})))
	if n.Type != "file" || n.Size != 10 || n.Mode != 0o644 || string(n.RawPath) != "/d/\xff" || n.Path != "/d/\uFFFD" || n.Nlink != 1 {
		t.Errorf("stat: %v", n)
	}
	list := must[carrelv1.ListDirResponse](t)(files.ListDir(ctx, connect.NewRequest(&carrelv1.ListDirRequest{Workspace: "ws", Path: "d", Limit: 1})))
	if len(list.Entries) != 1 || list.Entries[0].Path != "f" || list.NextAfter == "" {
		t.Errorf("list: %v", list)
	}
	list = must[carrelv1.ListDirResponse](t)(files.ListDir(ctx, connect.NewRequest(&carrelv1.ListDirRequest{
		Workspace: "ws", Path: "d", After: list.NextAfter,
	})))
	if len(list.Entries) != 1 || string(list.Entries[0].RawPath) != "\xff" || list.NextAfter != "" {
		t.Errorf("the rest of the list: %v", list)
	}
	must[carrelv1.RemoveResponse](t)(files.Remove(ctx, connect.NewRequest(&carrelv1.RemoveRequest{Workspace: "ws", Path: "/d", Recursive: true})))
	mode, beyond := uint32(1<<20), uint64(1<<63)
	for what, tt := range map[string]struct {
		call func() error
		want error
	}{
		"stat": {func() error {
			_, err := files.Stat(ctx, connect.NewRequest(&carrelv1.StatRequest{Workspace: "ws", Path: "/d"}))
			return err
		}, vfs.ErrNotExist},
		"workspace": {func() error {
			_, err := files.Stat(ctx, connect.NewRequest(&carrelv1.StatRequest{Workspace: "none"}))
			return err
		}, vfs.ErrNoWorkspace},
		"read of a directory": {func() error {
			_, err := files.ReadFile(ctx, connect.NewRequest(&carrelv1.ReadFileRequest{Workspace: "ws"}))
			return err
		}, vfs.ErrIsDir},
		"list of a file": {func() error {
			_, err := files.ListDir(ctx, connect.NewRequest(&carrelv1.ListDirRequest{Workspace: "ws", Path: "plain"}))
			return err
		}, vfs.ErrNotDir},
		"mode": {func() error {
			_, err := files.WriteFile(ctx, connect.NewRequest(&carrelv1.WriteFileRequest{Workspace: "ws", Path: "m", Mode: &mode}))
			return err
		}, vfs.ErrInvalid},
		"range of nothing": {func() error {
			_, err := files.WriteFile(ctx, connect.NewRequest(&carrelv1.WriteFileRequest{Workspace: "ws", Path: "new", Offset: &at}))
			return err
		}, vfs.ErrNotExist},
		"range beyond": {func() error {
			_, err := files.WriteFile(ctx, connect.NewRequest(&carrelv1.WriteFileRequest{Workspace: "ws", Path: "plain", Offset: &beyond}))
			return err
		}, vfs.ErrTooBig},
		"remove": {func() error {
			_, err := files.Remove(ctx, connect.NewRequest(&carrelv1.RemoveRequest{Workspace: "ws", Path: "/d"}))
			return err
		}, vfs.ErrNotExist},
		"pattern": {func() error {
			_, err := files.Grep(ctx, connect.NewRequest(&carrelv1.GrepRequest{Workspace: "ws", Pattern: "("}))
			return err
		}, vfs.ErrInvalid},
		"glob": {func() error {
			_, err := files.Find(ctx, connect.NewRequest(&carrelv1.FindRequest{Workspace: "ws", Glob: "["}))
			return err
		}, vfs.ErrInvalid},
	} {
		if err := Error(tt.call()); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", what, err, tt.want)
		}
	}
}

// Find and grep come in pages, and find what the tools of agents do.
func TestSearch(t *testing.T) {
	d := newDesk(t, nil)
	for path, text := range map[string]string{
		"/a.go": "package a\n", "/src/b.go": "package b\nfunc B() {}\n", "/src/\xff.go": "package c\n", "/.git/config": "package\n",
		"/bin": "package\x00",
	} {
		d.write(t, path, text)
	}
	var found []string
	for after := ""; ; {
		r := must[carrelv1.FindResponse](t)(d.Files().Find(t.Context(), connect.NewRequest(&carrelv1.FindRequest{
			Workspace: "ws", Glob: "*.go", Limit: 1, After: after,
		})))
		for _, f := range r.Found {
			found = append(found, rawOr(f.Path, f.RawPath)+":"+f.Type)
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if want := []string{"/a.go:file", "/src/b.go:file", "/src/\xff.go:file"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	var lines []string
	for after := ""; ; {
		r := must[carrelv1.GrepResponse](t)(d.Files().Grep(t.Context(), connect.NewRequest(&carrelv1.GrepRequest{
			Workspace: "ws", Pattern: "^package|B", Limit: 1, After: after, All: true, Path: "/",
		})))
		for _, m := range r.Matches {
			lines = append(lines, fmt.Sprintf("%s:%d:%s", rawOr(m.Path, m.RawPath), m.Line, m.Text))
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if want := []string{
		"/.git/config:1:package", "/a.go:1:package a", "/src/b.go:1:package b", "/src/b.go:2:func B() {}", "/src/\xff.go:1:package c",
	}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{"/c/ws/find?glob=*.go&path=src&limit=1", 200, `{"paths":["/src/b.go"],"next_after":"/src/b.go"}`},
		{"/c/ws/find?type=dir&all=true", 200, `{"paths":["/.git/","/src/"]}`},
		{"/c/ws/find?type=dir&exclude=src", 200, `{"paths":["/.git/"]}`},
		{"/c/ws/find?limit=x", 400, "limit"},
		{"/c/ws/grep?pattern=func", 200, `{"matches":[{"path":"/src/b.go","line":2,"text":"func B() {}"}],"binary":1}`},
		{"/c/ws/grep?pattern=FUNC&ignore_case=true&files=true", 200, `[{"path":"/src/b.go"}]`},
		{"/c/ws/grep?pattern=B()&fixed=true&context=1", 200, `"context":true`},
		{"/c/ws/grep", 400, "grep"},
		{"/c/ws/grep?pattern=x&context=x", 400, "context"},
		{"/c/none/find", 404, "no such workspace"},
	} {
		if code, answer := d.do(t, "GET", tt.path, ""); code != tt.code || !strings.Contains(answer, tt.want) {
			t.Errorf("%s: %d %q, want %d with %q", tt.path, code, answer, tt.code, tt.want)
		}
	}
}

// Who watches is told at once from where on, and then what changes where they look, in messages of bounded size.
func TestWatch(t *testing.T) {
	d := newDesk(t, nil)
	news, err := d.Watch(t.Context(), "ws", "/src", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer news.Close()
	next := func(revision uint64, want ...string) {
		t.Helper()
		m, err := news.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range m.GetChanges() {
			x := Change(c)
			got = append(got, string(x.Kind)+" "+x.Path)
		}
		if m.GetRevision() != revision || !slices.Equal(got, want) {
			t.Errorf("revision %d, %.200q, want %d, %q", m.GetRevision(), got, revision, want)
		}
	}
	next(7)
	d.news <- execd.News{Rev: 8, Changed: []execd.Difference{
		{Kind: execd.Added, Path: "/src/\xff", Type: vfs.TypeRegular, Size: 3}, {Kind: execd.Removed, Path: "/other"},
		{Kind: execd.Renamed, From: "/src/x", Path: "/y"},
	}}
	next(8, "added /src/\xff", "removed /src/x")
	d.news <- execd.News{Rev: 9, Changed: []execd.Difference{{Kind: execd.Added, Path: "/other"}}} // which is nothing here
	d.news <- execd.News{Rev: 10}                                                                  // nothing at all, for long
	next(10)
	many := execd.News{Rev: 11}
	for i := range maxChanges + 1 {
		many.Changed = append(many.Changed, execd.Difference{Kind: execd.Added, Path: fmt.Sprintf("/src/%04d", i)})
	}
	d.news <- many
	if m, err := news.Next(); err != nil || m.GetRevision() != 0 || len(m.GetChanges()) != maxChanges {
		t.Errorf("revision %d, %d changes, %v", m.GetRevision(), len(m.GetChanges()), err)
	}
	next(11, fmt.Sprintf("added /src/%04d", maxChanges))
	for i := range vfs.Rev(maxUntold) {
		d.news <- execd.News{Rev: 12 + i, Changed: []execd.Difference{{Kind: execd.Added, Path: "/other"}}}
	}
	next(11 + maxUntold)

	for name, want := range map[string]error{"none": vfs.ErrNoWorkspace, "unwatched": vfs.ErrNotSupported} {
		n, err := d.Watch(t.Context(), name, "", 0)
		if err == nil {
			_, err = n.Next()
			n.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// A browser's view of the same.
func TestWatchEvents(t *testing.T) {
	d := newDesk(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), "GET", d.url+"/c/ws/watch?path=/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "9")
	answer, err := d.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	d.news <- execd.News{Rev: 12, Changed: []execd.Difference{{Kind: execd.Modified, Path: "/a", Type: vfs.TypeRegular, Fields: []string{"bytes"}}}}
	var lines []string
	for s := bufio.NewScanner(answer.Body); len(lines) < 8 && s.Scan(); {
		lines = append(lines, strings.ReplaceAll(s.Text(), " ", ""))
	}
	want := []string{
		"id:9", "event:changes", `data:{"revision":"9"}`, "",
		"id:12", "event:changes", `data:{"changes":[{"kind":"modified","path":"/a","type":"file","fields":["bytes"]}],"revision":"12"}`, "",
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" || !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	for path, want := range map[string]int{"/c/ws/watch?after=x": 400, "/c/none/watch": 404, "/c/unwatched/watch": 501} {
		if code, _ := d.do(t, "GET", path, ""); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// What is different between two revisions, in pages.
func TestDiff(t *testing.T) {
	d := newDesk(t, nil)
	var pages []int
	q := &carrelv1.DiffRequest{Workspace: "ws", FromRevision: 2, Path: "/1", Limit: 2}
	for {
		r := must[carrelv1.DiffResponse](t)(d.Files().Diff(t.Context(), connect.NewRequest(q)))
		pages = append(pages, len(r.Changes))
		if r.Revision != 12 {
			t.Errorf("compared with revision %d", r.Revision)
		}
		if q.After, q.ToRevision = r.NextAfter, r.Revision; q.After == "" {
			break
		}
	}
	if want := []int{2, 2, 1}; !slices.Equal(pages, want) { // revisions 3, 5, 7, 9 and 11
		t.Errorf("pages of %d changes, want %d", pages, want)
	}
	for want, q := range map[error]*carrelv1.DiffRequest{
		vfs.ErrNoRevision:   {Workspace: "ws"},
		vfs.ErrInvalid:      {Workspace: "ws", FromRevision: 1, After: "-1"},
		vfs.ErrNotSupported: {Workspace: "unwatched", FromRevision: 1},
		vfs.ErrNoWorkspace:  {Workspace: "none", FromRevision: 1},
	} {
		if _, err := d.Files().Diff(t.Context(), connect.NewRequest(q)); !errors.Is(Error(err), want) {
			t.Errorf("%v: %v, want %v", q, err, want)
		}
	}
}
