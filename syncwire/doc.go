// Package syncwire is the protocol by which a workspace is replicated. PROTOCOL.md says what travels; this package sends
// and receives it, and knows nothing of how a workspace is stored.
//
// # Who implements what
//
//	vfs.Authority   one workspace where its revisions are made: a store implements it, and syncwire/wiretest proves it
//	Server          serves authorities to clients, on any number of Listeners
//	Client          is the authority at the other end of a connection, and follows its feed
//	Verifier        decides on tokens, for a server
//	Service         something else that is asked over the same connection, on a stream of its own
//
// Three examples show all of it: an authority of one's own (under a hundred lines), a server, and a client that tails a
// workspace (Client.Follow). [DecodeFrame] puts what travels into words.
//
// # A session
//
//	client                                        server
//	control ── hello ──────────────────────────▶  verifies the token, opens the workspace
//	        ◀─────────────────────────── welcome
//	        ── where, get, sums, lease, missing ▶  answered in any order, some at a time
//	feed    ── attach ─────────────────────────▶
//	        ◀── begin, records…, update, begin, …   as revisions are made
//	push    ── push, chunk…, changes… ─────────▶  applied whole or not at all
//	        ◀─────────────────────────── outcome
//	bulk    ── fetch ──────────────────────────▶
//	        ◀─────────────────── chunk…, fetched
//
// Each of these is a stream of a [Link]: of one QUIC connection, or a connection of its own on TCP and unix sockets. They
// are tied together by a key that the client makes, so that all of them may begin in one flight.
//
// # Promises
//
//   - A push that was answered is durable. One that was not is made again under its id, on the next session, and has
//     its effect once.
//   - A feed brings every change once and in order, and nothing that the session itself has pushed.
//   - What a peer sends is checked before it is believed. Who breaks the protocol loses a stream, and is told why.
//   - The memory that a server spends on a session is bounded (limits.go), whatever the client does, and one session
//     can have no more than a quarter of what there is for all.
//
// # Cost
//
// Chunks of 16 MiB from one process to itself on two cores, medians of five beside the same bytes over the bare connection
// (BenchmarkFetch): 0.87 of quic-go's 400 MB/s, 0.94 of TLS's 1,110, and 1,700 MB/s over a unix socket, which is 4.7 times
// QUIC. SHA-256 of the chunks takes 5 ms for 16 MiB, two side by side.
//
// # Goroutines and locks
//
// A server has a goroutine for each stream, one more for each feed, and up to maxRequests for each session; Close waits
// for all. A client has two for each session, one more when that is over QUIC, and one while it connects; Close waits for
// them too. One more reads ahead for each ReadChunks, which waits for it. Frames are written in turns, which a deadline
// bounds; no lock is held across I/O.
package syncwire
