package chunk

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// vectors runs decode on every case of a file in testdata. A case is named by its verdict, "ok" or "corrupt", and what
// it is about. It holds hexadecimal digits and, after "= ", the lines that decode must return. decode also returns
// what its result encodes to, which must be the bytes again.
func vectors(t *testing.T, file string, decode func([]byte) (dump string, again []byte, err error)) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		verdict, _, _ := strings.Cut(f.Name, " ")
		b, want := parseVector(t, f)
		dump, again, err := decode(b)
		switch {
		case verdict == "corrupt" && !errors.Is(err, ErrCorrupt):
			t.Errorf("%s: %s: got %q, %v", file, f.Name, dump, err)
		case verdict == "ok" && (err != nil || dump != want):
			t.Errorf("%s: %s: %v, got\n%swant\n%s", file, f.Name, err, dump, want)
		case verdict == "ok" && !bytes.Equal(again, b):
			t.Errorf("%s: %s: encodes to %x", file, f.Name, again)
		case verdict != "ok" && verdict != "corrupt":
			t.Errorf("%s: %s: no verdict", file, f.Name)
		}
	}
}

func parseVector(t testing.TB, f txtar.File) (b []byte, want string) {
	t.Helper()
	for line := range strings.Lines(string(f.Data)) {
		if rest, ok := strings.CutPrefix(line, "= "); ok {
			want += rest
			continue
		}
		part, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		b = append(b, part...)
	}
	return b, want
}

func dumpEntries(entries []Entry) string {
	var s strings.Builder
	for _, e := range entries {
		if e.Hole {
			fmt.Fprintf(&s, "hole %d\n", e.Len)
		} else {
			fmt.Fprintf(&s, "chunk %s %d\n", e.ID, e.Len)
		}
	}
	return s.String()
}

// allOf turns left-over bytes into an error, for encodings that may have others behind them.
func allOf(rest []byte, err error) error {
	if err == nil && len(rest) > 0 {
		return corrupt("%d bytes left over", len(rest))
	}
	return err
}

func TestEntriesVectors(t *testing.T) {
	vectors(t, "entries.txtar", func(b []byte) (string, []byte, error) {
		entries, rest, err := DecodeEntries(b, MaxInline)
		return dumpEntries(entries), AppendEntries(nil, entries), allOf(rest, err)
	})
}

func TestNodeVectors(t *testing.T) {
	vectors(t, "node.txtar", func(b []byte) (string, []byte, error) {
		n, err := DecodeNode(b)
		dump := fmt.Sprintf("level %d\n", n.Level) + dumpEntries(n.Entries)
		for _, c := range n.Children {
			dump += fmt.Sprintf("child %s %d %d\n", c.ID, c.Size, c.Entries)
		}
		return dump, AppendNode(nil, n), err
	})
}

func TestRootVectors(t *testing.T) {
	vectors(t, "root.txtar", func(b []byte) (string, []byte, error) {
		r, rest, err := DecodeRoot(b)
		return fmt.Sprintf("%s %d %d %d %d\n", r.ID, r.Level, r.Len, r.Size, r.Stored), AppendRoot(nil, r), allOf(rest, err)
	})
}
