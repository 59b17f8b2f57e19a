// Package command holds the commands of the in-process shell: what ls, grep or sed are to a script that runs in the
// daemon, as Go functions over a workspace's tree.
//
// # What a command is
//
// A [Func] gets a virtual [Process]: arguments, streams, files and environment are all that it sees. It asks nothing of
// the host: no files, processes, network or environment of the daemon's, which a test of imports holds it to. It keeps
// no state between calls and shares none with other calls, so any number may run at once.
//
// # What it promises
//
// It returns soon (50 ms) after its context ends, from wherever it is: loops that can be long call [Process.Step], which
// also counts the work against the script's bound. It returns when a write fails: [Process.Fail] says what the status
// is then. It owns the goroutines it starts and waits for them. It may panic on its own mistake: the shell recovers and
// ends that script only.
//
// # What survives a crash
//
// What the tree promises for its own calls.
package command
