package mirror

import (
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/exclusive"
)

// awaitWriter waits until a mirror may write, or may not.
func (n *node) awaitWriter(may bool) {
	for (n.isWriter() == nil) != may {
		time.Sleep(time.Millisecond)
	}
}

// While one mirror has the workspace to itself all others are read-only, and go on when it has ended. What they had written and not
// pushed is pushed then.
func TestExclusive(t *testing.T) {
	l := newLab(t, 0)
	l.restart(func() { l.guard = exclusive.NewGuard() })
	b := l.join()
	other := on(t, b.Tree())
	other.write("/f", "1")
	b.sync()
	b.wire.cut()
	other.write("/before", "written offline")
	a := l.join(func(c *Config) { c.Exclusive = true })
	a.AwaitWriter()
	a.awaitWriter(true)
	on(t, a.Tree()).write("/f", "2")
	a.sync()
	b.wire.mend()
	b.awaitWriter(false)
	if _, err := b.Tree().Create(t.Context(), vfs.RootIno, "no", vfs.NewNode{}); !errors.Is(err, vfs.ErrReadOnly) {
		t.Errorf("%v", err)
	}
	if err := b.Tree().Sync(t.Context()); !errors.Is(err, vfs.ErrReadOnly) {
		t.Errorf("what was written before is pushed: %v", err)
	}
	for other.read("/f") != "2" { // what the writer does is seen all the same
		time.Sleep(time.Millisecond)
	}
	second := l.join(func(c *Config) { c.Exclusive = true })
	second.AwaitWriter()
	second.awaitWriter(false)
	a.leave()
	second.awaitWriter(true)
	second.leave()
	b.awaitWriter(true)
	l.nodes = []*node{b}
	other.write("/yes", "3")
	for errors.Is(b.Tree().Sync(t.Context()), vfs.ErrReadOnly) { // by the answer to a push from before
		time.Sleep(time.Millisecond)
	}
	l.settle()
	on(t, l.ws).want("/before", "written offline")
}

// With a server that does not know of it nobody has the workspace to itself.
func TestExclusiveWithoutAService(t *testing.T) {
	l := newLab(t, 1)
	n := l.join(func(c *Config) { c.Exclusive = true })
	n.sync()
	if err := n.isWriter(); !errors.Is(err, vfs.ErrReadOnly) {
		t.Errorf("%v", err)
	}
	on(t, l.nodes[0].Tree()).write("/f", "1")
	l.settle()
}
