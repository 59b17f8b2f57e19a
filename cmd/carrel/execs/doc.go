// Package execs runs things in a daemon: it puts together a store, package execd with its backends, and the mounts that
// containers see.
//
//	control.sock ── execd/api ── execd.Registry ──┬── execd/container ── cells: private mounts, fusefs
//	                              │               ├── execd/shell
//	                           choose             └── execd/js
//
// The workspaces are those of a store, whose barriers are commits; or, for a join, the one of a mirror, whose barriers end at
// the authority: an exec that could not be told what others wrote is not started, and the end of one is not told before the
// authority has what it wrote, or has been waited for in vain. What changes in a workspace of a store is told to who follows it,
// from one revision to the next (watch.go).
//
// A spec that leaves the choice goes to the shell when the shell says that nothing is missing for it, and to a container
// else; the result tells which and why.
//
// Scripts in the shell reach git repositories outside of their workspace as far as the file git-allow in the daemon's directory goes:
// see package gitremote.
//
// In the directory of the store, or of the mirror, exec holds the logs and states of execs, images the root filesystems that
// were unpacked, and cells the mount points, which are empty unless a container uses them. Nobody else is to look there: the
// daemon that serves a mount must not.
//
// # What survives a crash
//
// What execd says of execs. Mounts of a daemon that died are taken away when the next one starts; its containers have
// ended with it.
//
// # Locks
//
// cells.mu is held while a workspace is opened and mounted, and while it is unmounted, so that one mount of a
// workspace is never made twice; nothing is called back under it.
package execs
