package syncwire

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// A server with another key than the pinned one is not talked to.
func TestFingerprint(t *testing.T) {
	id := testIdentity(t)
	other := id.Fingerprint()
	other[0]++
	for name, listen := range map[string]func() (Listener, error){
		"quic": func() (Listener, error) { return ListenQUIC("127.0.0.1:0", id) },
		"tcp":  func() (Listener, error) { return ListenTLS("127.0.0.1:0", id) },
	} {
		l, err := listen()
		if err != nil {
			t.Fatal(err)
		}
		serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
		dial := map[string]func(string, Fingerprint, ...DialOption) Dialer{"quic": DialQUIC, "tcp": DialTLS}[name]
		_, err = client(t, dial(l.Addr().String(), other), 0, "secret").Position(t.Context())
		if !errors.Is(err, ErrFingerprint) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TCP is taken where UDP does not get through, and QUIC where it does.
func TestAuto(t *testing.T) {
	id := testIdentity(t)
	l, hole := listenBeside(t, id)
	addr := l.Addr().String()
	s := serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
	dial := func(patience time.Duration) string {
		d := DialAuto(addr, id.Fingerprint(), nil).(*autoDialer)
		d.patience = patience
		c := client(t, d, 0, "secret")
		if _, err := c.Position(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return s.Stats().Sessions[0].Transport
	}
	if got := dial(10 * time.Millisecond); got != "tcp" {
		t.Errorf("without UDP: %s", got)
	}
	for len(s.Stats().Sessions) > 0 {
		time.Sleep(time.Millisecond)
	}
	hole.Close()
	q, err := ListenQUIC(addr, id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, q) }()
	if got := dial(time.Minute); got != "quic" {
		t.Errorf("with UDP: %s", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// listenBeside listens on TCP, and on the UDP port of the same number has what swallows all that comes.
func listenBeside(t *testing.T, id Identity) (l Listener, hole net.PacketConn) {
	t.Helper()
	for {
		l, err := ListenTLS("127.0.0.1:0", id)
		if err != nil {
			t.Fatal(err)
		}
		hole, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			t.Cleanup(func() { hole.Close() }) // again
			return l, hole
		}
		if l.Close(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	a, err := LoadIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadIdentity(path)
	if err != nil || a.Fingerprint() != b.Fingerprint() {
		t.Errorf("another key the second time (%v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	f, err := ParseFingerprint(a.Fingerprint().String())
	if err != nil || f != a.Fingerprint() {
		t.Errorf("%v, %v", f, err)
	}
	for _, bad := range []string{"", "short", strings.Repeat("A", 44), strings.Repeat("!", 43),
		strings.Repeat("A", 42) + "\nA",
	} {
		if _, err := ParseFingerprint(bad); !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(path); !errors.Is(err, vfs.ErrCorrupt) {
		t.Error(err)
	}
}

func TestTarget(t *testing.T) {
	pin := testIdentity(t).Fingerprint()
	for _, tt := range []struct {
		url  string
		want Target
		ok   bool
	}{
		{"carrel://host/ws", Target{Addr: "host:4477", Workspace: "ws"}, true},
		{"carrel://" + pin.String() + "@[::1]:99/w%20s", Target{Addr: "[::1]:99", Pin: pin, Workspace: "w s"}, true},
		{"http://host/ws", Target{}, false},
		{"carrel://host", Target{}, false},
		{"carrel://host/", Target{}, false},
		{"carrel:///ws", Target{}, false},
		{"carrel://t::/ws", Target{}, false},
		{"carrel://:4477/ws", Target{}, false},
		{"carrel://[fe80::1%25eth0]/ws", Target{Addr: "[fe80::1%eth0]:4477", Workspace: "ws"}, true},
		{"carrel://[fe80::1%25\xff]/ws", Target{}, false},
		{"carrel://a%E2%80%83b/ws", Target{}, false},
		{"carrel://host/a/b", Target{}, false},
		{"carrel://host/ws?x", Target{}, false},
		{"carrel://user@host/ws", Target{}, false},
		{"carrel://" + pin.String() + ":secret@host/ws", Target{}, false},
		{"carrel://host:port/ws", Target{}, false},
	} {
		got, err := ParseTarget(tt.url)
		if got != tt.want && tt.ok || (err == nil) != tt.ok || err != nil && !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("%s: %+v, %v", tt.url, got, err)
		}
		if again, err := ParseTarget(got.String()); tt.ok && (err != nil || again != got) {
			t.Errorf("%s becomes %s: %v", tt.url, got, err)
		}
	}
	for _, r := range []Rights{RightRead, RightRead | RightWrite | RightExec | RightAdmin} {
		if got, ok := ParseRights(r.String()); !ok || got != r {
			t.Errorf("%v is parsed as %v", r, got)
		}
	}
	if _, ok := ParseRights("read,nothing"); ok {
		t.Error("a right that there is not")
	}
}

// A server that is asked for its key shows it, by either transport.
func TestAskFingerprint(t *testing.T) {
	for _, name := range []string{"quic", "tcp"} {
		l, _ := transports[name](t)
		serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
		got, err := AskFingerprint(t.Context(), l.Addr().String())
		if err != nil || got != testIdentity(t).Fingerprint() {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
