package syncwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

func TestTokens(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, m *wiretest.Memory, _ *Server) {
		ctx := context.Background()
		for name, tt := range map[string]struct {
			token, workspace string
			want             error
		}{
			"good":                     {"secret", "demo", nil},
			"no token":                 {"", "demo", ErrToken},
			"unknown":                  {"guess", "demo", ErrToken},
			"for another workspace":    {"secret", "forbidden", ErrToken},
			"no such workspace":        {"secret", "nothing", vfs.ErrNoWorkspace},
			"a longer one than may be": {strings.Repeat("x", maxToken+1), "demo", ErrProtocol},
		} {
			c := client(t, n, 0, tt.token)
			c.config.Workspace = tt.workspace
			if _, err := c.Position(ctx); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
	})
}

// A reader reads, and that is all.
func TestRights(t *testing.T) {
	inLab(t, ServerConfig{Services: map[string]Service{"exec": {Rights: RightExec}}}, func(
		t *testing.T, n *lab, m *wiretest.Memory, _ *Server,
	) {
		ctx := context.Background()
		c := client(t, n, 0, "reader")
		if _, err := c.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { return nil }); err != nil {
			t.Error(err)
		}
		before, _ := m.Position(ctx)
		for name, f := range map[string]func() error{
			"lease":   func() error { _, err := c.LeaseInos(ctx, vfs.PeerID{}, 1); return err },
			"push":    func() error { _, err := c.Push(ctx, vfs.PeerID{}, vfs.Push{}); return err },
			"store":   func() error { return c.WriteChunks(ctx, []vfs.Chunk{plainChunk(10)}) },
			"service": func() error { _, err := c.OpenService(ctx, "exec"); return err },
		} {
			if err := f(); !errors.Is(err, ErrRights) {
				t.Errorf("%s: %v, want %v", name, err, ErrRights)
			}
		}
		if after, _ := m.Position(ctx); after != before {
			t.Error("something was written")
		}
		w, err := c.Welcome(ctx)
		if err != nil || w.Rights != RightRead || w.Position != before {
			t.Errorf("welcome %+v, %v", w, err)
		}
	})
}

// A token that allows only programs to be run opens a session, and no file.
func TestExecOnly(t *testing.T) {
	run := Service{Rights: RightExec, Serve: func(_ context.Context, s ServiceStream) error {
		_, err := io.WriteString(s, "ran")
		return err
	}}
	config := ServerConfig{
		Services: map[string]Service{"exec": run}, Verifier: tokens{"runner": {Subject: "runner", Rights: RightExec}},
	}
	inLab(t, config, func(t *testing.T, n *lab, _ *wiretest.Memory, _ *Server) {
		ctx := context.Background()
		c := client(t, n, 0, "runner")
		if s, err := c.OpenService(ctx, "exec"); err != nil {
			t.Error(err)
		} else if got, err := io.ReadAll(s); string(got) != "ran" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		for name, f := range map[string]func() error{
			"position": func() error { _, err := c.Position(ctx); return err },
			"get":      func() error { _, _, err := c.Get(ctx, nil); return err },
			"read": func() error {
				_, err := c.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { return nil })
				return err
			},
			"follow": func() error { return c.Follow(ctx, vfs.AllInos, newReplica(t)) },
			"fetch":  func() error { return c.ReadChunks(ctx, sampleIDs, func(vfs.Chunk) error { return nil }) },
			"push":   func() error { _, err := c.Push(ctx, vfs.PeerID{}, vfs.Push{}); return err },
		} {
			if err := f(); !errors.Is(err, ErrRights) {
				t.Errorf("%s: %v, want %v", name, err, ErrRights)
			}
		}
	})
}

// A session ends when its token expires or is revoked, and the client hears why.
func TestTokenEnds(t *testing.T) {
	grants := tokens{}
	inLab(t, ServerConfig{Verifier: grants}, func(t *testing.T, n *lab, _ *wiretest.Memory, s *Server) {
		ctx := context.Background()
		revoked := make(chan struct{})
		grants["revoked"] = Grant{Subject: "a", Rights: RightRead, Revoked: revoked}
		grants["expiring"] = Grant{Subject: "b", Rights: RightRead, Expires: time.Now().Add(time.Minute)}
		for _, token := range []string{"revoked", "expiring"} {
			c := client(t, n, 0, token)
			if _, err := c.Position(ctx); err != nil {
				t.Fatal(err)
			}
			delete(grants, token)
			waits := make(chan error, 1)
			go func() { _, err := c.Wait(ctx, 1); waits <- err }()
			synctest.Wait()
			start := time.Now()
			if token == "revoked" {
				close(revoked)
			}
			err := <-waits
			if !errors.Is(err, ErrToken) || time.Since(start) > time.Minute+2*oneWay {
				t.Errorf("%s: %v after %v", token, err, time.Since(start))
			}
			if _, err := c.Position(ctx); !errors.Is(err, ErrToken) {
				t.Errorf("%s, again: %v", token, err)
			}
		}
		time.Sleep(closeGrace)
		if len(s.Stats().Sessions) != 0 {
			t.Error("a session is left")
		}
	})
}

// The process's own user needs no token on a unix socket, when the server says so; others do.
func TestLocalUser(t *testing.T) {
	for _, local := range []Rights{0, RightRead | RightWrite} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := ListenUnix(path)
		if err != nil {
			t.Fatal(err)
		}
		serving(t, ServerConfig{LocalUser: local}, wiretest.NewMemory(vfs.Epoch{1}), l)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket: %v, %v", info, err)
		}
		_, err = client(t, DialUnix(path), 0, "").Position(t.Context())
		if want := map[bool]error{true: nil, false: ErrToken}[local != 0]; !errors.Is(err, want) {
			t.Errorf("without a token, with %v to the local user: %v", local, err)
		}
		if _, err := ListenUnix(path); err == nil {
			t.Error("a socket that is served was taken away")
		}
	}
}

// After some bad tokens from an address, the next are not looked at for a while.
func TestFailures(t *testing.T) {
	var f failures
	now := time.Unix(1000, 0)
	for i := range freeFailures {
		if f.refused("a", now) {
			t.Fatalf("refused after %d", i)
		}
		f.add("a", now)
	}
	if !f.refused("a", now) || f.refused("b", now) || f.refused("a", now.Add(failurePause)) {
		t.Error("the pause is wrong")
	}
	for i := range 2 * maxFailureAddrs {
		f.add(fmt.Sprint(i), now)
	}
	if len(f.addrs) > maxFailureAddrs+1 {
		t.Errorf("%d addresses are remembered", len(f.addrs))
	}
	if !f.refused("never seen", now) {
		t.Error("who comes with many others is not refused")
	}
	f.add("later", now.Add(2*failurePause))
	if len(f.addrs) != 1 {
		t.Errorf("%d addresses are remembered after the pause", len(f.addrs))
	}
	for a, want := range map[string]string{
		"192.0.2.1:9": "192.0.2.1", "[2001:db8:1:2:3::4]:9": "2001:db8:1:2::/64", "[::ffff:192.0.2.1]:9": "192.0.2.1",
	} {
		addr, err := net.ResolveUDPAddr("udp", a)
		if got := (StreamPeer{Addr: addr}).countedAs(); err != nil || got != want {
			t.Errorf("%s is counted as %s, %v", a, got, err)
		}
	}
}
