// Package memtree holds a [vfs.Tree] in memory: all of the contract, nothing durable.
//
// It is what a script of the in-process shell finds under /tmp, it stands in for a store in tests of what mounts or
// serves a tree, and it is the model that vfstest compares other trees with. Clarity comes before speed.
//
// # Locks
//
// A Tree has one mutex. It is not held while a yield of ReadDir or a watcher runs. Each Watch has one goroutine, which
// its stop ends.
//
// # What survives a crash
//
// Nothing: Fsync, Sync and Commit keep only the promise about the order of revisions.
package memtree
