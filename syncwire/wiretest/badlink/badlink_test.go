package badlink

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast is a link on which nothing waits for its turn, so that only the seed decides.
func fast(seed uint64) Config {
	c := Slow(seed)
	c.Delay, c.Rate, c.Late = time.Millisecond, 1_000_000_000, 20*time.Millisecond
	return c
}

// ends are a socket in each namespace.
type ends struct {
	t              *testing.T
	network        *Network
	client, server *net.UDPConn
	came           int // packets that the server has received
}

func open(t *testing.T, c Config) *ends {
	e := &ends{t: t, network: New(t, c)}
	for ns, conn := range map[*Namespace]**net.UDPConn{e.network.Client: &e.client, e.network.Server: &e.server} {
		var err error
		if *conn, err = In(ns, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", nil) }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*conn).Close() })
	}
	e.widen()
	return e
}

// widen gives the server's socket room for all that a test sends, so that nothing is lost there however late it is read.
func (e *ends) widen() {
	e.t.Helper()
	raw, err := e.server.SyscallConn()
	if err == nil {
		var forceErr error
		err = raw.Control(func(fd uintptr) {
			forceErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
		})
		err = errors.Join(err, forceErr)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// send sends a packet of some bytes to the server.
func (e *ends) send(first byte, size int) {
	e.t.Helper()
	to := netip.AddrPortFrom(ServerAddr, uint16(e.server.LocalAddr().(*net.UDPAddr).Port))
	if _, err := e.client.WriteToUDPAddrPort(append([]byte{first}, make([]byte, size-1)...), to); err != nil {
		e.t.Fatal(err)
	}
}

// receive returns the first bytes of the packets that come, when so many were sent from the beginning on: of all that the
// link says it has let through, and of more if there are more. from is where the last one came from.
func (e *ends) receive(sent int) (got []byte, from netip.Addr) {
	e.t.Helper()
	buf := make([]byte, 2000)
	for end := time.Now().Add(time.Minute); ; {
		up, _ := e.network.Counts()
		all := up.Packets == sent && e.came >= up.Packets-up.Cut-up.Lost-up.Dropped+up.Doubled
		if err := e.server.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			e.t.Fatal(err)
		}
		_, addr, err := e.server.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			got, from = append(got, buf[0]), addr.Addr()
			e.came++
		case !errors.Is(err, os.ErrDeadlineExceeded):
			e.t.Fatal(err)
		case all:
			return got, from
		case time.Now().After(end):
			e.t.Fatalf("%d packets came, of %+v", e.came, up)
		}
	}
}

// The same seed does the same to the same packets, another does something else, and every kind of trouble comes.
func TestSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) ([]byte, Count) {
		e := open(t, fast(seed))
		for i := range 250 {
			e.send(byte(i), 100)
		}
		got, _ := e.receive(250)
		slices.Sort(got) // how late something is, is a matter of time
		up, _ := e.network.Counts()
		return got, up
	}
	first, count := run(1)
	if count.Lost == 0 || count.Doubled == 0 || count.Late == 0 || count.Dropped+count.Cut > 0 {
		t.Errorf("of 250 packets: %+v", count)
	}
	if want := 250 - count.Lost + count.Doubled; len(first) != want {
		t.Errorf("%d packets came, want %d", len(first), want)
	}
	if again, _ := run(1); !slices.Equal(again, first) {
		t.Errorf("of the same packets came\n%v\n%v", first, again)
	}
	if other, _ := run(2); slices.Equal(other, first) {
		t.Error("another seed has done the same")
	}
}

// A late packet is overtaken by those behind it.
func TestLate(t *testing.T) {
	t.Parallel()
	c := fast(1)
	c.Loss, c.Double, c.Reorder = 0, 0, 0.2
	e := open(t, c)
	for i := range 100 {
		e.send(byte(i), 100)
	}
	if got, _ := e.receive(100); slices.IsSorted(got) || len(got) != 100 {
		t.Errorf("of 100 packets, some of them late, came %v", got)
	}
}

// The link has no more room than it should.
func TestRate(t *testing.T) {
	t.Parallel()
	c := Config{Delay: 20 * time.Millisecond, Rate: 1_000_000, Queue: 200 * time.Millisecond}
	e := open(t, c)
	start := time.Now()
	for i := range 400 {
		e.send(byte(i%250), 1000)
	}
	got, _ := e.receive(400)
	up, _ := e.network.Counts()
	if len(got)+up.Dropped != 400 || up.Dropped == 0 {
		t.Errorf("400 kB into a queue of 200: %d packets came, %d were dropped", len(got), up.Dropped)
	}
	if want := time.Duration(up.Crossed) * time.Microsecond; up.Busy != want || time.Since(start) < want {
		t.Errorf("%d bytes took %v of the link's time, came within %v", up.Crossed, up.Busy, time.Since(start))
	}
}

// A cut lets nothing through, and another address is one.
func TestCutAndMove(t *testing.T) {
	t.Parallel()
	e := open(t, Config{Delay: time.Millisecond, Rate: 1_000_000, Queue: time.Second})
	e.send(1, 100)
	if _, from := e.receive(1); from != e.network.ClientAddr() {
		t.Errorf("from %v, want %v", from, e.network.ClientAddr())
	}
	e.network.SetCut(true)
	e.send(2, 100)
	for up := (Count{}); up.Cut == 0; up, _ = e.network.Counts() {
		time.Sleep(time.Millisecond) // until it has come to the relay
	}
	e.network.SetCut(false)
	old := e.network.ClientAddr()
	e.network.Move()
	e.send(3, 100)
	if got, from := e.receive(3); len(got) != 1 || from == old || from != e.network.ClientAddr() {
		t.Errorf("%v came, from %v, want 3 from %v", got, from, e.network.ClientAddr())
	}
}
