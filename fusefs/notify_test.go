package fusefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// fakeCache is the kernel's side of notifications.
type fakeCache struct {
	mu      sync.Mutex
	log     []string
	unknown map[fuse.NodeID]int // how often it says yet that it does not know an inode
	old     bool                // a kernel that cannot expire names
	gate    chan struct{}       // each notification takes one, if there is a gate
}

func (k *fakeCache) note(format string, args ...any) {
	if k.gate != nil {
		<-k.gate
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, fmt.Sprintf(format, args...))
}

func (k *fakeCache) InvalidateNode(node fuse.NodeID, off, size int64) error {
	k.note("node %d %d %d", node, off, size)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unknown[node] > 0 {
		k.unknown[node]--
		return fuse.ErrNotCached
	}
	return nil
}

func (k *fakeCache) InvalidateEntry(dir fuse.NodeID, name string) error {
	k.note("name %d %s", dir, name)
	return nil
}

func (k *fakeCache) expireNames() error {
	if k.old {
		return errors.ErrUnsupported
	}
	k.note("names")
	return nil
}

// take returns what was sent since the last time, sorted, but for the question that a new notifier asks.
func (k *fakeCache) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	log := k.log
	k.log = nil
	slices.Sort(log)
	return log
}

func testNotifier(t *testing.T, k *fakeCache) (*notifier, *holds) {
	t.Helper()
	h := newHolds(vfstest.NewTree())
	n := newNotifier(k, h, slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(n.close)
	k.take()
	return n, h
}

func flush(t *testing.T, n *notifier) {
	t.Helper()
	if err := n.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// busy has the notifier wait at the gate with a notification for inode 1.
func busy(t *testing.T, n *notifier) {
	t.Helper()
	n.attr(1)
	eventually(t, "the first batch is on its way", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.pending.inodes) == 0
	})
}

func TestNotify(t *testing.T) {
	k := &fakeCache{}
	n, _ := testNotifier(t, k)
	for _, test := range []struct {
		change vfs.Change
		want   []string
	}{
		{vfs.Change{Kind: vfs.ChangeAttr, Ino: 7}, []string{"node 7 -1 0"}},
		{vfs.Change{Kind: vfs.ChangeData, Ino: 7, Origin: "other"}, []string{"node 7 0 0"}},
		{vfs.Change{Kind: vfs.ChangeEntry, Dir: 2, Name: "a", Ino: 7}, []string{"name 2 a", "node 2 0 0", "node 7 -1 0"}},
	} {
		n.changed(test.change)
		flush(t, n)
		if got := k.take(); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.change, got, test.want)
		}
	}
}

// TestNotifyCoalesces: what changes again before it is sent is sent once, and the stronger kind wins.
func TestNotifyCoalesces(t *testing.T) {
	k := &fakeCache{gate: make(chan struct{}, 1)}
	k.gate <- struct{}{} // for the question whether names can be expired
	n, _ := testNotifier(t, k)
	busy(t, n)
	for range 1000 {
		n.attr(2)
		n.data(2)
		n.attr(2)
		n.changed(vfs.Change{Kind: vfs.ChangeEntry, Dir: 3, Name: "a"})
	}
	close(k.gate)
	flush(t, n)
	if got, want := k.take(), []string{"name 3 a", "node 1 -1 0", "node 2 0 0", "node 3 0 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNotifyOverflow: a full queue becomes one notification of everything.
func TestNotifyOverflow(t *testing.T) {
	k := &fakeCache{gate: make(chan struct{}, 1)}
	k.gate <- struct{}{}
	n, h := testNotifier(t, k)
	h.take(11)
	h.take(12)
	busy(t, n)
	for i := range vfs.Ino(maxPending + 10) {
		n.attr(100 + i)
		n.mu.Lock()
		if have := len(n.pending.inodes); have > maxPending {
			t.Fatalf("%d notifications wait", have)
		}
		n.mu.Unlock()
	}
	close(k.gate)
	flush(t, n)
	got := k.take()
	for _, want := range []string{"names", "node 1 0 0", "node 11 0 0", "node 12 0 0"} {
		if !slices.Contains(got, want) {
			t.Errorf("not sent: %s", want)
		}
	}
	if len(got) > 6 {
		t.Errorf("%d notifications were sent", len(got))
	}
}

// TestNotifyOldKernel: where names cannot be expired, none is dropped.
func TestNotifyOldKernel(t *testing.T) {
	k := &fakeCache{old: true, gate: make(chan struct{})}
	n, _ := testNotifier(t, k)
	for i := range maxPending + 10 {
		n.changed(vfs.Change{Kind: vfs.ChangeEntry, Dir: 5, Name: fmt.Sprint(i)})
	}
	close(k.gate)
	flush(t, n)
	names := slices.DeleteFunc(k.take(), func(s string) bool { return s == "node 5 0 0" })
	if len(names) != maxPending+10 {
		t.Errorf("%d of %d names were sent", len(names), maxPending+10)
	}
}

// TestNotifyTriesAgain: an inode that the kernel is just coming to know is told until it does; any other is not.
func TestNotifyTriesAgain(t *testing.T) {
	k := &fakeCache{unknown: map[fuse.NodeID]int{7: 3, 8: 100}}
	n, h := testNotifier(t, k)
	h.take(7)
	n.data(7)
	n.data(8)
	flush(t, n)
	want := []string{"node 7 0 0", "node 7 0 0", "node 7 0 0", "node 7 0 0", "node 8 0 0"}
	if got := k.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNotifyFlushEnds(t *testing.T) {
	k := &fakeCache{gate: make(chan struct{}, 1)}
	k.gate <- struct{}{}
	n, _ := testNotifier(t, k)
	n.attr(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("flush: %v", err)
	}
	close(k.gate)
}

func TestHolds(t *testing.T) {
	tree := &countingHolds{Tree: vfstest.NewTree(), counts: make(map[vfs.Ino]int)}
	h := newHolds(tree)
	h.take(5)
	h.take(5)
	h.take(6)
	h.give(5, 1)
	if !h.has(5) || !h.has(6) || !h.has(vfs.RootIno) || h.has(7) {
		t.Error("has is wrong")
	}
	if tree.counts[5] != 1 {
		t.Errorf("the tree holds %v", tree.counts)
	}
	h.give(5, 8) // more than it was given
	h.give(7, 3) // never given out
	if h.has(5) || tree.counts[5] != 0 || tree.counts[6] != 1 {
		t.Errorf("the tree holds %v", tree.counts)
	}
	h.giveAll()
	if tree.counts[6] != 0 || len(h.inodes) != 0 {
		t.Errorf("the tree holds %v", tree.counts)
	}
}

// countingHolds counts what is held.
type countingHolds struct {
	vfs.Tree
	counts map[vfs.Ino]int
}

func (c *countingHolds) Hold(ino vfs.Ino)              { c.counts[ino]++ }
func (c *countingHolds) Release(ino vfs.Ino, n uint64) { c.counts[ino] -= int(n) }
