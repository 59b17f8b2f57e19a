package syncwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// inLab runs a test in a bubble with a server and a network.
func inLab(t *testing.T, config ServerConfig, f func(t *testing.T, n *lab, m *wiretest.Memory, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, m := newLab(oneWay), wiretest.NewMemory(vfs.Epoch{1})
		f(t, n, m, serving(t, config, m, n))
	})
}

func TestPeers(t *testing.T) {
	inLab(t, ServerConfig{Peers: 2}, func(t *testing.T, n *lab, _ *wiretest.Memory, s *Server) {
		ctx := context.Background()
		clients := []*Client{client(t, n, 0, "secret"), client(t, n, 1, "reader"), client(t, n, 2, "secret")}
		for _, c := range clients[:2] {
			if _, err := c.Position(ctx); err != nil {
				t.Fatal(err)
			}
		}
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := clients[2].Position(soon); !errors.Is(err, vfs.ErrInterrupted) || !errors.Is(err, ErrOverloaded) {
			t.Errorf("one peer too many: %v", err)
		}
		clients[0].Acknowledge(1)
		time.Sleep(oneWay)
		synctest.Wait()
		if acked := s.Stats().Sessions; acked[0].Acked+acked[1].Acked != 1 {
			t.Errorf("acknowledged: %+v", acked)
		}
		clients[0].Close()
		if _, err := clients[2].Position(ctx); err != nil { // it keeps trying
			t.Error(err)
		}
		subjects := make(map[string]int)
		for _, session := range s.Stats().Sessions {
			subjects[session.Subject]++
		}
		if subjects["tester"] != 1 || subjects["reader"] != 1 {
			t.Errorf("sessions of %v", subjects)
		}
	})
}

// A service has its stream, whole, from the byte after the opening.
func TestService(t *testing.T) {
	echo := Service{Rights: RightExec, Serve: func(ctx context.Context, s ServiceStream) error {
		fmt.Fprintf(s, "%s %s ", s.Subject, s.Workspace)
		_, err := io.Copy(s, s)
		return err
	}}
	for name, transport := range transports {
		l, d := transport(t)
		serving(t, ServerConfig{Services: map[string]Service{"echo": echo}}, wiretest.NewMemory(vfs.Epoch{1}), l)
		c := client(t, d, 0, "secret")
		if _, err := c.OpenService(t.Context(), "nothing"); !errors.Is(err, ErrNoService) {
			t.Errorf("%s: %v", name, err)
		}
		s, err := c.OpenService(t.Context(), "echo")
		if err != nil {
			t.Fatal(name, err)
		}
		text := strings.Repeat("text", 100_000)
		go func() {
			io.WriteString(s, text)
			s.CloseWrite()
		}()
		got, err := io.ReadAll(s)
		if want := "tester demo " + text; err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v, want %d", name, len(got), err, len(want))
		}
		s.Close()
	}
}

// A server that drains takes nobody new, lets what is under way finish, and ends when its clients have gone.
func TestDrain(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, m *wiretest.Memory, s *Server) {
		ctx := context.Background()
		entered, leave := make(chan struct{}), make(chan struct{})
		c, r := client(t, n, 0, "secret"), newReplica(t)
		following(t, c, r)
		r.until(1)
		held := &holding{Memory: m, entered: entered, leave: leave}
		s.config.Open = func(context.Context, string) (vfs.Authority, error) { return held, nil }
		c2 := client(t, n, 1, "secret")
		answered := make(chan error, 1)
		go func() { _, err := c2.Barrier(ctx); answered <- err }()
		<-entered
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(ctx) }()
		synctest.Wait()
		time.Sleep(time.Minute)
		select {
		case err := <-drained:
			t.Errorf("drained before the last answer: %v", err)
		default:
		}
		close(leave)
		if err := <-answered; err != nil {
			t.Errorf("what was under way: %v", err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

// holding is an authority whose barriers take as long as the test wants.
type holding struct {
	*wiretest.Memory
	entered, leave chan struct{}
	once           sync.Once
}

func (h *holding) Barrier(ctx context.Context) (vfs.Position, error) {
	h.once.Do(func() { close(h.entered) })
	<-h.leave
	return h.Memory.Barrier(ctx)
}
