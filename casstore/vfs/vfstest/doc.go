// Package vfstest holds what tests of [vfs.Tree] need: a tree in memory, the conformance suite that every tree passes,
// random operations against a model, and an audit of a tree's invariants.
//
// # The tree in memory
//
// [Tree] is a small, real implementation: all of the contract, nothing durable. It stands in for a store in tests of
// what mounts or serves a tree, and it is the model that [Random] compares a tree with. Clarity comes before speed.
//
// # What a tree is held to
//
// [Run] is the contract of [vfs.Tree], one behaviour a subtest; [RunReadOnly] and [RunFull] are the parts of it that
// need a tree in that state. Where the contract leaves a choice, both are taken. [Random] finds what no table thought
// of, and [Audit] and [Snapshot] look at a whole tree.
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
