package step

import (
	"strings"
	"testing"
	"time"
)

// Steps that cannot be meant say so, and do nothing.
func TestMainRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "the steps are append"},
		{[]string{"fly"}, "no step"},
		{[]string{"create"}, "takes N"},
		{[]string{"create", "1", "2"}, "takes N"},
		{[]string{"create", "0"}, "no number above zero"},
		{[]string{"create", "x"}, "no number above zero"},
		{[]string{"stat", "1"}, "no such file"},
		{[]string{"read", "10", "10"}, "no such file"},
	} {
		if err := Main(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("step %q: %v, want %q", tt.args, err, tt.want)
		}
	}
}

func TestTime(t *testing.T) {
	if d, err := Time([]byte("1500\n")); d != 1500*time.Nanosecond || err != nil {
		t.Errorf("Time = %v, %v", d, err)
	}
	for _, bad := range []string{"", "0", "-1", "1 2", "x"} {
		if _, err := Time([]byte(bad)); err == nil {
			t.Errorf("%q is a time", bad)
		}
	}
}

// No page of a source comes twice, however often its pool is used.
func TestSource(t *testing.T) {
	s := newSource(8*page, 2*page)
	s.pool = s.pool[:4*page]
	seen := map[string]bool{}
	for range 20 {
		b := s.block(2 * page)
		for at := 0; at < len(b); at += page {
			p := string(b[at : at+page])
			if seen[p] {
				t.Fatal("a page has come twice")
			}
			seen[p] = true
		}
	}
}
