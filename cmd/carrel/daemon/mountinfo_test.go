package daemon

import (
	"strings"
	"testing"
)

func TestParseEntries(t *testing.T) {
	const text = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
99 22 0:44 / /mnt/with\040space\134\011 rw,nosuid shared:7 master:2 - fuse.carrel demo@/stores/a\040b rw,user_id=0
short line - nothing
100 22 0:45 / /mnt/x rw - tmpfs none rw`
	entries, err := parseEntries(strings.NewReader(text))
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	e := entries[1]
	if e.Dir != "/mnt/with space\\\t" || !e.Ours() {
		t.Errorf("entry %+v", e)
	}
	if workspace, store := e.Workspace(); workspace != "demo" || store != "/stores/a b" {
		t.Errorf("workspace %q of store %q", workspace, store)
	}
	if entries[0].Ours() || entries[2].Type != "tmpfs" {
		t.Errorf("entries %+v", entries)
	}
}

func TestEntryWorkspace(t *testing.T) {
	for source, want := range map[string][2]string{
		"demo@/stores/a b": {"demo", "/stores/a b"}, "demo@12345@/store": {"demo@12345", "/store"}, "demo@before@/a@b/@/c": {"demo@before", "/a@b/@/c"},
		"demo@2h30m@/": {"demo@2h30m", "/"}, "carrel": {"carrel", ""},
	} {
		if workspace, store := (Entry{Source: source}).Workspace(); workspace != want[0] || store != want[1] {
			t.Errorf("%s is of %q in %q, want %q", source, workspace, store, want)
		}
	}
}

func TestTopmost(t *testing.T) {
	entries := []Entry{{"/a", "ext4", "first"}, {"/b", "ext4", ""}, {"/a", "tmpfs", "second"}}
	if e, ok := topmost(entries, "/a"); !ok || e.Source != "second" {
		t.Errorf("topmost = %+v, %t", e, ok)
	}
	if _, ok := topmost(entries, "/c"); ok {
		t.Error("found what is not there")
	}
}

func TestOver(t *testing.T) {
	entries := []Entry{{"/", "ext4", "root"}, {"/a", "ext4", "first"}, {"/a/b", "ext4", "deep"}, {"/a", "tmpfs", "second"}}
	for path, want := range map[string]string{
		"/": "root", "/ab": "root", "/a": "second", "/a/x": "second", "/a/b": "deep", "/a/b/c": "deep", "/a/bc": "second",
	} {
		if e, ok := over(entries, path); !ok || e.Source != want {
			t.Errorf("over %s is %+v, %t, want %s", path, e, ok, want)
		}
	}
	if e, ok := over(nil, "/"); ok {
		t.Errorf("%+v is over nothing", e)
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`a`: "a", `\040`: " ", `a\134b`: `a\b`, `\04`: `\04`, `\999`: `\999`,
		`\377`: "\xff"} {
		if got := unescape(in); got != want {
			t.Errorf("unescape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add(`99 22 0:44 / /mnt/x\040y rw - fuse.carrel demo@/s rw`)
	f.Fuzz(func(t *testing.T, line string) {
		if e, ok := parseEntry(line); ok && e.Type == "" {
			t.Errorf("%q gives a mount without a type", line)
		}
	})
}
