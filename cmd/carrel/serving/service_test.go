package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stand is a store that is served.
type stand struct {
	service *Service
	store   *casstore.Store
	dir     string
	now     control.Served
	end     func() error // ends the serving
	kept    int
}

func serveStore(t *testing.T, o control.ServeOptions) *stand {
	t.Helper()
	s := &stand{dir: t.TempDir()}
	var err error
	if s.store, err = casstore.Open(filepath.Join(s.dir, "store"), casstore.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "other"} {
		if _, err := s.store.CreateWorkspace(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.service = New(Config{
		Store: s.store, Dir: s.dir, Agent: "test", Log: slog.New(slog.DiscardHandler),
		API: func(handle func(string, http.Handler), access api.Access) {
			handle("GET /may/{workspace}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := access(r.Context(), r.Header, r.PathValue("workspace"), api.Read); err != nil {
					http.Error(w, err.Error(), http.StatusForbidden)
				}
			}))
		},
		Keep: func() (func(), error) {
			s.kept++
			return func() { s.kept-- }, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan control.Served, 1), make(chan error, 1)
	go func() { done <- s.service.Serve(ctx, o, func(now control.Served) { ready <- now }) }()
	select {
	case s.now = <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	s.end = func() error {
		cancel()
		return <-done
	}
	return s
}

// finish ends the serving, and finds nothing left of it and the store whole.
func (s *stand) finish(t *testing.T) {
	t.Helper()
	if err := s.end(); err != nil || s.kept != 0 {
		t.Errorf("the end: %v, kept %d times", err, s.kept)
	}
	if _, err := os.Stat(s.now.Unix); !os.IsNotExist(err) {
		t.Errorf("the unix socket is left: %v", err)
	}
	report, err := s.store.Check(context.Background(), casstore.CheckOptions{Bytes: true})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("Check: %+v, %v", report, err)
	}
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
}

// local is a client of the store's own user.
func (s *stand) local(t *testing.T, workspace string) *syncwire.Client {
	c := syncwire.NewClient(syncwire.ClientConfig{Dialer: syncwire.DialUnix(s.now.Unix), Workspace: workspace, Agent: "local"})
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *stand) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + s.now.Metrics + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// upTo follows a feed to its first update, which it acknowledges or not.
type upTo struct {
	client *syncwire.Client
	acks   bool
	came   chan struct{}
	cursor vfs.Cursor
}

func (u *upTo) Resume() (vfs.Cursor, vfs.Ino) { return u.cursor, 0 }
func (u *upTo) Begin(syncwire.FeedPart) error { return nil }
func (u *upTo) Records(_ []vfs.Record) error  { return nil }
func (u *upTo) Update(f syncwire.FeedUpdate) error {
	u.cursor = f.Position.Cursor
	if u.acks {
		u.client.Acknowledge(f.Position.Rev)
	}
	u.came <- struct{}{}
	return nil
}

func TestServe(t *testing.T) {
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0", Workspaces: []string{"demo"}})
	defer s.finish(t)
	_, udp, _ := net.SplitHostPort(s.now.Listen)
	_, tcp, _ := net.SplitHostPort(s.now.TLS)
	if udp != tcp || udp == "0" || s.now.Host != "127.0.0.1" {
		t.Errorf("served at %+v", s.now)
	}
	if info, err := os.Stat(filepath.Join(s.dir, keyName)); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	client := s.local(t, "demo")
	w, err := client.Welcome(t.Context())
	if err != nil || w.Rights != allRights || w.Agent != "test" {
		t.Errorf("Welcome = %+v, %v", w, err)
	}
	if _, err := s.local(t, "other").Welcome(t.Context()); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("a workspace that is not served: %v", err)
	}
	pin, err := syncwire.ParseFingerprint(s.now.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	for _, dialer := range []syncwire.Dialer{syncwire.DialQUIC(s.now.Listen, pin), syncwire.DialTLS(s.now.TLS, pin)} {
		stranger := syncwire.NewClient(syncwire.ClientConfig{Dialer: dialer, Workspace: "demo"})
		if _, err := stranger.Welcome(t.Context()); !errors.Is(err, syncwire.ErrToken) {
			t.Errorf("without a token: %v", err)
		}
		stranger.Close()
	}
	err = s.service.Serve(t.Context(), control.ServeOptions{Listen: "127.0.0.1:0"}, nil)
	if !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("a second Serve: %v, want ErrBusy", err)
	}
	if code, text := s.get(t, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if err := s.store.RemoveWorkspace(t.Context(), "demo"); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("remove a workspace with a session: %v", err)
	}
}

// What peers lack is told, of those who follow.
func TestMetrics(t *testing.T) {
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0"})
	defer s.finish(t)
	client := s.local(t, "demo")
	f := &upTo{client: client, came: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- client.Follow(ctx, vfs.AllInos, f) }()
	<-f.came // and nothing is acknowledged
	var p control.Peer
	for p.Sent == 0 { // the server notes that it has sent an update after it has
		list, err := s.service.Served(t.Context())
		if err != nil || len(list) != 1 || len(list[0].Peers) != 1 {
			t.Fatalf("Served = %+v, %v", list, err)
		}
		p = list[0].Peers[0]
	}
	if p.Workspace != "demo" || p.Subject != "local" || p.Transport != "unix" || p.Agent != "local" || p.Head == 0 ||
		p.Sent != p.Head || p.Behind != 1 || p.Lag < 0 {
		t.Errorf("peer %+v", p)
	}
	_, text := s.get(t, "/metrics")
	for _, want := range []string{
		`carrel_sync_sessions{transport="unix"} 1`, `carrel_sync_sessions{transport="quic"} 0`, "carrel_sync_peers 1",
		`carrel_sync_peer_lag_revisions{peer="`, `carrel_sync_peer_lag_seconds{peer="`, `subject="local",workspace="demo"}`,
		`carrel_sync_pushes_total{outcome="stale"} 0`, `carrel_sync_chunks_total{direction="in"} 0`, "go_goroutines ",
		`carrel_sync_feeds_total{from="snapshot"} 1`, `carrel_sync_requests_total{request="push"} 0`,
		`carrel_sync_updates_total 1`, `carrel_sync_udp_buffer_bytes{address="` + s.now.Listen + `",direction="in"} `,
		`carrel_sync_udp_dropped_packets_total{address="` + s.now.Listen + `"} 0`,
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	problems, err := testutil.GatherAndLint(s.service.now().registry())
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	cancel()
	if err := <-followed; !errors.Is(err, vfs.ErrInterrupted) {
		t.Error(err)
	}
}

// The package comment says which metrics there are.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(carrel_sync_\w+)`).FindAllStringSubmatch(string(doc), -1) {
		listed[m[1]] = true
	}
	ch := make(chan *prometheus.Desc, 100)
	collector(nil).Describe(ch)
	close(ch)
	for d := range ch {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is listed, and is none", name)
	}
}

// Two sessions of one mirror, and names that the format cannot hold, give no series twice.
func TestMetricsOfOddPeers(t *testing.T) {
	c := collector(func() control.Served {
		return control.Served{Peers: []control.Peer{
			{Workspace: "a\xff", Transport: "quic", Head: 9, Sent: 9, Acked: 3, Behind: 4}, {Workspace: "a\xfe", Transport: "tcp", Head: 9},
			{Workspace: "a\xff", Transport: "quic", Head: 9, Sent: 9, Acked: 8, Behind: 1},
			{Workspace: "b", Subject: `q"\` + "\n", Transport: "unix", Head: 9},
		}}
	})
	err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP carrel_sync_peers Mirrors that have a session.
# TYPE carrel_sync_peers gauge
carrel_sync_peers 2
# HELP carrel_sync_peer_lag_revisions Revisions of the workspace by which a mirror is behind.
# TYPE carrel_sync_peer_lag_revisions gauge
carrel_sync_peer_lag_revisions{peer="00000000000000000000000000000000",subject="",workspace="a`+"\uFFFD"+`"} 1
`), "carrel_sync_peers", "carrel_sync_peer_lag_revisions")
	if err != nil {
		t.Error(err)
	}
}

// An address that another has is told as such, and nothing is left open.
func TestAddressInUse(t *testing.T) {
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0"})
	defer s.finish(t)
	dir := t.TempDir()
	again := New(Config{
		Store: s.store, Dir: dir, Log: slog.New(slog.DiscardHandler), Keep: func() (func(), error) { return func() {}, nil },
	})
	for name, o := range map[string]control.ServeOptions{
		"UDP":     {Listen: s.now.Listen, TLS: "127.0.0.1:0"},
		"TCP":     {Listen: "127.0.0.1:0", TLS: s.now.TLS},
		"metrics": {Listen: "127.0.0.1:0", Metrics: s.now.TLS},
	} {
		if err := again.Serve(t.Context(), o, nil); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("%s: %v, want ErrBusy", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, socketName)); !os.IsNotExist(err) {
		t.Errorf("the unix socket is left: %v", err)
	}
}

func TestHostFor(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:4477": "127.0.0.1", "[::1]:4477": "::1", "carrel.example:4477": "carrel.example",
	} {
		if got := hostFor(addr); got != want {
			t.Errorf("hostFor(%q) = %q, want %q", addr, got, want)
		}
	}
	for _, addr := range []string{":4477", "0.0.0.0:4477", "[::]:4477"} {
		if got := hostFor(addr); got == "" || net.ParseIP(got).IsUnspecified() {
			t.Errorf("hostFor(%q) = %q", addr, got)
		}
	}
}

// The API is served over TLS by token, and says that it is by HTTP/3 at the address for QUIC.
func TestAPI(t *testing.T) {
	s := serveStore(t, control.ServeOptions{Listen: "127.0.0.1:0", API: "127.0.0.1:0"})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := client.Get("https://" + s.now.API + "/may/demo")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(s.now.Listen)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Error(err)
	}
	if got := r.Header.Get("Alt-Svc"); r.StatusCode != http.StatusForbidden || got != `h3=":`+port+`"; ma=3600` {
		t.Errorf("status %d, Alt-Svc %q, listening at %s", r.StatusCode, got, s.now.Listen)
	}
	s.finish(t)
}
