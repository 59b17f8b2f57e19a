// Package serving serves the workspaces of a store to other machines: it puts together a store, its tokens and package
// syncwire, in the process that has the store open.
//
//	carrel serve ── control.sock: Serve ──▶ [Service] ── syncwire.Server ── UDP, TCP, sync.sock
//	   stays while the call lasts              │
//	                                           ├── shelf: workspaces, open while there are sessions
//	                                           ├── token.Verifier: tokens.json
//	                                           ├── api: execs and files (execd/api), by HTTP over TLS and, at the address
//	                                           │   for QUIC, by HTTP/3
//	                                           ├── machines.Book: those that have joined and run things
//	                                           └── metrics: /metrics, /healthz
//
// A store is served by one call at a time, for as long as the call lasts. Its end is a drain: sessions are told to go, and
// cut off after drainPatience.
//
// The server's key is in server.key in the store's directory, of mode 0600, made when the store is first served. Who can
// open sync.sock, which is of mode 0600 too, could as well read the store: processes of the store's own user need no token
// there, and the kernel says who they are. Everywhere else, loopback too, a token decides.
//
// With a file of client keys, who comes by UDP or TCP needs a key that is in it, too. The sessions of a key that is taken out of
// it end within a second.
//
// # Metrics
//
// At /metrics, with --metrics, beside those of the Go runtime and of the process:
//
//	carrel_sync_sessions{transport}                 sessions now, by quic, tcp and unix
//	carrel_sync_sessions_begun_total                sessions in all: the increase is new clients, and those that reconnect
//	carrel_sync_gso_sessions                        QUIC sessions for which the kernel cuts what is sent into packets (GSO)
//	carrel_sync_peers                               mirrors that have a session
//	carrel_sync_head_revision{workspace}            newest revision of a workspace that has sessions
//	carrel_sync_peer_lag_revisions{workspace,...}   revisions of the workspace by which a mirror is behind, counted among the
//	                                                newest 10,000 of the store; also {subject,peer}
//	carrel_sync_peer_lag_seconds{workspace,...}     for how long there has been one that it lacks
//	carrel_sync_requests_total{request}             round trips, by get, push, fetch and so on (PROTOCOL.md)
//	carrel_sync_feeds_total{from}                   feeds from a snapshot, or from a cursor after a reconnect
//	carrel_sync_updates_total                       updates that feeds have sent
//	carrel_sync_pushes_total{outcome}               applied, stale (each is a conflict to the mirror) and missing (chunks)
//	carrel_sync_stream_bytes_total{direction}       all bytes in and out, without what the transport adds
//	carrel_sync_chunks_total{direction}             chunks in and out
//	carrel_sync_chunk_bytes_total{direction}        their bytes, in stored form
//	carrel_sync_udp_buffer_bytes{address,direction} what the kernel lets wait at the UDP socket; 7 MiB are asked for, of which
//	                                                the kernel makes 14 for its bookkeeping
//	carrel_sync_udp_dropped_packets_total{address}  packets dropped because that was full: raise net.core.rmem_max
//	carrel_sync_bad_tokens_total                    tokens that were not accepted
//	carrel_sync_bad_client_keys_total               streams of clients that showed no key of --client-keys
//	carrel_sync_refused_streams_total               streams that ended with an error that was told
//
// How often a client has made its requests again, and connected again, it knows itself (syncwire.ClientStats).
//
// There are no spans of OpenTelemetry in the program: what exports them brings gRPC and protobuf along, some megabytes, for
// what few would turn on. syncwire.ServerConfig.Trace is where an embedder puts a tracer in.
//
// # Locks
//
// Service.mu and shelf.mu are leaves: neither is held while anything is opened, closed, listened on or drained.
package serving
