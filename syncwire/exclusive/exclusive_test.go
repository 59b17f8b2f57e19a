package exclusive

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a stream in memory.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error         { return p.Close() }
func (p pipe) Peer() syncwire.StreamPeer { return syncwire.StreamPeer{} }

// mirror is a client of a guard, in one process.
type mirror struct {
	guard  *Guard
	peer   vfs.PeerID
	rights syncwire.Rights

	mu    sync.Mutex
	ends  []net.Conn
	deaf  bool // the server does not say anything
	group sync.WaitGroup
	state State
	heard int
}

func newMirror(g *Guard, n byte) *mirror {
	return &mirror{guard: g, peer: vfs.PeerID{n}, rights: syncwire.RightRead | syncwire.RightWrite}
}

// OpenService implements Opener.
func (m *mirror) OpenService(context.Context, string) (syncwire.Stream, error) {
	ours, theirs := net.Pipe()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends = append(m.ends, theirs)
	if m.deaf {
		m.group.Go(func() { _, _ = theirs.Read(make([]byte, 1)) })
		return pipe{ours}, nil
	}
	m.group.Go(func() {
		defer theirs.Close()
		_ = m.guard.Service().Serve(context.Background(), syncwire.ServiceStream{
			Stream: pipe{theirs}, Workspace: "demo", Peer: m.peer, Rights: m.rights,
		})
	})
	return pipe{ours}, nil
}

// follow follows until it is told to end.
func (m *mirror) follow(claim bool) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, m, claim, func(s State) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.state, m.heard = s, m.heard+1
		})
	}()
	return func() error {
		cancel()
		err := <-done
		m.group.Wait()
		return err
	}
}

// lose breaks the stream.
func (m *mirror) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.ends {
		c.Close()
	}
	m.ends = nil
	m.mu.Unlock()
	synctest.Wait()
	m.mu.Lock()
}

func (m *mirror) is(t *testing.T, want State) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != want || m.heard == 0 {
		t.Errorf("mirror %d: state %d (%d times), want %d", m.peer[0], m.state, m.heard, want)
	}
}

// pushed is an authority whose pushes end when the test says so.
type pushed struct {
	vfs.Authority
	hold chan struct{}
}

func (p *pushed) Push(context.Context, vfs.PeerID, vfs.Push) (vfs.Outcome, error) {
	if p.hold != nil {
		<-p.hold
	}
	return vfs.Outcome{}, nil
}

func push(t *testing.T, a vfs.Authority, m *mirror, want error) {
	t.Helper()
	if _, err := a.Push(t.Context(), m.peer, vfs.Push{}); !errors.Is(err, want) {
		t.Errorf("mirror %d pushes: %v, want %v", m.peer[0], err, want)
	}
}

func TestOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard()
		a := g.Wrap("demo", &pushed{})
		first, second, watcher := newMirror(g, 1), newMirror(g, 2), newMirror(g, 3)
		endWatch := watcher.follow(false)
		watcher.is(t, Free)
		push(t, a, second, nil)
		endFirst := first.follow(true)
		first.is(t, Yours)
		watcher.is(t, Others)
		endSecond := second.follow(true)
		second.is(t, Others)
		push(t, a, first, nil)
		push(t, a, second, vfs.ErrReadOnly)
		push(t, g.Wrap("other", &pushed{}), second, nil)
		time.Sleep(time.Hour) // it does not end by itself
		first.is(t, Yours)
		if err := endFirst(); !errors.Is(err, vfs.ErrInterrupted) {
			t.Error(err)
		}
		second.is(t, Yours)
		watcher.is(t, Others)
		push(t, a, first, vfs.ErrReadOnly)
		_ = endSecond()
		watcher.is(t, Free)
		push(t, a, first, nil)
		_ = endWatch()
		if len(g.books) > 0 {
			t.Errorf("%+v is left", g.books)
		}
	})
}

// A writer whose stream is lost finds the workspace again, unless it stays away for too long.
func TestWriterComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard()
		first, second := newMirror(g, 1), newMirror(g, 2)
		end := first.follow(true)
		first.is(t, Yours)
		endSecond := second.follow(true)
		for range 3 {
			first.lose()
			if err := end(); err == nil || errors.Is(err, vfs.ErrInterrupted) {
				t.Errorf("a stream that was lost: %v", err)
			}
			time.Sleep(Grace - time.Second)
			second.is(t, Others)
			end = first.follow(true)
			first.is(t, Yours)
		}
		first.lose()
		_ = end()
		time.Sleep(Grace + time.Second)
		second.is(t, Yours)
		push(t, g.Wrap("demo", &pushed{}), first, vfs.ErrReadOnly)
		_ = endSecond()
	})
}

// A new writer is told only when what others push has been taken or not.
func TestWriterWaitsForPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard()
		hold := make(chan struct{})
		a := g.Wrap("demo", &pushed{hold: hold})
		first, second := newMirror(g, 1), newMirror(g, 2)
		var group sync.WaitGroup
		group.Go(func() { push(t, a, second, nil) })
		synctest.Wait()
		end := first.follow(true)
		first.is(t, Others)
		push(t, a, second, vfs.ErrReadOnly)
		close(hold)
		group.Wait()
		first.is(t, Yours)
		_ = end()
	})
}

// Who hears nothing gives up before the server gives the workspace to another.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(NewGuard(), 1)
		m.deaf = true
		began := time.Now()
		end := m.follow(true)
		time.Sleep(Patience + time.Second)
		if err := end(); err == nil || errors.Is(err, vfs.ErrInterrupted) || time.Since(began) > Grace {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		m.lose()
	})
}

// To claim a workspace needs the right to write it.
func TestRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(NewGuard(), 1)
		m.rights = syncwire.RightRead
		end := m.follow(true)
		synctest.Wait()
		_ = end()
		if m.heard > 0 {
			t.Errorf("it was told %d", m.state)
		}
		end = m.follow(false)
		m.is(t, Free)
		_ = end()
	})
}
