package serving

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/syncwire"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	// Replaced, as an editor does: within a tick of the clock a file that is written to looks the same.
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
}

// What the file says holds at once, and a file that says something else lets nobody in.
func TestClientKeysFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	log := slog.New(slog.DiscardHandler)
	if _, err := openClientKeys(path, log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	a, b := syncwire.Fingerprint{1}, syncwire.Fingerprint{2}
	writeFile(t, path, "# ours\n\n"+a.String()+"\tthe laptop\n")
	k, err := openClientKeys(path, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text string
		a, b bool
	}{
		{a.String(), true, false},
		{a.String() + "\n" + b.String() + " ci\n", true, true},
		{b.String(), false, true},
		{b.String() + "\nnonsense\n", false, false},
		{"", false, false},
		{strings.Repeat("# x\n", 1<<19) + a.String(), false, false},
		{a.String() + "\n", true, false},
	} {
		writeFile(t, path, step.text)
		if gotA, gotB := k.knows(a), k.knows(b); gotA != step.a || gotB != step.b {
			t.Errorf("with %.80q: %t, %t", step.text, gotA, gotB)
		}
	}
	if err := os.Remove(path); err != nil || k.knows(a) {
		t.Errorf("%v; without a file somebody is known", err)
	}
}

// Who has a token is let in with a key that the file holds, by either transport, and shut out when it is taken out.
func TestServeToClientKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	mine, err := syncwire.LoadIdentity(filepath.Join(t.TempDir(), "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := syncwire.NewIdentity(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, mine.Fingerprint().String())
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0", ClientKeys: path})
	defer s.finish(t)
	_, secret, err := token.Create(s.dir, token.Token{Rights: syncwire.RightRead, All: true}, s.now.Since)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := syncwire.ParseFingerprint(s.now.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	tokenOf := func(context.Context) ([]byte, error) { return []byte(secret), nil }
	try := func(want error, options ...syncwire.DialOption) {
		t.Helper()
		for _, dialer := range []syncwire.Dialer{
			syncwire.DialQUIC(s.now.Listen, pin, options...), syncwire.DialTLS(s.now.TLS, pin, options...),
		} {
			c := syncwire.NewClient(syncwire.ClientConfig{Dialer: dialer, Workspace: "demo", Token: tokenOf})
			if _, err := c.Welcome(t.Context()); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			c.Close()
		}
	}
	try(nil, syncwire.As(mine))
	try(syncwire.ErrClientKey, syncwire.As(other))
	try(syncwire.ErrClientKey)
	stays := syncwire.NewClient(syncwire.ClientConfig{
		Dialer: syncwire.DialQUIC(s.now.Listen, pin, syncwire.As(mine)), Workspace: "demo", Token: tokenOf,
	})
	defer stays.Close()
	w, err := stays.Welcome(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "nonsense")
	if _, err := s.service.Served(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := stays.Position(t.Context()); err != nil || stays.Stats().Sessions != 1 {
		t.Errorf("while the file cannot be read: %v, %+v", err, stays.Stats())
	}
	writeFile(t, path, other.Fingerprint().String())
	if _, err := stays.Wait(t.Context(), w.Position.Rev); !errors.Is(err, syncwire.ErrClientKey) {
		t.Errorf("in a session whose key was taken away: %v", err)
	}
	try(syncwire.ErrClientKey, syncwire.As(mine))
	if _, err := s.local(t, "demo").Welcome(t.Context()); err != nil {
		t.Errorf("at the unix socket: %v", err)
	}
	if list, err := s.service.Served(t.Context()); err != nil || list[0].Traffic.BadKeys < 6 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A file of client keys that cannot be read is told before anything is served.
func TestServeWithoutClientKeys(t *testing.T) {
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0"})
	defer s.finish(t)
	dir := t.TempDir()
	again := New(Config{
		Store: s.store, Dir: dir, Log: slog.New(slog.DiscardHandler), Keep: func() (func(), error) { return func() {}, nil },
	})
	path := filepath.Join(dir, "keys")
	o := control.ServeOptions{Listen: "127.0.0.1:0", ClientKeys: path}
	if err := again.Serve(t.Context(), o, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	writeFile(t, path, "nonsense")
	if err := again.Serve(t.Context(), o, nil); !errors.Is(err, vfs.ErrCorrupt) {
		t.Error(err)
	}
}
