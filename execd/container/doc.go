// Package container runs Linux programs on workspaces, each workspace in a container of its own.
//
// A container has the host's programs, or those of a root directory or an image, read-only; the workspace at /workspace; memory for
// /tmp, /root and /run; a /dev and a /proc of its own; a network with nothing but loopback. Package launch is what runs
// inside. Nothing needs to be installed, and no privilege where the kernel lets ordinary users make namespaces.
//
//	Backend ── cell: one for each (workspace, limits, network, root) ── outer: its namespaces and cgroup
//	                    │                                            │
//	                    └── process: one for each exec ───────────── └── inner: pid namespace of the exec ── command
//
// The first exec of a workspace makes its cell; later ones join it, until it has been idle for a while. Execs of one cell
// see each other's files in /tmp and each other's loopback servers, and share its limits, but not each other's processes.
//
// What can be done before anybody asks is: in each cell waits a runner, the inner process of the next exec, and beside the
// cells one spare, a cell that lacks its workspace alone. So the first exec of a workspace waits for a mount, and later ones
// for nothing. The very first of a daemon, and the first of another kind (limits, network, root), make a cell while they
// wait; so does each first one for an ordinary user, whose kernel lets nobody mount into a container from outside.
//
// From start to exit of true(1) on a machine of two cores, medians of 200 turns beside each other (BenchmarkStart): 0.75 ms
// by fork and exec alone and 4.0 with bwrap(1); here 2.2 ms for the first exec of a workspace, 1.3 for later ones, and 15.5
// for the very first.
//
// # Runtimes
//
// A spec may name runc(8), crun(1) or runsc, when the machine has it: then that makes a container of the same settings, one
// for each exec, from a bundle (bundle.go). What is other than above: nothing is prepared, so each exec waits for all of it;
// the command is the first process of its container, so all ends with it, and a signal that it has no handler for does
// nothing to it, but for KILL; that its memory ran out is not told from a kill; system calls that this program does not know
// are allowed. The tests try crun and runc, not runsc, which Debian does not have. Where a unified hierarchy of cgroups is mounted
// beside others, in /sys/fs/cgroup/unified, crun and runc refuse to start anything.
//
// # When an exec ends
//
// When the command has ended and nobody has its output open any more. Whatever it has started that writes to its output
// keeps it running, as with ssh; what does not is killed then. A kill, or the end of the time, kills everything in the pid
// namespace at once, whatever it has done to get away.
//
// # What is a boundary, and what is not
//
// Files: only what Setup lists is there at all: of the host its programs, in /usr and /opt, and of /etc what programs need.
// The settings of its git, npm and pip are not: they may have passwords in them. A secret that somebody has put beside a
// program, or into /etc/profile, can be read. System calls: those of filter.go are refused. Capabilities: those that
// programs need for the workspace's files (kept in limits.go) and no others, for good; set-user-ID programs have no effect.
// Memory, processors, processes: by cgroup, for all execs of a cell together. Where cgroups cannot be written, memory is
// limited for each process by itself, processes for their user (setrlimit(2), which exempts root), processors not, and the
// log says so once. Not a boundary: the kernel itself. Whoever is root on a machine and runs as root what a stranger wrote
// should do so in a virtual machine. With the network of the host granted, whatever listens on the machine's loopback and
// its abstract unix sockets can be reached too.
//
// # Locks
//
// Backend.mu is not held while a process is started or waited for. cell.asking is held for one question to outer and its
// answer, and taken under no other.
//
// The process that serves the mount of a workspace never opens a path in it and never has a child whose working directory is
// in it at exec(2): outer starts in "/", and the mount is handed over as a detached tree, which asks it for nothing.
package container
