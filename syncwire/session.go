package syncwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// session is one client at one workspace, on the server's side.
type session struct {
	server    *Server
	key       sessionKey
	hello     *hello
	grant     Grant
	peer      vfs.PeerID
	authority vfs.Authority
	control   *frameWriter
	began     time.Time

	ctx     context.Context // ends with the control stream, the grant and the server
	cancel  context.CancelCauseFunc
	group   sync.WaitGroup      // a goroutine for each request; streams are the server's
	streams atomic.Int32        // beside the control stream
	share   *semaphore.Weighted // of the server's memory, so that one peer cannot have all of it
	own     ownPushes
	open    openRequests
	lag     lag
}

func newSession(s *Server, m *hello, grant Grant, authority vfs.Authority, control *frameWriter) *session {
	t := &session{
		server: s, key: m.Session, hello: m, grant: grant, peer: peerID(grant.Subject, m.Mirror), authority: authority,
		control: control, began: time.Now(), own: newOwnPushes(), share: semaphore.NewWeighted(s.share()),
	}
	t.ctx, t.cancel = grant.Bind(s.ctx)
	return t
}

// end ends everything of the session and waits for its requests.
func (t *session) end() {
	t.cancel(net.ErrClosed)
	t.group.Wait()
}

func (t *session) welcome(version uint16, position vfs.Position) *welcome {
	w := &welcome{
		Version: version, Peer: t.peer, Rights: t.grant.Rights, Position: position,
		PushRecords: vfs.MaxPushRecords, PushBytes: vfs.MaxPushBytes, Requests: maxRequests, Streams: maxStreams,
		Agent: t.server.config.Agent,
	}
	if !t.grant.Rights.Has(RightRead) {
		w.Position = vfs.Position{} // the digest would tell whether the files are some known ones
	}
	if !t.grant.Expires.IsZero() {
		w.Expires = uint64(t.grant.Expires.Unix())
	}
	return w
}

func (t *session) stats() SessionStats {
	peer := t.control.stream.Peer()
	s := SessionStats{
		Workspace: t.hello.Workspace, Subject: t.grant.Subject, Peer: t.peer, Agent: t.hello.Agent,
		Transport: peer.Transport, GSO: peer.GSO, Since: t.began,
	}
	s.Sent, s.Acked, s.Behind = t.lag.state(time.Now())
	if peer.Addr != nil {
		s.Addr = peer.Addr.String()
	}
	return s
}

// reserve waits for n bytes of the server's memory, or for all that a session may have.
func (t *session) reserve(n int64) (release func(), err error) {
	n = min(n, t.server.share())
	if err := t.share.Acquire(t.ctx, n); err != nil {
		return nil, context.Cause(t.ctx)
	}
	if err := t.server.memory.Acquire(t.ctx, n); err != nil {
		t.share.Release(n)
		return nil, context.Cause(t.ctx)
	}
	return func() {
		t.server.memory.Release(n)
		t.share.Release(n)
	}, nil
}

// may returns ErrRights unless the grant has the rights.
func (t *session) may(r Rights, what string) error {
	if !t.grant.Rights.Has(r) {
		return fmt.Errorf("%s needs the right to %v: %w", what, r, ErrRights)
	}
	return nil
}

// traced counts a request of a stream beside the control stream, and tells of it. done is called with how it ended.
func (t *session) traced(typ frameType) (ctx context.Context, done func(error)) {
	t.server.stats.requests[typ].Add(1)
	return t.server.config.Trace.begin(t.ctx, typ.String())
}

// serve has a stream beside the control stream until it ends.
func (t *session) serve(stream Stream, r *frameReader, w *frameWriter, m *open) error {
	defer t.streams.Add(-1)
	if t.streams.Add(1) > maxStreams {
		return fmt.Errorf("open: %d streams: %w", maxStreams, ErrOverloaded)
	}
	defer context.AfterFunc(t.ctx, func() { stream.Close() })()
	switch m.Kind {
	case streamFeed:
		return t.serveFeed(stream, r, w)
	case streamPush:
		return t.servePush(stream, r, w)
	case streamBulk:
		return t.serveBulk(stream, r, w)
	case streamService:
		return t.serveService(stream, w, m.Service)
	}
	return fmt.Errorf("open: stream of kind %d: %w", m.Kind, vfs.ErrNotSupported)
}

// serveService hands a stream over to a service.
func (t *session) serveService(stream Stream, w *frameWriter, name string) error {
	service, ok := t.server.config.Services[name]
	if !ok {
		return fmt.Errorf("open %q: %w", name, ErrNoService)
	}
	if err := t.may(service.Rights, name); err != nil {
		return err
	}
	if err := w.send(&opened{}); err != nil {
		return err
	}
	stream.SetWriteDeadline(time.Time{})
	err := service.Serve(t.ctx, ServiceStream{
		Stream: stream, Workspace: t.hello.Workspace, Authority: t.authority, Peer: t.peer, Subject: t.grant.Subject,
		Rights: t.grant.Rights,
	})
	if err != nil {
		t.server.log.Warn("service failed", "service", name, "err", err)
	}
	return nil
}

// skip answers a frame that the stream does not know, or that has no place there.
func skip(w *frameWriter, t frameType, body []byte) error {
	if t == frameUnsupported || t == frameError {
		return nil
	}
	if _, ok := messages[t]; ok {
		return fmt.Errorf("%v is not for this stream: %w", t, ErrProtocol)
	}
	c := coder{mode: reading, b: body}
	req := c.cutUint("req") // zero when it does not decode
	return w.send(&unsupported{numbered: numbered{req}, Type: t})
}

// isEnd reports whether an error is that of a stream which has ended or was cut off.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe)
}

// ownUID returns the user of this process.
func ownUID() int { return os.Geteuid() }
