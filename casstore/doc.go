// Package casstore is the authoritative store: workspaces, their trees and their revisions, on Badger, with the bytes of
// files in packs. FORMAT.md says how it lies on disk.
//
// # Promises
//
//   - A revision is atomic, whatever its size. After a crash the store is at the last revision that was finished.
//   - What Fsync, Sync or Commit has returned for is durable. Everything else is within seconds (Options.CommitEvery).
//   - After a crash the names are exactly one past state of the tree. Every file has at least the bytes of its last
//     Fsync, and a file that was written and then renamed has all bytes that it had at the rename.
//   - A full disk is vfs.ErrNoSpace to who writes, a quota vfs.ErrQuota. Deleting always works, and frees space.
//   - Damage is an error that names what is damaged, never other bytes than were written: every chunk's checksum is
//     verified when it is first read. FORMAT.md says what is hashed besides. A collection takes nothing that what is
//     damaged may need, should it come back (gc_spared.go).
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
// it was when it was last flushed: an fsync of a small file does not wait for a large one beside it. An fsync of little
// does not make chunks at all: the bytes go into the journal, beside the record, until the next flush (journal.go).
//
// # Locks
//
//	chunks.gate          read: a flush or a commit is under way; write: the collector begins to mark
//	  file.flushing      one flush of a file
//	    Store.mu           which workspaces are open
//	    file.mu            a file's layers and base
//	      Workspace.mu     the tree lock: inodes, names, attributes, what is marked
//	        committer.mu, flusher.mu, chunks.mu, watchers.mu, space.mu, reading.mu
//
// A lock is taken before those that are indented under it. Store.mu is taken before Workspace.mu and never with file.mu. No
// lock but the first two is held while waiting for a disk, but for file.mu while the manifest of a file is read that nobody
// can use before.
//
// A push replaces the bytes of many files under the tree lock. It takes the locks of those that are in use only as they are
// free; when one is not, it lets go of all, waits for that one, and begins again.
//
// # Replication
//
// [Workspace.Authority] gives a workspace as vfs.Authority. What has changed since a revision is what Badger has above it
// (SinceTs), so there is no log of changes; the price is that what was replaced or removed stays for a window of
// revisions. A commit of a workspace that is served reads each old value and hashes it with the new one, 2 microseconds a
// record, to keep the digest; other commits do nothing for it.
//
// A push is checked against the head by the committer's goroutine, which makes all revisions, so that the head stands
// still. What is dirty in memory does not matter as long as the check has not looked at it; otherwise it is committed, and
// the push is checked again. Then the records are put into the live tree under its lock, all at once, as if somebody had
// made these changes, but marked as of a cut of their own, and written: a push of one record takes 0.2 ms, of 1,000 5.6,
// of 60,000 half a second, for which other commits wait; the tree's lock is held for 0.1 ms of a thousand, 20 ms of 60,000.
// More than vfs.MaxPushRecords is refused, which bounds that. To let others commit between slices of a push would take a check
// of all of it again after each, and a way to take slices back that are on the disk: it is applied whole or not at all.
// File bytes that are dirty are not waited for unless the push is of that file.
//
// Chunks that peers have written are spared by the collector for a while, or until records refer to them.
//
// While somebody waits for a revision, the first change of a tree is committed after feedDelay and not after
// Options.CommitEvery; feeds take a share of the disk's time only.
//
// # Time
//
// A revision is a version of Badger's, so what was is read as what is, at a lower version: [View] is a workspace at a
// revision, as a vfs.Tree. Badger knows one revision below which it keeps only the newest versions. That is the lowest
// which anybody wants: the start of the history ([Store.KeepHistory]), the start of the window of replication, the
// snapshots, what forks began with, what was merged last, the views and readers that are open. So a snapshot costs nothing
// to make, and the records that are replaced as long as it is there, some hundred bytes each. Chunks are kept more exactly:
// the collector marks what the head, the history and each of those states show, and nothing between them.
//
// A fork has only the records in which it differs from its layers (lineage.go), so it is made by one small record,
// whatever the size. Reading costs a look-up more for each layer where the fork has nothing itself; a commit looks up
// whether what it removes is to be hidden. What a fork began with is pinned, and stays when its origin goes. Layers are merged in
// the background when there are more than a dozen (flatten.go), so a fork of a fork of a fork is as good as any.
//
// A merge ([Store.Merge]) holds three trees against each other by what has changed in them, and not by all that is there, lets
// package reconcile decide, and puts the outcome into the live tree as a push does, in one revision. That also says what was
// merged, which is pinned from then on: the next merge of the two begins there. A restore ([Store.Restore]) goes the same way.
//
// To fork a workspace of 100,000 files takes a millisecond and a hundred bytes, a thousand forks 1.7 seconds; to find what
// ten of them that differ in two forks are, 12 milliseconds ([Store.Diff]). A look-up that nothing in memory answers costs 17
// microseconds in a fork, and 7 elsewhere. The check looks at a fork that has changed as at any workspace, so a thousand take a
// while.
//
// A backup is written from revisions that are held, so nobody waits for it ([Store.Backup]). A load writes records under the
// numbers of workspaces that have no names yet, each state verified as it ends, and names them all in its last revision
// ([Store.Load]).
//
// A commit of an ordinary workspace does nothing for all that. What it costs is that Badger's tables are larger.
//
// # Goroutines
//
// A store has one committer, a flusher for each CPU, one watcher of memory pressure, one of Badger's tables, one collector and one
// that merges the layers of forks;
// a workspace has one more while somebody watches it. Store.Close ends them all and waits.
//
// # What an operation costs
//
// What is in memory costs some hundred nanoseconds. A name or an inode that is not costs two point reads of Badger, about
// ten microseconds. Memory is bounded, in MiB:
//
//	dirty bytes                                    128   Options.BufferBytes
//	clean inodes and names, with what they hold     49   cacheCost
//	decoded chunks                                  16   chunkCache
//	Badger's blocks and indexes                     48   blockCacheSize, indexCacheSize
//	its memtables, two of them, at most four     21-42   memtableSize
//	a table that is written from one                31   memtableSize
//	tables that are being merged                0-45-91  tableSize: none, one merge, two
//	what is mapped of its tables                    48   mappedMost
//
// They are not all there at once. When the heap is near to the limit that the daemon gives it, Go's collector runs again
// and again and finds little, which slows everything down: with memtables of 16 MiB and tables of one, 309 MiB were alive
// after a minute of the bench's suite work, 170 of them memory in which Badger built tables, and the collector ran three
// times a second (heap profile, 2026-12-01, carrel bench --suite work --rows 'untar|rm -rf|cp -').
//
// The first read of a part of a chunk costs a point read of Badger, one system call that puts the bytes where they are
// wanted and the rest of the frame beside them, and the checksum: 18 microseconds for 128 KiB. From then on a page of a
// raw chunk costs a system call, 1.3 microseconds; a compressed chunk is decoded into the cache. As long as the
// operating system has the bytes in its cache, no read waits or hands its request over.
//
// What flushing takes of processors, BenchmarkFlush says. For bytes that do not compress, most of it goes in about equal parts to their
// SHA-256, of two chunks side by side, to finding where they are cut, and to the system call that writes them to a pack; the
// checksum there and finding that a chunk is not stored yet are little beside that.
// Nothing is allocated for the bytes, and most are copied only by the system call that writes them: a chunk that lies in
// one slab is hashed and written from there.
//
// To collect 300 MB of dead bytes takes a second beside a writer of 240 MB/s, and one revision for each 128 MiB that is copied. When
// more dies meanwhile, so that the packs take more than twice what lives in them, each write waits, up to 30 milliseconds for
// a megabyte (gc_pace.go).
package casstore
