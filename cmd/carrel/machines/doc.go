// Package machines has things run on machines that have joined a workspace, over the connections that those hold: no port is opened
// there, and a NAT in between does not matter.
//
//	carrel exec --on NAME ── control.sock ──▶ [Book] ══ HTTP/2 on a stream of the service "exec" ══▶ [Listener] ── execd/api
//	a program with a token ── TLS, HTTP/3 ──▶    │                                                     of the join
//	                                  syncwire.Server                                             syncwire.Client
//
// The machine opens the stream and says its name (syncwire/PROTOCOL.md, section 15); from then on it is the server there, of the API
// of execs. The book passes calls on as they are. So whatever the API promises holds across machines: events have numbers and are
// taken up after any of them, input of a feed has offsets and is taken once, and an id is run once, whatever breaks in between. What
// runs there is bracketed as on every join.
//
// # Rights
//
// A machine needs a token with the right to exec, since it is told what is run, and what with. Who asks needs the same, at the
// socket or the API of the server. The machine itself refuses what needs an administrator, and everything but execs: it has
// offered those and no more. The token of who asks does not travel on.
//
// # Locks
//
// Book.mu is held for no longer than it takes to look at a few words.
package machines
