package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// What is read of tokens, by the first byte of the input.
const (
	shownText = iota // what a client shows
	heldFile         // the file in which its holder keeps it
	keptFile         // the file of all tokens
	texts
)

// The one token that is known where texts are fuzzed.
const (
	knownID     = "aaaaaaaaaaaaa"
	knownSecret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U"
	knownText   = prefix + knownID + "_" + knownSecret
)

// FuzzToken: whatever a client shows, nobody is let in but with a token that is there; and what a file holds is written as
// what reads the same.
func FuzzToken(f *testing.F) {
	all := Token{ID: knownID, Subject: knownID, Rights: syncwire.RightRead, All: true, Created: epoch}
	some := Token{
		ID: knownID, Subject: "ci", Rights: readWrite, Workspaces: []string{"a\xff"}, Created: epoch,
		Expires: epoch.Add(time.Hour),
	}
	kept := [][]byte{keptOf(f, all), keptOf(f, some), nil}
	for _, s := range []string{"{}", `{"version":2}`, `{"version":1,"tokens":[{}]}`} {
		kept = append(kept, []byte(s))
	}
	for _, b := range kept {
		f.Add(append([]byte{keptFile}, b...))
	}
	for _, s := range []string{knownText, knownText + "A", prefix, prefix + knownID + "_", "_" + knownSecret, "", "\xff\n"} {
		f.Add(append([]byte{shownText}, s...))
		f.Add(append([]byte{heldFile}, s+"\n"...))
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), kept[0], 0o600); err != nil {
		f.Fatal(err)
	}
	v, err := NewVerifier(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		switch kind, b := b[0]%texts, b[1:]; kind {
		case shownText:
			g, err := v.Verify(t.Context(), b, "w")
			if known := string(b) == knownText; known != (err == nil) || !known && (g.Rights != 0 || !errors.Is(err, syncwire.ErrToken)) {
				t.Fatalf("%q: %+v, %v", b, g, err)
			}
		case heldFile:
			text, ok := trimText(b)
			if again, too := trimText(text); ok && (!too || !bytes.Equal(again, text) || strings.TrimSpace(string(b)) != string(text)) {
				t.Fatalf("%q is %q, which is %q", b, text, again)
			}
		case keptFile:
			checkKept(t, b)
		}
	})
}

func keptOf(t testing.TB, tokens ...Token) []byte {
	f := file{Version: fileVersion}
	for _, k := range tokens {
		f.Tokens = append(f.Tokens, entryOf(k, hashOf(knownSecret)))
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkKept: every token of a file that is read is one that can be meant, and is written as what reads the same.
func checkKept(t *testing.T, b []byte) {
	f, err := parseFile(b)
	if err != nil {
		if !errors.Is(err, vfs.ErrCorrupt) && !errors.Is(err, vfs.ErrNewerFormat) {
			t.Fatal(err)
		}
		return
	}
	for _, e := range f.Tokens {
		k, hash, err := e.token()
		if err != nil {
			if !errors.Is(err, vfs.ErrCorrupt) {
				t.Fatal(err)
			}
			continue
		}
		text, err := json.Marshal(entryOf(k, hash))
		if err != nil {
			t.Fatal(err)
		}
		var again entry
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		k2, hash2, err := again.token()
		if !k.Created.Equal(k2.Created) || !k.Expires.Equal(k2.Expires) {
			t.Fatalf("%s: other times than %s", text, b)
		}
		k2.Created, k2.Expires = k.Created, k.Expires // as == has them, which looks at zones
		if err != nil || hash2 != hash || !reflect.DeepEqual(k2, k) {
			t.Fatalf("%+v becomes %+v, %v", k, k2, err)
		}
	}
}
