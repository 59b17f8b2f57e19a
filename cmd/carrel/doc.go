// Carrel mounts and works on workspaces: directory trees with names, in a store on the local disk.
//
// # Shape
//
// There is one file per command, named like it, but for small ones that belong together (execlist.go has ps, attach, logs and
// kill). A command works on a [control.Store], which is the store itself when no other process has it open, and else the
// owner's, over its socket: open.go decides. One that talks to a server gets there by remote.go, which knows its key or does
// not go on. What moves trees is in transfer, what walks paths in treepath, what serves mounts in daemon, what runs things on
// workspaces in execs, what serves other machines in serving and token, and what mounts a workspace of another machine in join.
//
// # Promises to scripts
//
// Data goes to stdout, everything else to stderr. The exit status is 0 when the work is done, 1 when it is not, 2 when
// the command line is wrong; join and mount of a URL have two more (joinExits); exec and attach pass on that of what they ran. --json prints one object per line; a name or path
// that is not UTF-8 is there as bytes in base64 beside its readable form.
//
// # What survives a crash
//
// A command that has changed a workspace makes that durable before it exits with 0.
package main
