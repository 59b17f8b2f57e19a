package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/carrelfs/carrel/casstore/control"
)

// serveMetrics answers /metrics and /healthz until ctx ends.
func (r *running) serveMetrics(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.registry(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", r.answerHealth)
	server := &http.Server{Handler: mux, ReadTimeout: scrapeTimeout, WriteTimeout: scrapeTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns then
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (r *running) answerHealth(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), healthPatience)
	defer cancel()
	if err := r.healthy(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // who asked may be gone
}

func (r *running) registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector(r.served), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// collector makes metrics of what is served, each time it is asked for them.
type collector func() control.Served

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("carrel_sync_"+name, help, labels, nil)
}

var (
	sessionsMetric  = metric("sessions", "Sessions by transport.", "transport")
	begunMetric     = metric("sessions_begun_total", "Sessions that were begun, by clients that have connected again too.")
	gsoMetric       = metric("gso_sessions", "QUIC sessions for which the kernel cuts what is sent into packets.")
	peersMetric     = metric("peers", "Mirrors that have a session.")
	headMetric      = metric("head_revision", "Newest revision of a workspace that has sessions.", "workspace")
	behindMetric    = metric("peer_lag_revisions", "Revisions of the workspace by which a mirror is behind.", peerLabels...)
	lagMetric       = metric("peer_lag_seconds", "For how long there has been a revision that a mirror lacks.", peerLabels...)
	requestsMetric  = metric("requests_total", "Requests that were taken, each a round trip of a client.", "request")
	feedsMetric     = metric("feeds_total", "Feeds that began with a snapshot, or went on from a cursor.", "from")
	updatesMetric   = metric("updates_total", "Updates that feeds have sent.")
	pushesMetric    = metric("pushes_total", "Pushes by outcome: applied, stale (a conflict), or missing chunks.", "outcome")
	wireMetric      = metric("stream_bytes_total", "Bytes of all streams, without what the transport adds.", "direction")
	chunksMetric    = metric("chunks_total", "Chunks that were received (in) and sent (out).", "direction")
	bytesMetric     = metric("chunk_bytes_total", "Bytes of chunks in stored form, received (in) and sent (out).", "direction")
	bufferMetric    = metric("udp_buffer_bytes", "What the kernel lets wait at a UDP socket.", "address", "direction")
	droppedMetric   = metric("udp_dropped_packets_total", "Packets dropped because nobody read them in time.", "address")
	badTokensMetric = metric("bad_tokens_total", "Tokens that were not accepted.")
	badKeysMetric   = metric("bad_client_keys_total", "Streams of clients that showed no key of --client-keys.")
	refusedMetric   = metric("refused_streams_total", "Streams that ended with an error that was told.")

	peerLabels = []string{"workspace", "subject", "peer"}
)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		sessionsMetric, begunMetric, gsoMetric, peersMetric, headMetric, behindMetric, lagMetric, requestsMetric, feedsMetric,
		updatesMetric, pushesMetric, wireMetric, chunksMetric, bytesMetric, bufferMetric, droppedMetric, badTokensMetric,
		badKeysMetric, refusedMetric,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	served := c()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	t := &served.Traffic
	count(begunMetric, t.Sessions)
	for request, n := range t.Requests {
		count(requestsMetric, n, request)
	}
	count(feedsMetric, t.Snapshots, "snapshot")
	count(feedsMetric, t.Resumes, "cursor")
	count(updatesMetric, t.Updates)
	count(wireMetric, t.WireIn, "in")
	count(wireMetric, t.WireOut, "out")
	count(pushesMetric, t.Pushes, "applied")
	count(pushesMetric, t.StalePushes, "stale")
	count(pushesMetric, t.MissingPushes, "missing")
	count(chunksMetric, t.ChunksIn, "in")
	count(chunksMetric, t.ChunksOut, "out")
	count(bytesMetric, t.BytesIn, "in")
	count(bytesMetric, t.BytesOut, "out")
	count(badTokensMetric, t.BadTokens)
	count(badKeysMetric, t.BadKeys)
	count(refusedMetric, t.Refused)
	for _, x := range served.Sockets {
		count(droppedMetric, x.Dropped, x.Addr)
		gauge(ch, bufferMetric, float64(x.ReadBuffer), x.Addr, "in")
		gauge(ch, bufferMetric, float64(x.WriteBuffer), x.Addr, "out")
	}
	collectPeers(ch, served.Peers)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// peerKey is a mirror at a workspace, as labels have it.
type peerKey struct{ workspace, subject, peer string }

// collectPeers makes one series of each mirror: while it connects again it may have two sessions, of which the better
// counts.
func collectPeers(ch chan<- prometheus.Metric, peers []control.Peer) {
	transports := map[string]int{"quic": 0, "tcp": 0, "unix": 0}
	heads, best := map[string]uint64{}, map[peerKey]control.Peer{}
	gso := 0
	for _, p := range peers {
		transports[p.Transport]++
		if p.GSO {
			gso++
		}
		key := peerKey{label(p.Workspace), label(p.Subject), fmt.Sprintf("%x", p.ID)}
		heads[key.workspace] = max(heads[key.workspace], uint64(p.Head))
		if old, ok := best[key]; !ok || old.Sent == 0 || p.Sent != 0 && p.Acked > old.Acked {
			best[key] = p
		}
	}
	for transport, n := range transports {
		gauge(ch, sessionsMetric, float64(n), transport)
	}
	for workspace, rev := range heads {
		gauge(ch, headMetric, float64(rev), workspace)
	}
	gauge(ch, gsoMetric, float64(gso))
	gauge(ch, peersMetric, float64(len(best)))
	for key, p := range best {
		if p.Sent != 0 {
			gauge(ch, behindMetric, float64(p.Behind), key.workspace, key.subject, key.peer)
			gauge(ch, lagMetric, p.Lag.Seconds(), key.workspace, key.subject, key.peer)
		}
	}
}

// label is a name as the format can say it, which is in UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
