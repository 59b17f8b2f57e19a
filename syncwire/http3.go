package syncwire

import (
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// httpUniStreams is how many streams in one direction a client of HTTP/3 may open: the three of RFC 9114 and RFC 9204, and some
// that it may try out how a server takes those that it does not know.
const httpUniStreams = 8

// ListenOption changes what ListenQUIC does.
type ListenOption func(*quicListener)

// WithHTTP has a listener serve HTTP/3 too, at the same address, to clients that ask for that in the handshake (ALPN h3) in
// place of the protocol. known is asked about the key that a client has shown, which is zero for none, with each request; nil
// is for any. Requests that are under way are aborted when the listener is closed.
func WithHTTP(h http.Handler, known func(Fingerprint) bool) ListenOption {
	if known != nil {
		inner := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !known(shownKey(*r.TLS)) {
				http.Error(w, ErrClientKey.Error(), http.StatusForbidden)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
	return func(l *quicListener) { l.http = &http3.Server{Handler: h} }
}

// prepareHTTP lets in who asks for HTTP/3.
func (l *quicListener) prepareHTTP(protocols *[]string, config *quic.Config) {
	if l.http != nil {
		*protocols = append(*protocols, http3.NextProtoH3)
		config.MaxIncomingUniStreams = httpUniStreams
	}
}

// serveConn serves a connection as what it is of.
func (l *quicListener) serveConn(conn *quic.Conn) {
	switch {
	case l.http == nil:
		l.acceptStreams(conn)
	case conn.ConnectionState().TLS.NegotiatedProtocol == http3.NextProtoH3:
		defer conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		_ = l.http.ServeQUICConn(conn) // how a client ended says nothing
	default:
		l.group.Go(func() { l.refuseUniStreams(conn) })
		l.acceptStreams(conn)
	}
}

// refuseUniStreams ends a connection with a stream in one direction. The protocol has none; the handshake let them be for
// HTTP/3 alone.
func (l *quicListener) refuseUniStreams(conn *quic.Conn) {
	if _, err := conn.AcceptUniStream(l.ctx); err == nil {
		conn.CloseWithError(0, "a stream in one direction")
	}
}
