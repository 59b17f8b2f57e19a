// Package js runs JavaScript modules on workspaces, without a machine of their own: [Backend] is a backend of package
// execd, and package worker the process in which a module runs.
//
// # What a module is
//
// An ES module: the source of a spec, or the file that its first argument names. It may import others by path, statically
// or not, JSON, and of node fs, fs/promises, path, process, buffer, timers, timers/promises, url and util, as far as they
// need no machine; there is console, timers, URL, TextEncoder and TextDecoder, structuredClone, atob and btoa. Its input is
// the global input, and what its default export is called with; what that gives, or is, becomes the result value, as JSON.
//
// URL and URLSearchParams are those of the WHATWG's standard. What is there does what it does in node, with its error codes, its order of timers, ticks and promises, and its ends: what
// a module throws, and a promise that is rejected and that nobody has taken by the end of the turn, goes to standard error
// with its stack, and the exit code is 1 then, unless process has a listener for it.
//
// # What is promised
//
//   - Every run has an isolate and a process of its own, which ends with it: none is used twice. Two that are ready are kept
//     (pool.go), so that a run begins within milliseconds; they are replaced when the run is over or takes long, end when
//     nobody has run anything for ten minutes, and are not relied on: a run that finds none, or a dead one, starts its own.
//   - A module reaches nothing but its workspace: paths are resolved in the tree, where neither "..", an absolute path nor a
//     symlink leads out. The process can open no file, make no socket and start no program: it is nobody, in namespaces of
//     its own where the daemon is root, and seccomp allows it to compute, to read and to write what it has open.
//   - It is bounded: memory by the spec (a run that needs more ends as out of memory), time by the exec, the stack by the
//     engine, and by limits.go of package worker what is read or written at once, the value, timers and modules; a directory
//     of more than maxEntries cannot be listed. Output waits for the daemon. hostile_test.go is a table of what was tried.
//   - Whatever becomes of the process, the daemon goes on.
//
// # What is not there
//
// Packages by bare names, CommonJS (a .cjs file is refused), networks, child processes, workers, streams of files, watches,
// Intl. What fs does asynchronously in node happens
// before the call returns: only when its promise or callback is told is as there.
//
// # Locks
//
// Backend.mu and pool.mu are held for moments only.
package js
