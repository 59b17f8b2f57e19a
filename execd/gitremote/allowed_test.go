package gitremote

import (
	"net/url"
	"testing"
)

func TestAllowed(t *testing.T) {
	for _, tt := range []struct {
		entry, url string
		want       bool
	}{
		{"https://h/", "https://h/x.git", true},
		{"https://h", "https://h/a/b", true},
		{"https://h/a", "https://h/a", true},
		{"https://h/a", "https://h/a/", true},
		{"https://h/a", "https://h/a/b.git/info/refs?service=git-upload-pack", true},
		{"https://h/a/", "https://h/a/b", true},
		{"https://h/a", "https://h/ab", false},
		{"https://h/a", "https://h/a.git", false},
		{"https://h/a", "https://h/", false},
		{"https://h/a", "https://h/a/../b", false},
		{"https://h/a", "https://h/a/%2e%2e/b", false},
		{"https://h/a", "https://h/a/..%2fb", false},
		{"https://h/a", "https://h/a//b", false},
		{"https://h/a", `https://h/a/b\..\..\c`, false},
		{"https://h/a", "http://h/a/b", false},
		{"https://h/a", "https://h:443/a/b", true},
		{"https://h/a", "https://h:444/a/b", false},
		{"https://h:444/a", "https://h:444/a/b", true},
		{"http://h/a", "http://h:80/a/b", true},
		{"https://H/a", "https://h./a/b", true},
		{"https://h/a", "https://h.evil/a/b", false},
		{"https://h/a", "https://h@evil/a/b", false},
		{"https://h/a", "https://evil@h/a/b", true},
		{"https://h/a", "file:///a/b", false},
		{"file:///srv/git", "file:///srv/git/x.git", true},
		{"file:///srv/git", "file://localhost/srv/git/x.git", true},
		{"file:///srv/git", "file://h/srv/git/x.git", false},
		{"file:///srv/git", "file:///srv/gitx", false},
		{"file:///srv/git", "file:///srv/git/../x", false},
		{"https://[::1]:8/a", "https://[::1]:8/a/b", true},
	} {
		e, err := parseEntry(tt.entry)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(tt.url)
		if err != nil {
			if tt.want {
				t.Error(err)
			}
			continue
		}
		o, ok := entryOf(u)
		if got := ok && e.holds(o); got != tt.want {
			t.Errorf("%s allows %s: %t", tt.entry, tt.url, got)
		}
	}
	for _, bad := range []string{"", "h/a", "ssh://h/a", "git@h:a", "https://u:p@h/a", "https://h/a?b", "https://h/a/../b", "https:///a", "file://h/a", "file:///", "/srv/git"} {
		if e, err := parseEntry(bad); err == nil {
			t.Errorf("%q is an entry: %+v", bad, e)
		}
	}
}
