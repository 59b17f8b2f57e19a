// Package badlink is a bad network for tests: two network namespaces, and between them a relay that delays, loses, doubles
// and reorders packets, lets only so many bytes through, and can be cut.
//
//	client namespace                  this process                    server namespace
//	sockets ── 10.77.0.2  [tun] ── queue, loss, delay, ... ── [tun]  10.77.0.1 ── sockets
//
// Everything above the relay is the kernel's own: addresses, routes, UDP, TCP. So a client that gets another address has
// really got one, and what a protocol sends is counted as it would be on a wire. (tc-netem would do the same in the kernel,
// which must have been built with it; this needs TUN only.)
//
// What happens to the n-th packet of a direction depends on the seed alone, whatever becomes of the packets before it.
// When it comes, and so which packet is the n-th, depends on the machine.
//
// Nothing has to be taken down: a namespace ends with the last socket in it.
package badlink
