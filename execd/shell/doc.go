// Package shell runs bash scripts inside the daemon, on a workspace's tree.
//
// # What it is for
//
// Most of what an agent types lists, searches, filters and edits. Here that costs microseconds: no process, no
// container, and no way to the host. It follows bash 5.2 in what a script can see, error messages included.
//
// # How it is made
//
// The syntax tree is mvdan.cc/sh's, whose parser is the only part of that module in use. Everything a script sees is
// virtual: files are those of a vfs.Tree, with a /dev and a /tmp of the script's own in its root (view.go), processes are
// goroutines with a number, pipes are memory, users and environment are given. Commands are Go functions (package command);
// none of this imports os, net or syscall, which a test holds it to, and another runs scripts where a system call that opens,
// names or starts something ends the process.
//
//	Run ── session: limits, processes, caches
//	         └─ shell: variables, functions, descriptors, directory, options   (one goroutine)
//	              ├─ subshell, substitution, pipeline, job: a fork, which is a copy
//	              └─ command: a command.Process over the shell's descriptors
//
// A fork shares variables, arrays and functions with its parent until either changes them, so it costs about as much as
// one command.
//
// # What it promises
//
// A script ends within its Limits, each of which has a message and an exit status. It ends within 50 ms of its context.
// A panic ends that script only. Run returns when every goroutine of the script has ended.
//
// # Locks
//
// A shell belongs to one goroutine and has no lock. session.mu guards the table of processes; pipe.mu one pipe. Neither
// is held while the other is taken, nor across a call of a tree.
//
// # What survives a crash
//
// What the tree promises for its own calls.
package shell
