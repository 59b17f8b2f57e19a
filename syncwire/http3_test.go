package syncwire

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// browser is a client of HTTP/3 that trusts anybody, with a key or none.
func browser(t *testing.T, key ...tls.Certificate) *http.Client {
	t.Helper()
	transport := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: key}}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

func getText(t *testing.T, c *http.Client, l Listener) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+l.Addr().String()+"/where", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// At one address, who asks for HTTP/3 is given that, and who speaks the protocol a session.
func TestHTTPBesideSessions(t *testing.T) {
	id := testIdentity(t)
	l, err := ListenQUIC("127.0.0.1:0", id, WithHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.URL.Path)
	}), nil))
	if err != nil {
		t.Fatal(err)
	}
	web := browser(t)
	serving(t, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
	c := client(t, DialQUIC(l.Addr().String(), id.Fingerprint()), 1, "reader")
	for range 3 {
		if code, text := getText(t, web, l); code != 200 || text != "HTTP/3.0 /where" {
			t.Errorf("%d %q", code, text)
		}
		if _, err := c.Position(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A key that is wanted is looked at with each request.
func TestHTTPClientKeys(t *testing.T) {
	id, own := testIdentity(t), testIdentity(t)
	var known atomic.Bool
	known.Store(true)
	l, err := ListenQUIC("127.0.0.1:0", id, WithHTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		func(f Fingerprint) bool { return known.Load() && f == own.Fingerprint() }))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	with, without := browser(t, own.certificate), browser(t)
	if code, _ := getText(t, without, l); code != http.StatusForbidden {
		t.Errorf("without a key: %d", code)
	}
	if code, _ := getText(t, with, l); code != http.StatusOK {
		t.Errorf("with a key: %d", code)
	}
	known.Store(false)
	if code, _ := getText(t, with, l); code != http.StatusForbidden {
		t.Errorf("with a key that was taken out: %d", code)
	}
}

// A request that is under way does not hold up the end.
func TestHTTPEnds(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	l, err := ListenQUIC("127.0.0.1:0", testIdentity(t), WithHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}), nil))
	if err != nil {
		t.Fatal(err)
	}
	web := browser(t)
	failed := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(context.Background(), "GET", "https://"+l.Addr().String()+"/", nil)
		if err == nil {
			_, err = web.Do(r)
		}
		failed <- err
	}()
	<-began
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if err := <-failed; err == nil {
		t.Error("the request has an answer")
	}
}

// A stream in one direction ends a connection of the protocol, as one does that may not be opened at all.
func TestNoUniStreams(t *testing.T) {
	id := testIdentity(t)
	for name, options := range map[string][]ListenOption{
		"alone": nil, "beside HTTP": {WithHTTP(http.NotFoundHandler(), nil)},
	} {
		l, err := ListenQUIC("127.0.0.1:0", id, options...)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := quic.DialAddr(t.Context(), l.Addr().String(), clientTLS(id.Fingerprint()), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := conn.OpenUniStream()
		if err == nil {
			_, err = s.Write([]byte("x"))
			<-conn.Context().Done()
		}
		if name == "alone" && err == nil {
			t.Error("a stream may be opened")
		}
		_ = conn.CloseWithError(0, "")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
