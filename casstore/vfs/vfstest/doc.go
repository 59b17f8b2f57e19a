// Package vfstest holds what tests of [vfs.Tree] need: a tree in memory, the conformance suite that every tree passes,
// random operations against a model, and an audit of a tree's invariants.
//
// # The tree in memory
//
// [Tree] is a small, real implementation: all of the contract, nothing durable. It stands in for a store in tests of
// what mounts or serves a tree, and it is the model that [Random] compares a tree with. Clarity comes before speed.
//
// # Locks
//
// A Tree has one mutex. It is not held while a yield of ReadDir or a watcher runs. Each Watch has one goroutine, which
// its stop ends.
//
// # What survives a crash
//
// Nothing: Fsync, Sync and Commit keep only the promise about the order of revisions.
package vfstest
