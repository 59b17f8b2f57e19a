// Package daemon keeps workspaces mounted, and served to other machines.
//
// Two processes stand behind a mount:
//
//	carrel mount (supervisor) --starts, and starts again--> carrel daemon
//	     |                                                       |
//	     +-- life: a pipe; the daemon ends when it closes --->   +-- has the store open, serves control.sock
//	     +-- status: a pipe; "ready", or what went wrong  <---   +-- serves the mounts through fusefs
//
// The daemon ([Run]) mounts one workspace at first and more when it is asked over the socket, serves the store to other
// machines while it is asked to (package serving), runs things on workspaces (package execs), and ends when nothing is mounted,
// served, run or held ([Hold]) any more. One that is started to serve or to run something mounts nothing at first, and ends with
// whoever started it. The [Supervisor] holds no state of its own that a crash could lose. It keeps other daemons running too: that
// of 'carrel join' (package join).
//
// # What survives a crash
//
// A daemon that dies, by kill -9 too, leaves mounts on which every access fails. Its supervisor starts another one at
// once, which takes the dead mounts away and puts live ones in their place: those of mounts.json in the store's
// directory (record). Processes that had files open in the mount must open them again; what was synced is there. A
// supervisor that dies closes the life pipe, and its daemon unmounts and ends in order. When both die at once, the next
// mount on the same directory takes the dead one away first.
//
// # Locks
//
// table.recording before table.mu. table.mu guards the table alone: it is not held while anything is mounted,
// unmounted, opened or closed.
package daemon
