package syncwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// quicLink is a client's connection. When nothing comes back by it any more, it goes on by another socket, as another path
// (RFC 9000, section 9).
//
//	at 0 ── the handshake's path, until there is another
//	     ── probe by socket 1, and go on there ── probe by socket 0 ── ready: both can be taken without asking
//	     ── silence: take the other; again, every few seconds, until something comes
//
// Loss recovery alone would find out by itself that a link is there again, but asks after twice the time, each time: after
// a cut of 30 seconds it was silent for 20 more (measured). Taking a path makes both sides forget what they believed of
// the way between them, and send again at once what it has swallowed. The other socket has another port, so a NAT that
// has forgotten the first does not matter.
//
// It is prepared in advance because quic-go sends no probes while its window is full, which it is in a cut. The path of the
// handshake is left for its twin because that can be taken again. And when this machine's own address has changed, the
// path in use is taken again: to take the other would use up the ids by which the server tells paths apart, and it would
// answer neither.
type quicLink struct {
	conn   *quic.Conn
	server *net.UDPAddr
	peer   StreamPeer // as it was: the connection must not be asked while it moves
	way    *way
	paths  [sockets]*quic.Path // by each socket; nil until it has answered
	at     int                 // the socket in use
	moved  bool                // since something came last
	probed time.Time           // when a probe was not answered last
	group  sync.WaitGroup
}

const (
	// lookEvery is how often a link looks whether something has come. It is longer than any acknowledgement is held back.
	lookEvery = 500 * time.Millisecond

	// unanswered is how long what was sent may go without any answer, at the least, and unansweredTrips the same in round
	// trips, before the link moves.
	unanswered      = 1500 * time.Millisecond
	unansweredTrips = 4

	// probing is how long the answer to a probe may take, and probeAgain after how long without one there is another: a
	// firewall may let one socket through and not the other.
	probing    = time.Second
	probeAgain = 10 * time.Second
)

func newQUICLink(conn *quic.Conn, w *way, server *net.UDPAddr) *quicLink {
	l := &quicLink{conn: conn, server: server, way: w, peer: quicPeer(conn, shownKey(conn.ConnectionState().TLS))}
	w.lossy.Store(true)
	l.group.Go(l.watch)
	return l
}

func (l *quicLink) Open(ctx context.Context) (Stream, error) {
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return &quicStream{Stream: s, peer: func() StreamPeer { return l.peer }}, nil
}

func (l *quicLink) Close() error {
	err := l.conn.CloseWithError(0, "")
	l.group.Wait()
	return errors.Join(err, l.way.close())
}

// watch keeps the connection on a path that works, until it ends.
func (l *quicLink) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var silence silenceWatch
	home := l.way.source(l.server)
	for {
		select {
		case <-l.conn.Context().Done():
			return
		case now := <-ticker.C:
			stats := l.conn.ConnectionStats()
			heard := stats.PacketsReceived != silence.received
			l.moved = l.moved && !heard
			silent, at := silence.look(now, &stats), l.way.source(l.server)
			switch {
			case at.IsValid() && at != home:
				l.take(l.at)
				home = at
			case silent:
				l.leave()
				silence = silenceWatch{received: stats.PacketsReceived}
			case heard && now.Sub(l.probed) > probeAgain:
				l.prepare()
			}
		}
	}
}

// prepare has the server answer by the socket that is not in use.
func (l *quicLink) prepare() {
	other := sockets - 1 - l.at
	if l.paths[other] != nil {
		return
	}
	l.paths[other] = l.probe(other)
	switch {
	case l.paths[other] == nil:
		l.probed = time.Now()
	case l.paths[l.at] == nil:
		l.take(other)
	}
}

// probe returns a path by a socket, or nil when it is not answered.
func (l *quicLink) probe(socket int) *quic.Path {
	t, err := l.way.transport(socket)
	if err != nil {
		return nil
	}
	path, err := l.conn.AddPath(t)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.conn.Context(), probing)
	defer cancel()
	if err := path.Probe(ctx); err != nil {
		path.Close()
		return nil
	}
	return path
}

// leave takes the other socket. When that was done already and nothing has come since, it is done again: to go back would
// be to where the server believes the client, who then sees no reason to begin anew.
func (l *quicLink) leave() {
	to := l.at
	if !l.moved {
		to = sockets - 1 - l.at
	}
	l.moved = l.take(to)
}

// take goes on by a socket, from the beginning, if it has answered.
func (l *quicLink) take(socket int) bool {
	if l.paths[socket] == nil || l.paths[socket].Switch() != nil {
		return false
	}
	l.at = socket
	l.wake()
	return true
}

// wake has quic-go see that it is to move. Switch alone does not wake it, nor is there anything to wait for in a cut: but
// that a path was closed does.
func (l *quicLink) wake() {
	t, err := l.way.transport(0)
	if err != nil {
		return
	}
	if path, err := l.conn.AddPath(t); err == nil {
		path.Close()
	}
}

// silenceWatch finds out that what a connection sends is not answered. An acknowledgement may be the last that was sent,
// and has no answer; so what counts is what is sent after a look that found nothing new.
type silenceWatch struct {
	received uint64
	settled  bool      // sent is of a look after the last packet came
	sent     uint64    //
	since    time.Time // when something had been sent after that; zero when not
}

// look reports whether it is time to move.
func (s *silenceWatch) look(now time.Time, stats *quic.ConnectionStats) bool {
	switch {
	case stats.PacketsReceived != s.received:
		*s = silenceWatch{received: stats.PacketsReceived}
	case !s.settled:
		s.settled, s.sent = true, stats.PacketsSent
	case stats.PacketsSent == s.sent:
	case s.since.IsZero():
		s.since = now
	default:
		return now.Sub(s.since) >= max(unanswered, unansweredTrips*stats.SmoothedRTT)
	}
	return false
}
