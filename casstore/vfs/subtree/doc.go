// Package subtree presents a directory of a tree as a tree by itself, whose root it is. Nothing that is above it or beside it can be
// reached.
//
// The directory stays the root wherever it is moved to. When it is removed, the tree has a root that is gone (vfs.ErrStale).
package subtree
