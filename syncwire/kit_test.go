package syncwire

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tokens are what a Verifier of the tests knows.
type tokens map[string]Grant

func (t tokens) Verify(_ context.Context, token []byte, workspace string) (Grant, error) {
	g, ok := t[string(token)]
	if !ok || workspace == "forbidden" {
		return Grant{}, ErrToken
	}
	return g, nil
}

func testTokens() tokens {
	return tokens{
		"secret": {Subject: "tester", Rights: RightRead | RightWrite | RightExec},
		"reader": {Subject: "reader", Rights: RightRead},
	}
}

// testIdentity is the same in every test, so that failures can be compared.
func testIdentity(t testing.TB) Identity {
	id, err := NewIdentity(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// transports are the ways from a client to a server.
var transports = map[string]func(t testing.TB) (Listener, Dialer){
	"unix": func(t testing.TB) (Listener, Dialer) {
		path := filepath.Join(t.TempDir(), "sync.sock")
		l, err := ListenUnix(path)
		if err != nil {
			t.Fatal(err)
		}
		return l, DialUnix(path)
	},
	"quic": func(t testing.TB) (Listener, Dialer) {
		id := testIdentity(t)
		l, err := ListenQUIC("127.0.0.1:0", id)
		if err != nil {
			t.Fatal(err)
		}
		return l, DialQUIC(l.Addr().String(), id.Fingerprint())
	},
	"tcp": func(t testing.TB) (Listener, Dialer) {
		id := testIdentity(t)
		l, err := ListenTLS("127.0.0.1:0", id)
		if err != nil {
			t.Fatal(err)
		}
		return l, DialTLS(l.Addr().String(), id.Fingerprint())
	},
}

// serving runs a server of one workspace, "demo", until the test ends.
func serving(t testing.TB, config ServerConfig, authority vfs.Authority, l Listener) *Server {
	config.Open = func(_ context.Context, workspace string) (vfs.Authority, error) {
		if workspace != "demo" {
			return nil, fmt.Errorf("workspace %q: %w", workspace, vfs.ErrNoWorkspace)
		}
		return authority, nil
	}
	if config.Verifier == nil {
		config.Verifier = testTokens()
	}
	s := NewServer(config)
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// client returns the n-th client of a test.
func client(t testing.TB, d Dialer, n int, token string) *Client {
	c := NewClient(ClientConfig{
		Dialer: d, Workspace: "demo", Mirror: [16]byte{byte(n + 1)}, Agent: "test",
		Token: func(context.Context) ([]byte, error) { return []byte(token), nil },
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// A client passes for the authority at the other end, by every transport.
func TestKit(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.Run(t, func(t *testing.T) wiretest.Subject {
				l, d := transport(t)
				serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
				clients := make([]*Client, 4)
				for n := range clients {
					clients[n] = client(t, d, n, "secret")
				}
				return wiretest.Subject{
					Peer: func(n int) (vfs.Authority, vfs.PeerID) { return clients[n], vfs.PeerID{} },
				}
			})
		})
	}
}
