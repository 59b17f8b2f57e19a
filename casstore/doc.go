// Package casstore is the authoritative store: workspaces, their trees and their revisions, on Badger, with the bytes of
// files in packs. FORMAT.md says how it lies on disk.
//
// # Promises
//
//   - A revision is atomic, whatever its size. After a crash the store is at the last revision that was finished.
//   - What Fsync, Sync or Commit has returned for is durable. Everything else is within seconds (Options.CommitEvery).
//   - After a crash the names are exactly one past state of the tree. Every file has at least the bytes of its last
//     Fsync, and a file that was written and then renamed has all bytes that it had at the rename.
//   - A full disk is vfs.ErrNoSpace to who writes. Deleting always works, and frees space.
//   - Damage is an error that names what is damaged, never other bytes than were written.
//
// # From a write to the disk
//
//	WriteAt ──▶ live layer ──▶ frozen layers ──▶ base ─────────▶ record
//	            (memory)       (memory)          (packs; names   (Badger, durable)
//	                                              in memory)
//	               └── flush: split, hash, compress, append ──┘└─ commit ─┘
//
// Changes of names and attributes are made in memory and marked ([Workspace.touch]). A commit makes a cut: it begins a new
// generation and takes the list of what was marked before. Values are captured afterwards, by the commit or by whoever
// changes one first, so the cut itself takes no time. Then it waits for the bytes it needs, makes the packs durable, writes the
// records and, last, the head.
//
// Which bytes it needs: all of every file for Sync; those of the file for Fsync; those of a file that a rename has moved,
// always. The bytes of other files are waited for when they are few. A file in the middle of a bulk write is committed as
// it was when it was last flushed: an fsync of a small file does not wait for a large one beside it.
//
// # Locks
//
//	chunks.gate          read: a flush or a commit is under way; write: the collector begins to mark
//	  file.flushing      one flush of a file
//	    Store.mu           which workspaces are open
//	    file.mu            a file's layers and base
//	      Workspace.mu     the tree lock: inodes, names, attributes, what is marked
//	        committer.mu, flusher.mu, chunks.mu, watchers.mu, space.mu
//
// A lock is taken before those that are indented under it. Store.mu is taken before Workspace.mu and never with file.mu. No
// lock but the first two is held while waiting for a disk, but for file.mu while the manifest of a file is read that nobody
// can use before.
//
// # Goroutines
//
// A store has one committer, a flusher for each CPU, one watcher of memory pressure and one collector; a workspace has one
// more while somebody watches it. Store.Close ends them all and waits.
//
// # What an operation costs
//
// What is in memory costs some hundred nanoseconds. A name or an inode that is not costs two point reads of Badger, about
// ten microseconds. Memory is bounded: clean inodes and names by cacheCost, dirty bytes by Options.BufferBytes, decoded
// chunks by chunkCache, and Badger by its caches and tables.
package casstore
