package syncwire

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

const oneWay = 50 * time.Millisecond

// following has a replica follow until the test ends.
func following(t *testing.T, c *Client, r *replica) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Follow(ctx, vfs.AllInos, r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, vfs.ErrInterrupted) {
			t.Error(err)
		}
	})
}

// took runs f and returns how many round trips of the lab it took.
func took(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start)) / float64(2*oneWay)
}

// The round trips of the things that are done most. Nothing but latency takes time in the bubble.
func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, n)
		ctx := context.Background()
		want := func(what string, trips, got float64) {
			t.Helper()
			if got != trips {
				t.Errorf("%s takes %.2f round trips, want %.2f", what, got, trips)
			}
		}
		mirror, r := client(t, n, 0, "secret"), newReplica(t)
		want("a first snapshot, with the session", 1, took(func() {
			following(t, mirror, r)
			r.until(1)
		}))
		w := newWriter(t, mirror, 0)
		warm := w.text("warm", 1) // leases numbers
		r.owns(warm)
		w.push(warm)
		small := w.text("small", 1)
		r.owns(small)
		want("a push", 1, took(func() { w.push(small) }))
		want("a change elsewhere, at the mirror,", 0.5, took(func() {
			local := newWriter(t, m, 9)
			r.until(local.push(local.text("local", 1)).Position.Rev)
		}))

		chunks := []vfs.Chunk{plainChunk(10_000)}
		body, size := bodyOf(chunks...)
		p := w.files("with bytes", 1, body, size)
		r.owns(p)
		cache := wiretest.NewMemory(vfs.Epoch{2})
		if err := cache.WriteChunks(ctx, chunks); err != nil {
			t.Fatal(err)
		}
		pushWith := func(p vfs.Push, ids []chunk.ID) {
			if o, err := mirror.PushWith(ctx, p, ids, cache); err != nil || !o.Applied() {
				t.Fatal(o, err)
			}
		}
		want("a push with its bytes", 1, took(func() { pushWith(p, idsOf(chunks)) }))

		large := make([]vfs.Chunk, 20)
		for i := range large {
			large[i] = plainChunk(chunk.MaxSize)
		}
		if err := cache.WriteChunks(ctx, large); err != nil {
			t.Fatal(err)
		}
		body, size = bodyOf(large...)
		p = w.files("large", 1, body, size)
		r.owns(p)
		want("a push of a large file that asks first", 2, took(func() {
			missing, err := mirror.MissingChunks(ctx, idsOf(large))
			if err != nil {
				t.Fatal(err)
			}
			pushWith(p, missing)
		}))
		want("fetching a chunk", 1, took(func() {
			if err := mirror.ReadChunks(ctx, idsOf(chunks), func(vfs.Chunk) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}))
		want("a barrier", 1, took(func() {
			if _, err := mirror.Barrier(ctx); err != nil {
				t.Fatal(err)
			}
		}))
	})
}

// What the replica has pushed itself is not sent to it, and the update says so.
func TestFollowOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, n)
		c, r := client(t, n, 0, "secret"), newReplica(t)
		following(t, c, r)
		r.until(1)
		r.counted()
		own, other := newWriter(t, c, 0), newWriter(t, m, 9)
		other.tick = 1000
		var ids []vfs.PushID
		for i := range 20 {
			p := own.text(string(rune('a'+i)), 2)
			r.owns(p)
			ids = append(ids, p.ID)
			r.until(own.push(p).Position.Rev)
			if i%5 == 0 {
				r.until(other.push(other.text(string(rune('A'+i)), 1)).Position.Rev)
			}
		}
		if got := r.counted(); got != 4*3 {
			t.Errorf("%d records came, want those of the other's 4 pushes", got)
		}
		if !slices.Equal(r.own, ids) {
			t.Errorf("the updates name %d pushes, want %d", len(r.own), len(ids))
		}
		synctest.Wait()
		before := n.sent.Load()
		time.Sleep(pingEvery / 2)
		if after := n.sent.Load(); after != before {
			t.Errorf("a settled pair says %d bytes", after-before)
		}
	})
}

// meddling is an authority at which somebody else changes something right behind each push.
type meddling struct {
	*wiretest.Memory
	other *writer
}

func (m *meddling) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	o, err := m.Memory.Push(ctx, peer, p)
	m.other.push(m.other.text(string(rune('A'+m.other.tick-1000)), 1))
	return o, err
}

// What somebody else made of an own push's records before the feed came to tell is what the follower has in the end.
func TestFollowOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		other := newWriter(t, m, 9)
		other.tick = 1000
		serving(t, ServerConfig{}, &meddling{m, other}, n)
		c, r := client(t, n, 0, "secret"), newReplica(t)
		following(t, c, r)
		r.until(1)
		own := newWriter(t, c, 0)
		for i := range 10 {
			p := own.text(string(rune('a'+i)), 2)
			r.owns(p)
			r.until(own.push(p).Position.Rev + 1)
		}
		if len(r.own) != 10 {
			t.Errorf("the updates name %d pushes", len(r.own))
		}
	})
}

// After a cut the feed goes on where it was, brings what changed meanwhile, once, and nothing else.
func TestFollowCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, n)
		w := newWriter(t, m, 9)
		w.push(w.text("before", 100))
		c, r := client(t, n, 0, "secret"), newReplica(t)
		following(t, c, r)
		r.until(2)
		if got := r.counted(); got != 201 {
			t.Errorf("a snapshot of %d records, want 201", got)
		}
		for range 5 {
			n.cut()
			time.Sleep(time.Minute)
			w.push(w.text("during", 0)) // the root's times
			o := w.push(w.text(string(rune('a'+w.tick)), 1))
			n.mend()
			start := time.Now()
			r.until(o.Position.Rev)
			if wait := time.Since(start); wait > lastRetry+4*oneWay {
				t.Errorf("connected again after %v", wait)
			}
			if got := r.counted(); got != 3 {
				t.Errorf("%d records came after a cut, want 3", got)
			}
		}
		for _, p := range r.parts[1:] {
			if p.Since == 0 {
				t.Error("a snapshot after a cut")
			}
		}
	})
}

// A snapshot that is cut off goes on at the last inode, and then brings what changed since it began.
func TestFollowCutInSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, n)
		w := newWriter(t, m, 9)
		const files = 4000
		w.push(w.text("file", files))
		c, r := client(t, n, 0, "secret"), newReplica(t)
		half := make(chan struct{})
		r.hook = func(vfs.Record) {
			if len(r.got) == files+files/2 {
				n.cut()
				close(half)
			}
		}
		following(t, c, r)
		<-half
		last := w.push(w.text("later", 10))
		n.mend()
		r.until(last.Position.Rev)
		if got := r.counted(); got > 2*files+2*files/10 {
			t.Errorf("%d records came, of a workspace of %d", got, 2*files+21)
		}
		if len(r.parts) < 3 || r.parts[1].First == 0 || r.parts[2].Since == 0 {
			t.Errorf("parts %+v", r.parts)
		}
	})
}

// A cursor of another epoch, or of the future, is answered by a snapshot.
func TestFollowVoidCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		m := wiretest.NewMemory(vfs.Epoch{1})
		serving(t, ServerConfig{}, m, n)
		for name, since := range map[string]vfs.Cursor{
			"another epoch":            {Epoch: vfs.Epoch{2}, Rev: 1},
			"the future":               {Epoch: vfs.Epoch{1}, Rev: 77},
			"the future of no records": {Epoch: vfs.Epoch{3}, Rev: 1<<64 - 1},
		} {
			c, r := client(t, n, 0, "secret"), newReplica(t)
			r.position.Cursor = since
			r.state[vfs.Key{Kind: vfs.KeyInode, Ino: 77}] = []byte("of another life")
			if since.Epoch == (vfs.Epoch{1}) {
				r.position.Epoch[15] = 1 // the replica's check of order is not for this case
			}
			following(t, c, r)
			if p := <-r.updated; p.Rev != 1 || len(r.state) != 1 || r.parts[0].Since != 0 {
				t.Errorf("%s: %v, %d records", name, p, len(r.state))
			}
		}
	})
}

// An error of a follower ends its feed and is returned as it is.
func TestFollowError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLab(oneWay)
		serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), n)
		c := client(t, n, 0, "secret")
		if err := c.Follow(context.Background(), vfs.AllInos, refusing{}); err != errRefused {
			t.Error(err)
		}
	})
}

var errRefused = errors.New("refused")

type refusing struct{ *replica }

func (refusing) Resume() (vfs.Cursor, vfs.Ino) { return vfs.Cursor{}, 0 }
func (refusing) Begin(FeedPart) error          { return errRefused }
