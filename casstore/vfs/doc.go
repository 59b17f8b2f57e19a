// Package vfs is the leaf that every other package of Carrel meets at: the words, the contracts and the errors of a
// workspace tree, and the canonical encoding of its records.
//
// # Words
//
// A workspace is one directory tree. An inode ([Ino]) is a file, directory or other node by number, never by path; a
// dirent is a name in a directory that leads to an inode. A record is the canonical encoding of one inode, dirent or
// extended attribute; its bytes are the same on disk and on the wire. A revision ([Rev]) is one atomic commit.
//
// # The seam
//
// [Tree] is one live workspace. The store implements it, a mirror implements it, and the kernel driver, the exec
// backends and the command line use nothing else. Package memtree implements it in memory, and vfstest holds the
// conformance suite that every implementation passes.
//
// # The seam of replication
//
// [Authority] is one workspace at the place where its revisions are made: what changed since a cursor, a push of
// records that is applied whole or not at all, digests, leases of inode numbers, and chunks by id. The store implements
// it, syncwire carries it, a mirror uses it. [CheckPush] decides for every implementation what a push may do, and [Guard],
// [Head], [Query] and others do what is alike in all of them.
//
// # What a Tree does not do
//
// A Tree does not check access rights: the kernel does that for a mount (default_permissions), and whoever else serves
// a tree must do it before calling. It keeps what POSIX ties to the node itself: link counts, times, the group and the
// set-group-ID bit that a new node takes from its directory, and the set-ID bits that a write or a change of owner removes.
package vfs
