package execd

import "testing"

// What differs is told to who watches a path as it looks from there.
func TestDifferenceBelow(t *testing.T) {
	renamed := func(from, to string) Difference {
		return Difference{Kind: Renamed, From: from, Path: to, Fields: []string{"bytes"}}
	}
	for _, tt := range []struct {
		d    Difference
		path string
		kind DifferenceKind // "" when nothing is seen
		seen string
	}{
		{Difference{Kind: Added, Path: "/a"}, "/", Added, "/a"},
		{Difference{Kind: Added, Path: "/a"}, "", Added, "/a"},
		{Difference{Kind: Added, Path: "/a"}, "/a", Added, "/a"},
		{Difference{Kind: Added, Path: "/a/b"}, "/a/", Added, "/a/b"},
		{Difference{Kind: Added, Path: "/ab"}, "/a", "", ""},
		{Difference{Kind: Removed, Path: "/a"}, "/a/b", "", ""},
		{Difference{Kind: Modified, Path: "/a/b"}, "/b", "", ""},
		{renamed("/a/x", "/a/y"), "/a", Renamed, "/a/y"},
		{renamed("/a/x", "/b/x"), "/a", Removed, "/a/x"},
		{renamed("/a/x", "/b/x"), "/b", Added, "/b/x"},
		{renamed("/a", "/b"), "/a/x", Renamed, "/b"},
		{renamed("/a", "/b"), "/b/x", Renamed, "/b"},
		{renamed("/a", "/b"), "/c", "", ""},
	} {
		seen, ok := tt.d.Below(tt.path)
		if ok != (tt.kind != "") || ok && (seen.Kind != tt.kind || seen.Path != tt.seen) {
			t.Errorf("%+v from %q: %+v, %t, want %s %s", tt.d, tt.path, seen, ok, tt.kind, tt.seen)
		}
		if ok && seen.Kind != Renamed && (seen.From != "" || seen.Fields != nil) {
			t.Errorf("%+v from %q tells of elsewhere: %+v", tt.d, tt.path, seen)
		}
	}
}
