package syncwire

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// losing is an authority whose first pushes are applied and never answered: the network goes down under them.
type losing struct {
	*wiretest.Memory
	n    *lab
	left atomic.Int32
}

func (l *losing) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	o, err := l.Memory.Push(ctx, peer, p)
	if l.left.Add(-1) >= 0 {
		l.n.cut()
		go func() {
			time.Sleep(time.Second)
			l.n.mend()
		}()
	}
	return o, err
}

// A push whose answer is lost is made again, under its id, and has its effect once.
func TestPushLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		l := &losing{Memory: wiretest.NewMemory(vfs.Epoch{1}), n: n}
		serving(t, ServerConfig{}, l, n)
		c := client(t, n, 0, "secret")
		w := newWriter(t, c, 0)
		first := w.push(w.text("a", 3))
		l.left.Store(3)
		second := w.push(w.text("b", 3))
		if second.Prev != first.Position.Rev || second.Position.Rev != first.Position.Rev+1 {
			t.Errorf("prev %d, revision %d after %d", second.Prev, second.Position.Rev, first.Position.Rev)
		}
		if now, _ := l.Position(context.Background()); now != second.Position {
			t.Errorf("the workspace is at %v, the push was answered at %v", now, second.Position)
		}
		if s := c.Stats(); s.Sessions != 4 || s.Retries < 3 {
			t.Errorf("%+v", s)
		}
	})
}

// Chunks that were being fetched when the connection broke come once, in order.
func TestFetchLost(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, m *wiretest.Memory, _ *Server) {
		ctx := context.Background()
		chunks := make([]vfs.Chunk, 30)
		for i := range chunks {
			chunks[i] = plainChunk(100_000)
		}
		if err := m.WriteChunks(ctx, chunks); err != nil {
			t.Fatal(err)
		}
		n.window = 300_000
		c := client(t, n, 0, "secret")
		ids, at := idsOf(chunks), 0
		err := c.ReadChunks(ctx, ids, func(got vfs.Chunk) error {
			if got.ID != ids[at] {
				t.Errorf("chunk %d is another", at)
			}
			if at++; at%10 == 0 {
				n.cut()
				n.mend()
			}
			return nil
		})
		if err != nil || at != len(ids) {
			t.Errorf("%d chunks, %v", at, err)
		}
	})
}

// Requests, pushes and updates do not wait behind chunks, even when nobody takes those.
func TestControlBesideBulk(t *testing.T) {
	for name, transport := range transports {
		l, d := transport(t)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, l)
		chunks := make([]vfs.Chunk, 32)
		for i := range chunks {
			chunks[i] = plainChunk(chunk.MaxSize)
		}
		if err := m.WriteChunks(t.Context(), chunks); err != nil {
			t.Fatal(err)
		}
		c, r := client(t, d, 0, "secret"), newReplica(t)
		following(t, c, r)
		var readers sync.WaitGroup
		stuck, release := make(chan struct{}), make(chan struct{})
		for range bulkStreams {
			n := 0
			readers.Go(func() {
				err := c.ReadChunks(context.Background(), idsOf(chunks), func(vfs.Chunk) error {
					if n++; n == 16 { // by then the windows have grown
						stuck <- struct{}{}
						<-release
					}
					return nil
				})
				if err != nil {
					t.Error(name, err)
				}
			})
		}
		for range bulkStreams {
			<-stuck
		}
		w := newWriter(t, c, 0)
		p := w.text("file", 2000)
		r.owns(p)
		w.push(p)
		other := newWriter(t, m, 9)
		other.tick = 1000
		r.until(other.push(other.text("other", 100)).Position.Rev)
		close(release)
		readers.Wait()
	}
}

// A call ends with its context, whether there is a connection or not.
func TestInterrupted(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, _ *wiretest.Memory, _ *Server) {
		c := client(t, n, 0, "secret")
		for _, down := range []bool{false, true} {
			if down {
				n.cut()
			}
			for range 2 * maxRequests { // cancelled waits must not use the requests up
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				if _, err := c.Wait(ctx, 1); !errors.Is(err, vfs.ErrInterrupted) {
					t.Errorf("down %t: %v", down, err)
				}
				cancel()
			}
		}
		n.mend()
		if _, err := c.Position(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// The pauses of a client grow, and end with the first session that works.
func TestBackoff(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, _ *wiretest.Memory, _ *Server) {
		d := &countingDialer{Dialer: n}
		c := client(t, d, 0, "secret")
		n.cut()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if _, err := c.Position(ctx); !errors.Is(err, errDown) {
			t.Error(err)
		}
		if n := d.n.Load(); n < 60 || n > 140 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		n.mend()
		if _, err := c.Position(context.Background()); err != nil {
			t.Fatal(err)
		}
		n.cut()
		n.mend()
		start := time.Now()
		if _, err := c.Position(context.Background()); err != nil || time.Since(start) > 4*oneWay {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

type countingDialer struct {
	Dialer
	n atomic.Int64
}

func (d *countingDialer) Dial(ctx context.Context) (Link, error) {
	d.n.Add(1)
	return d.Dialer.Dial(ctx)
}

// Who is refused at once has dialed once, however fast that was.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := &closedDoor{frame: mustFrame(t, errorFrame(0, ErrToken))}
		c := client(t, door, 0, "secret")
		for range 200 {
			before := door.dials.Load()
			if _, err := c.Position(t.Context()); !errors.Is(err, ErrToken) {
				t.Fatal(err)
			}
			if n := door.dials.Load() - before; n != 1 {
				t.Fatalf("%d dials for a call", n)
			}
		}
		c.Close()
	})
}

// closedDoor is a server that has answered before it is asked, with a link and streams to it.
type closedDoor struct {
	Stream
	frame []byte
	dials atomic.Int64
}

func (r *closedDoor) Dial(context.Context) (Link, error) {
	r.dials.Add(1)
	return r, nil
}

func (r *closedDoor) Open(context.Context) (Stream, error) {
	return &closedDoor{frame: r.frame}, nil
}

func (r *closedDoor) Read(p []byte) (n int, err error) {
	if n, r.frame = copy(p, r.frame), r.frame[min(len(p), len(r.frame)):]; n == 0 {
		err = io.EOF
	}
	return n, err
}

func (r *closedDoor) Write(p []byte) (int, error)      { return len(p), nil }
func (r *closedDoor) Close() error                     { return nil }
func (r *closedDoor) SetReadDeadline(time.Time) error  { return nil }
func (r *closedDoor) SetWriteDeadline(time.Time) error { return nil }
