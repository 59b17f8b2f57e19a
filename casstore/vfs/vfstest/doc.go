// Package vfstest holds what tests of [vfs.Tree] need: a tree in memory, the conformance suite that every tree passes,
// random operations against a model, and an audit of a tree's invariants.
//
// # The tree in memory
//
// [Tree] is that of memtree, the model that [Random] compares a tree with.
//
// # What a tree is held to
//
// [Run] is the contract of [vfs.Tree], one behaviour a subtest; [RunReadOnly] and [RunFull] are the parts of it that
// need a tree in that state. Where the contract leaves a choice, both are taken. [Random] finds what no table thought
// of, and [Audit] and [Snapshot] look at a whole tree.
package vfstest
