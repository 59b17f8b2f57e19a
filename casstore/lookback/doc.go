// Package lookback puts the directory .carrel into the root of a tree that is mounted, so that programs and people can look
// back without a second mount:
//
//	.carrel/
//	  rev               the workspace's revision as text, with a newline
//	  snapshots/NAME/   the tree as the snapshot NAME shows it
//
// The directory is found when it is looked up, and never listed: find, tar, cp -a, git status and rm -rf of a root do not
// meet it. Nothing in it can be changed: vfs.ErrReadOnly. What is in a snapshot has the owners and modes that it had then, so
// opening a file for writing may succeed, and writing does not.
//
// A workspace may have an entry .carrel of its own in its root, from an archive or from a store before this one. That is
// found then, and the directory is not there. Through a mount none can be made, as the name is taken.
//
// # The revision
//
// Looking rev up makes everything durable that was written before, so that WORKSPACE@REV, which it can be read for, has all
// of it. Each revision is a file with a number of its own, so a file that stays open goes on to say what it said.
//
// # Numbers and caches
//
// An inode's number has its upper bit set below .carrel, then which snapshot it is in, then the number that it has there
// (number.go). So no two inodes have the same, whatever trees they are of, and what a kernel has cached of a snapshot stays
// right. The names in .carrel and in snapshots come and go without a vfs.Change, and [Tree.Volatile] tells callers to ask for
// them each time.
//
// # Memory
//
// A snapshot is opened by the first call that needs it and closed when nobody holds any of its inodes, or when many others
// have been used since. One that is removed gives vfs.ErrNoRevision from then on, and keeps nothing in the store
// (casstore.Past.Open). What is remembered of a snapshot besides is some hundred bytes.
//
// # Locks
//
// shelf.mu is held for moments, and not while a snapshot is opened, used or closed.
package lookback
