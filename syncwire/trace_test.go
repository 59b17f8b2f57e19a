package syncwire

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// traced remembers operations: how often each has begun and not ended, and how it has ended.
type traced struct {
	mu    sync.Mutex
	open  map[string]int
	ended map[string][]error
}

type tracedKey struct{}

func (r *traced) trace(ctx context.Context, op string) (context.Context, func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[op]++
	return context.WithValue(ctx, tracedKey{}, op), func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open[op]--
		r.ended[op] = append(r.ended[op], err)
	}
}

func newTraced() *traced { return &traced{open: map[string]int{}, ended: map[string][]error{}} }

// inTrace is an authority that knows whether it is called in a trace.
type inTrace struct {
	*wiretest.Memory
	t *testing.T
}

func (a inTrace) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	if ctx.Value(tracedKey{}) != "push" {
		a.t.Error("a push is made outside of its trace")
	}
	return a.Memory.Push(ctx, peer, p)
}

// Both sides tell of every request, how it has ended, and count it.
func TestTrace(t *testing.T) {
	n := newLab(0)
	atServer, atClient := newTraced(), newTraced()
	s := serving(t, ServerConfig{Trace: atServer.trace}, inTrace{wiretest.NewMemory(vfs.Epoch{1}), t}, n)
	c := client(t, n, 0, "secret")
	c.config.Trace = atClient.trace
	ctx := t.Context()
	root := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
	bad := vfs.Push{Records: []vfs.PushRecord{{Record: vfs.Record{Key: root, Value: []byte("bad")}}}}
	id := []chunk.ID{{1}}
	var errs []error
	call := func(_ any, err error) { errs = append(errs, err) }
	call(c.Position(ctx))
	_, _, err := c.Get(ctx, []vfs.Key{root})
	call(nil, err)
	call(c.LeaseInos(ctx, vfs.PeerID{}, 1))
	call(c.MissingChunks(ctx, id))
	call(nil, c.ReadChunks(ctx, id, func(vfs.Chunk) error { return nil }))
	call(nil, c.WriteChunks(ctx, nil))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(ctx, vfs.PeerID{}, bad); !errors.Is(err, vfs.ErrCorrupt) {
		t.Fatal(err)
	}
	if _, err := c.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c.Close()
	s.Close()
	want := []string{"fetch", "get", "lease", "missing", "push", "store", "where"}
	for side, r := range map[string]*traced{"server": atServer, "client": atClient} {
		for op, n := range r.open {
			if n != 0 {
				t.Errorf("%s: %d of %s have not ended", side, n, op)
			}
		}
		for _, op := range want {
			if ended := r.ended[op]; len(ended) != 1 || (ended[0] != nil) != (op == "push") {
				t.Errorf("%s: %s has ended with %v", side, op, ended)
			}
		}
		if !errors.Is(r.ended["push"][0], vfs.ErrCorrupt) {
			t.Errorf("%s: %v", side, r.ended["push"])
		}
	}
	if len(atServer.ended["update"]) != 1 {
		t.Errorf("updates %v", atServer.ended["update"])
	}
	stats := s.Stats()
	for _, op := range want {
		if stats.Requests[op] != 1 {
			t.Errorf("%d of %s are counted", stats.Requests[op], op)
		}
	}
	if got := slices.Sorted(maps.Keys(stats.Requests)); !slices.Equal(got, append(want[:6:6], "sums", "where")) {
		t.Errorf("requests of %q", got)
	}
	if n := c.Stats().Requests; n != uint64(len(want)+1) || len(atClient.ended["attach"]) != 1 { // the Read
		t.Errorf("the client counts %d requests", n)
	}
	if stats.Snapshots != 1 || stats.Resumes != 0 || stats.Updates != 1 || stats.BytesIn == 0 || stats.BytesOut == 0 {
		t.Errorf("%+v", stats)
	}
}

// A listener's socket is reported while it is served, and loses nothing unseen.
func TestSocketStats(t *testing.T) {
	l, err := ListenQUIC("127.0.0.1:0", testIdentity(t))
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(ServerConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	var sockets []SocketStats
	for len(sockets) == 0 { // until Serve has begun
		sockets = s.Stats().Sockets
	}
	if x := sockets[0]; x.Addr != l.Addr().String() || x.ReadBuffer < 64<<10 || x.WriteBuffer < 64<<10 || x.Dropped != 0 {
		t.Errorf("%+v", x)
	}
	cancel()
	if err := <-done; err != nil || len(s.Stats().Sockets) != 0 {
		t.Errorf("%v, %v", err, s.Stats().Sockets)
	}
	s.Close()
}
