package syncwire

import (
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// A server that wants to know its clients' keys lets in who has one of them, and a token.
func TestClientKeys(t *testing.T) {
	id := testIdentity(t)
	known := identityOf(t, 1)
	config := ServerConfig{ClientKeys: func(f Fingerprint) bool { return f == known.Fingerprint() }}
	for name, tt := range map[string]struct {
		listen func(string, Identity) (Listener, error)
		dial   func(string, Fingerprint, ...DialOption) Dialer
	}{
		"quic": {func(addr string, id Identity) (Listener, error) { return ListenQUIC(addr, id) }, DialQUIC},
		"tcp":  {ListenTLS, DialTLS},
		"auto": {ListenTLS, func(addr string, pin Fingerprint, o ...DialOption) Dialer {
			d := DialAuto(addr, pin, nil, o...).(*autoDialer)
			d.patience = 0
			return d
		}},
	} {
		l, err := tt.listen("127.0.0.1:0", id)
		if err != nil {
			t.Fatal(err)
		}
		s := serving(t, config, wiretest.NewMemory(vfs.Epoch{1}), l)
		for who, c := range map[string]struct {
			options []DialOption
			token   string
			want    error
		}{
			"known":                  {[]DialOption{As(known)}, "secret", nil},
			"known, without a token": {[]DialOption{As(known)}, "", ErrToken},
			"another key":            {[]DialOption{As(identityOf(t, 2))}, "secret", ErrClientKey},
			"the server's own key":   {[]DialOption{As(id)}, "secret", ErrClientKey},
			"no key":                 {nil, "secret", ErrClientKey},
		} {
			client := client(t, tt.dial(l.Addr().String(), id.Fingerprint(), c.options...), 0, c.token)
			if _, err := client.Position(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", name, who, err, c.want)
			}
			client.loseSession() // another connection resumes the TLS session, and the key with it
			if _, err := client.Position(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("%s, %s, again: %v, want %v", name, who, err, c.want)
			}
			client.Close()
		}
		if stats := s.Stats(); stats.BadKeys == 0 || stats.Begun == 0 {
			t.Errorf("%s: %+v", name, stats)
		}
	}
}

// A key that is taken away ends the sessions of its client, and of nobody else.
func TestClientKeyTakenAway(t *testing.T) {
	id, mine, other := testIdentity(t), identityOf(t, 1), identityOf(t, 2)
	var gone atomic.Bool
	config := ServerConfig{ClientKeys: func(f Fingerprint) bool { return f == other.Fingerprint() || !gone.Load() }}
	l, err := ListenQUIC("127.0.0.1:0", id)
	if err != nil {
		t.Fatal(err)
	}
	s := serving(t, config, wiretest.NewMemory(vfs.Epoch{1}), l)
	clients := make([]*Client, 2)
	for i, who := range []Identity{mine, other} {
		clients[i] = client(t, DialQUIC(l.Addr().String(), id.Fingerprint(), As(who)), i, "secret")
		if _, err := clients[i].Welcome(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.CheckClientKeys()
	gone.Store(true)
	waits := make(chan error, 1)
	go func() {
		_, err := clients[0].Wait(t.Context(), 1)
		waits <- err
	}()
	s.CheckClientKeys()
	if err := <-waits; !errors.Is(err, ErrClientKey) {
		t.Errorf("who waits: %v", err)
	}
	if _, err := clients[1].Position(t.Context()); err != nil || clients[1].Stats().Sessions != 1 {
		t.Errorf("another client: %v, %+v", err, clients[1].Stats())
	}
}

// loseSession ends the session that there is, as a cut does.
func (c *Client) loseSession() {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	if v != nil {
		v.end(errSilent)
	}
}

// On a unix socket the kernel says who it is.
func TestClientKeysOnUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	config := ServerConfig{ClientKeys: func(Fingerprint) bool { return false }}
	serving(t, config, wiretest.NewMemory(vfs.Epoch{1}), l)
	if _, err := client(t, DialUnix(path), 0, "secret").Position(t.Context()); err != nil {
		t.Error(err)
	}
}

func identityOf(t *testing.T, seed byte) Identity {
	b := make([]byte, ed25519.SeedSize)
	b[0] = seed
	id, err := NewIdentity(ed25519.NewKeyFromSeed(b))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
