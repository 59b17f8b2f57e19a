package token

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

const readWrite = syncwire.RightRead | syncwire.RightWrite

func create(t *testing.T, dir string, want Token) (Token, string) {
	t.Helper()
	made, text, err := Create(dir, want, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return made, text
}

func verifier(t *testing.T, dir string) *Verifier {
	t.Helper()
	v, err := NewVerifier(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	v.now = func() time.Time { return epoch }
	return v
}

func isOver(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("without a file: %v, %v", list, err)
	}
	made, text := create(t, dir, Token{Subject: "ci", Rights: readWrite, Workspaces: []string{"a\xff", "b"},
		Expires: epoch.Add(time.Hour)})
	unnamed, _ := create(t, dir, Token{Rights: syncwire.RightRead, All: true})
	if unnamed.Subject != unnamed.ID {
		t.Errorf("without a subject it is %q", unnamed.Subject)
	}
	list, err := List(dir)
	if err != nil || !reflect.DeepEqual(list, []Token{made, unnamed}) {
		t.Errorf("List = %+v, %v, want %+v", list, err, []Token{made, unnamed})
	}
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	b, err := os.ReadFile(path)
	if _, secret := splitText(text); err != nil || strings.Contains(string(b), secret) {
		t.Errorf("the file holds the secret, or: %v", err)
	}
	if err := Remove(dir, made.ID); err != nil {
		t.Error(err)
	}
	if err := Remove(dir, made.ID); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("a second Remove: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	for name, bad := range map[string]Token{
		"no rights":        {All: true},
		"not read":         {All: true, Rights: syncwire.RightWrite},
		"no workspace":     {Rights: readWrite},
		"some and all":     {Rights: readWrite, All: true, Workspaces: []string{"a"}},
		"long subject":     {Rights: readWrite, All: true, Subject: strings.Repeat("x", maxSubject+1)},
		"unprintable":      {Rights: readWrite, All: true, Subject: "a\nb"},
		"subject not text": {Rights: readWrite, All: true, Subject: "\xff"},
	} {
		if _, _, err := Create(t.TempDir(), bad, epoch); !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestCreateAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := Create(dir, Token{Rights: readWrite, All: true}, epoch); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := List(dir); err != nil || len(list) != 8 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	v := verifier(t, dir) // the tokens come later: the file is looked at each time
	_, some := create(t, dir, Token{Subject: "ci", Rights: readWrite, Workspaces: []string{"a", "b"}})
	made, all := create(t, dir, Token{Rights: syncwire.RightRead, All: true, Expires: epoch.Add(time.Nanosecond)})
	_, old := create(t, dir, Token{Rights: syncwire.RightRead, All: true, Expires: epoch})
	for _, tt := range []struct {
		name, text, workspace string
		want                  syncwire.Rights // zero for ErrToken
	}{
		{"one of its workspaces", some, "b", readWrite},
		{"another workspace", some, "c", 0},
		{"any workspace", all, "c", syncwire.RightRead},
		{"expired", old, "a", 0},
		{"cut", some[:len(some)-1], "a", 0},
		{"longer", some + "A", "a", 0},
		{"a line end", some + "\n", "a", 0},
		{"the secret of another", prefix + made.ID + "_" + strings.SplitN(some, "_", 3)[2], "a", 0},
		{"another id", prefix + "aaaa" + some[len(prefix)+4:], "a", 0},
		{"no prefix", some[len(prefix):], "a", 0},
		{"nothing", "", "a", 0},
		{"only a prefix", prefix, "a", 0},
	} {
		g, err := v.Verify(t.Context(), []byte(tt.text), tt.workspace)
		if g.Rights != tt.want || (tt.want == 0) != errors.Is(err, syncwire.ErrToken) || (tt.want != 0) != (err == nil) {
			t.Errorf("%s: %+v, %v", tt.name, g, err)
		}
	}
	if g, _ := v.Verify(t.Context(), []byte(some), "a"); g.Subject != "ci" || !g.Expires.IsZero() || isOver(g.Revoked) {
		t.Errorf("grant %+v", g)
	}
}

// A token that is removed is not accepted from then on, and what it began ends; others go on.
func TestRevoke(t *testing.T) {
	dir := t.TempDir()
	made, text := create(t, dir, Token{Rights: readWrite, All: true})
	_, other := create(t, dir, Token{Rights: readWrite, All: true})
	v := verifier(t, dir)
	g, err := v.Verify(t.Context(), []byte(text), "w")
	if err != nil {
		t.Fatal(err)
	}
	stays, err := v.Verify(t.Context(), []byte(other), "w")
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, made.ID); err != nil {
		t.Fatal(err)
	}
	if err := v.Reload(); err != nil || !isOver(g.Revoked) || isOver(stays.Revoked) {
		t.Errorf("after Reload: %v, revoked %t and %t", err, isOver(g.Revoked), isOver(stays.Revoked))
	}
	if _, err := v.Verify(t.Context(), []byte(text), "w"); !errors.Is(err, syncwire.ErrToken) {
		t.Errorf("a removed token: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), []byte(other), "w"); !errors.Is(err, syncwire.ErrToken) || !isOver(stays.Revoked) {
		t.Errorf("without a file: %v, revoked %t", err, isOver(stays.Revoked))
	}
}

// A file that cannot be understood lets nobody in, and is not the clients' fault.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	_, text := create(t, dir, Token{Rights: readWrite, All: true})
	v := verifier(t, dir)
	good, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"no JSON":       "{",
		"later version": `{"version":2}`,
		"no such right": strings.Replace(string(good), `"read,write"`, `"read,fly"`, 1),
		"short hash":    strings.Replace(string(good), `"sha256": "`, `"sha256": "AAAA`, 1),
	} {
		path := filepath.Join(dir, fileName)
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(bad), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(t.Context(), []byte(text), "w"); !errors.Is(err, syncwire.ErrOverloaded) {
			t.Errorf("%s: %v, want ErrOverloaded", name, err)
		}
		_, listErr := List(dir)
		_, newErr := NewVerifier(dir, slog.New(slog.DiscardHandler))
		if listErr == nil || newErr == nil {
			t.Errorf("%s: listed as %v, read as %v", name, listErr, newErr)
		}
	}
}
