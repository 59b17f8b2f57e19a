package syncwire

import (
	"context"
	"flag"
	"math"
	"net"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
	"github.com/carrelfs/carrel/syncwire/wiretest/badlink"
)

// By default the tests of a bad link take a quarter of a minute. In full it is one:
//
//	go test ./syncwire -run TestBadLink -v -badlink.cut 30s -badlink.size 3500
var (
	linkCut  = flag.Duration("badlink.cut", time.Second, "how long the link of TestBadLink... is cut")
	linkSize = flag.Int("badlink.size", 1500, "bytes in each of its 2,000 files, at most 4,000")
	linkSeed = flag.Uint64("badlink.seed", 1, "what the link loses, doubles and delays")
)

const (
	linkFiles = 2000

	// linkSlack is how much longer than the link needs for the bytes something may take.
	linkSlack = 1.3

	// linkTardy is how much later than due a packet may be on average, by the fault of a machine that has other things to
	// do. With more the link is not what it should be, and how long something takes says nothing.
	linkTardy = 3 * time.Millisecond
)

// tardy is how late packets were.
func tardy(c badlink.Count) time.Duration { return c.Overdue / time.Duration(max(c.Packets, 1)) }

// onBadLink returns a listener and a dialer at the two ends of a link.
func onBadLink(t *testing.T, n *badlink.Network) (Listener, Dialer) {
	t.Helper()
	id := testIdentity(t)
	l, err := badlink.In(n.Server, func() (Listener, error) { return ListenQUIC(badlink.ServerAddr.String()+":0", id) })
	if err != nil {
		t.Fatal(err)
	}
	return l, DialQUICFrom(l.Addr().String(), id.Fingerprint(), func() (*net.UDPConn, error) {
		return badlink.In(n.Client, anySocket)
	})
}

// troubled runs f, cuts the link when a third of the files is through, gives the client another address at two thirds, and
// requires that f takes little longer than the link needs for what crosses it meanwhile, and for the cut.
func troubled(t *testing.T, n *badlink.Network, what string, f func()) {
	t.Helper()
	upBefore, downBefore := n.Counts()
	third := time.Duration(linkFiles**linkSize) * time.Second / badlink.SlowRate / 3
	timers := []*time.Timer{
		time.AfterFunc(third, func() { n.SetCut(true) }),
		time.AfterFunc(third+*linkCut, func() { n.SetCut(false) }),
		time.AfterFunc(2*third+*linkCut, n.Move),
	}
	start := time.Now()
	f()
	took := time.Since(start)
	for _, timer := range timers {
		if timer.Stop() {
			t.Errorf("%s was over after %v, before all was done to it", what, took)
		}
	}
	up, down := n.Counts()
	up, down = up.Since(upBefore), down.Since(downBefore)
	needs := max(up.Busy, down.Busy) + *linkCut
	t.Logf("%s: %v, %.2f times what the link needs", what, took.Round(time.Millisecond), took.Seconds()/needs.Seconds())
	t.Logf("  to the server: %+v", up)
	t.Logf("  to the client: %+v", down)
	if late := max(tardy(up), tardy(down)); late > linkTardy {
		t.Logf("  packets were %v late on average: this machine is too busy to judge times", late)
		return
	}
	if took.Seconds() > linkSlack*needs.Seconds() {
		t.Errorf("%s took %v, the link needs %v; -badlink.seed %d", what, took, needs, *linkSeed)
	}
}

// Over a link that loses, doubles and reorders, is cut, and takes the client's address away, a push of 2,000 files is applied
// once, all of it, over one session, in little more time than the link needs for the bytes.
func TestBadLinkPush(t *testing.T) {
	t.Parallel()
	n := badlink.New(t, badlink.Slow(*linkSeed))
	l, d := onBadLink(t, n)
	m := wiretest.NewMemory(vfs.Epoch{1})
	serving(t, ServerConfig{}, m, l)
	c := client(t, d, 0, "secret")
	w := newWriter(t, c, 0)
	p := w.files("file", linkFiles, linkBody(), uint64(*linkSize))
	var o vfs.Outcome
	troubled(t, n, "the push", func() { o = w.push(p) })
	if now, err := m.Position(context.Background()); err != nil || now != o.Position || o.Prev != 1 || now.Rev != 2 {
		t.Errorf("the push was answered with %+v; the workspace is at %v, %v", o, now, err)
	}
	if got := newWriter(t, m, 0).all(); len(got) != len(p.Records) { // the root is in both
		t.Errorf("%d records were pushed, %d are there", len(p.Records), len(got))
	}
	if s := c.Stats(); s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}

// So are 2,000 files brought by a feed, each record once.
func TestBadLinkFeed(t *testing.T) {
	t.Parallel()
	n := badlink.New(t, badlink.Slow(*linkSeed))
	l, d := onBadLink(t, n)
	m := wiretest.NewMemory(vfs.Epoch{1})
	serving(t, ServerConfig{}, m, l)
	c, r := client(t, d, 0, "secret"), newReplica(t) // which checks the digest
	following(t, c, r)
	r.until(1)
	r.counted()
	w := newWriter(t, m, 9)
	p := w.files("file", linkFiles, linkBody(), uint64(*linkSize))
	troubled(t, n, "the feed", func() { r.until(w.push(p).Position.Rev) })
	if got := r.counted(); got != len(p.Records) || len(r.state) != len(p.Records) {
		t.Errorf("%d records came, the follower has %d; %d were pushed", got, len(r.state), len(p.Records))
	}
	if s := c.Stats(); s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}

// A machine that has no address for a while, so that the kernel refuses what it sends, keeps its session.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	n := badlink.New(t, badlink.Config{Delay: time.Millisecond, Rate: 2_000_000, Queue: time.Second})
	l, d := onBadLink(t, n)
	m := wiretest.NewMemory(vfs.Epoch{1})
	serving(t, ServerConfig{}, m, l)
	c := client(t, d, 0, "secret")
	w := newWriter(t, c, 0)
	w.push(w.files("before", 1, linkBody(), uint64(*linkSize)))
	n.Leave()
	back := time.AfterFunc(time.Second, n.Move)
	defer back.Stop()
	w.push(w.files("after", 100, linkBody(), uint64(*linkSize)))
	if s := c.Stats(); s.Sessions != 1 || s.Retries != 0 {
		t.Errorf("%+v", s)
	}
}

// linkBody is what is in each file.
func linkBody() vfs.Body { return vfs.Body{Kind: vfs.BodyInline, Data: plainChunk(*linkSize).Stored} }

// What common changes cost on a real wire: all packets of QUIC with their headers, both ways, until nothing more is said.
func TestPacketBytes(t *testing.T) {
	t.Parallel()
	n := badlink.New(t, badlink.Config{Delay: time.Millisecond, Rate: 10_000_000, Queue: time.Second})
	l, d := onBadLink(t, n)
	m := wiretest.NewMemory(vfs.Epoch{1})
	serving(t, ServerConfig{}, m, l)
	local := newWriter(t, m, 9)
	local.push(local.text("file", 10_000))
	local.push(local.directory(t, "big", "file", 10_000))
	c := client(t, d, 0, "secret")
	w := newWriter(t, c, 0)
	for said, asked := 0, 0; asked < 2 || said > 1000; asked++ { // until the link has prepared its other path
		before := quiet(n)
		if _, err := c.Position(t.Context()); err != nil {
			t.Fatal(err)
		}
		said = quiet(n) - before
	}
	names := []string{"big", "moved", "big", "moved"}
	for _, tt := range []struct {
		what  string
		limit int
		push  func(round int) vfs.Push
	}{
		{"renaming a directory of 10,000 files", 1 << 10, func(i int) vfs.Push { return local.rename(names[i], names[i+1]) }},
		{"changing the mode of 1,000 files", 100 << 10, func(int) vfs.Push { return local.chmod(1000) }},
	} {
		// The least counts: when this machine holds a packet up, QUIC takes it for lost and sends it again.
		before, least := quiet(n), math.MaxInt
		for i := range len(names) - 1 {
			p := tt.push(i)
			p.ID[2] = byte(i)
			w.push(p)
			now := quiet(n)
			before, least = now, min(least, now-before)
		}
		if t.Logf("%s: %d bytes", tt.what, least); least > tt.limit {
			t.Errorf("%s: %d bytes of packets, at most %d", tt.what, least, tt.limit)
		}
	}
}

// quiet waits until nothing is sent for longer than a link takes between two looks, and returns how many bytes were.
func quiet(n *badlink.Network) int {
	for last := -1; ; time.Sleep(2 * lookEvery) {
		up, down := n.Counts()
		if up.Bytes+down.Bytes == last {
			return last
		}
		last = up.Bytes + down.Bytes
	}
}
