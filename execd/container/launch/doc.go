// Package launch is the inside of a container: what this program is when it is the first process of one.
//
//	daemon ── clone: user*, mount, pid, net, ipc, uts, cgroup ──▶ outer (pid 1 of the workspace's container)
//	   │                                                           │ builds the root filesystem, brings loopback up
//	   │  Setup, then Requests: workspace, runners ── fd 3 ─────── │
//	   │                                                           └── clone: mount, pid ──▶ inner (pid 1 of one exec)
//	   │  Command, Control; Report ── fd 3 ──────────────────────────────────────────────────── │ own /proc, restricts
//	   │                                                                                         └── exec ──▶ the command
//
//	* when the daemon is not root
//
// Both are this very program, started again by another name. They run in the init function of this package, which
// imports next to nothing: Go runs it before the packages that sort after it, so that a start costs a fifth of what the
// whole program's would. Every main that uses execd/container therefore only has to import it.
//
// Each exec has a pid namespace of its own, so that its end is the kernel's business: when inner dies, everything in it
// is killed, however it was started and whatever it has done to its parents, sessions and groups. Outer dies when
// the daemon's end of its socket closes, and with it all of its execs.
//
// What the command can do is taken from the thread that starts it, not from inner as a whole, which keeps what it needs
// to signal and to reap. Neither process can be traced or looked at from inside: they are not dumpable.
package launch
