// Package exclusive gives a workspace to one writer at a time: of all mirrors only that one may push. It is a service on the streams of
// syncwire (PROTOCOL.md, section 14).
//
//	mirror                                       server
//	Follow ── open service "writer" ──────────▶  Guard.Service
//	         ── watch or claim ───────────────▶
//	         ◀── free, yours or another's ────   at once, at each change, and every few seconds
//	Push ─────────────────────────────────────▶  Guard.Wrap: ErrReadOnly while it is another's
//
// # The lease
//
// Who claims first has it, as long as its stream lasts, and for Grace after that was lost, so that it finds it again when its link
// comes back. Then, or when it gives it back, the next one has it that claims. A new writer is told only when no push of another is
// under way any more.
//
// A writer that has heard nothing for Patience must take it that it is the writer no longer. That is shorter than Grace, by clocks that
// need agree on nothing but how long a second is: so there are never two.
//
// The lease is in the memory of the server. One that is started again has none until the writer claims anew, and takes pushes of
// others until then. Who writes on the server's own machine is no mirror, and is not bound by it.
//
// # Locks
//
// Guard.mu is held for no longer than it takes to look at a few words.
package exclusive
