// Package fusefs puts a [vfs.Tree] into the kernel as a filesystem, by the low-level connection of bazil.org/fuse.
//
// It promises what POSIX does, as far as the tree keeps it; that a process which was told that its write succeeded
// finds it in the tree, whatever happens to the mount; that a change made by others is seen once [Server.Flush] has
// returned after it; that a process which waits for the tree can be killed; and that a mount can be ended while it is
// in use. It keeps nothing itself: after a crash the tree is what it was, and the dead mount is taken away by
// [CleanDead].
//
// # What the kernel does for us
//
// Node ids are inode numbers, and there are no handles. The kernel checks permissions (default_permissions), keeps
// locks, and keeps names, missing names, attributes, symlinks, listings and pages until it is told otherwise. ENOSYS on
// OPEN, OPENDIR, FLUSH and the like ends these for good. Of a directory that the tree calls volatile ([vfs.Volatile]) it
// keeps no names and no attributes, and a listing as long as the times are the same. What is left of
//
//	creating, writing and closing a small file   LOOKUP, GETATTR of the directory, CREATE, WRITE; a RELEASE, for which
//	                                             nobody waits, until the first file has been opened otherwise
//	appending to it                              GETXATTR (for its capabilities, once for each file), WRITE
//	reading it for the first time                READ
//	opening, reading and closing it again        nothing; fstat has a GETATTR once after a READ, for the atime
//	listing a directory                          READDIRPLUS until it is empty, then nothing
//	stat of its names                            nothing, or LOOKUP (see habits)
//	removing a file                              GETATTR of the directory, UNLINK, FORGET
//	writing or reading 1 MiB                     one WRITE, two READs (see handshake.go; else 128 KiB a request)
//	cp                                           COPY_FILE_RANGE, without the bytes; some LSEEKs
//
// A request costs two system calls of the daemon, in which it spends two thirds of its time when requests are small, and
// one or two allocations of the library; getattr, lookup, read and write add none here. A round trip takes 10 µs when no
// sleeping CPU has to be woken for it, else four times as long (awake.go). So creating, writing and closing a small file
// takes four of them, about 45 µs in all where tmpfs takes 12, and only a request that is not sent would save more than
// a few percent. A write of 1 MiB is copied once by the kernel and once by the tree. A read of cached bytes never comes
// here: a page of 4 KiB takes 1.1 µs, where tmpfs takes 0.9.
//
// A new file that is only written goes past the page cache. Through it, 64 MiB take 72 ms to write and 10 to read after
// that; past it 40 and 24. So who writes and reads once is served better, and who reads again has it in the cache then;
// but reading pages at random right after writing asks for each of them.
//
// So these are the requests for 10,000 files in 928 directories, counted where they are handled, in a tree that was just
// unpacked (2026-12-01, Linux 6.18, tar and the coreutils of Debian 12):
//
//	             each file                                              each directory
//	cp -r        LOOKUP, CREATE, GETXATTR, COPY_FILE_RANGE, GETATTR     LOOKUP, MKDIR, GETATTR, 2 READDIRPLUS
//	rm -rf       UNLINK, GETATTR of the directory; 0.8 FORGET and       RMDIR, the same; 3 READDIRPLUS of a copy, none of
//	             0.07 BATCH_FORGET, for which nobody waits              what was listed before
//	tar -x       LOOKUP, CREATE, 1.6 WRITE, 3 SETATTR, GETXATTR,        4.5 LOOKUP, MKDIR
//	             GETATTR; a RELEASE
//
// Beside other work that took the daemon 320 ms of CPU time for rm -rf, 940 for cp -r and 1,420 for tar, with 2.7, 6 and 10
// switches of its threads for a file.
//
// What would spare requests, and is not done:
//
//   - FUSE_NOTIFY_STORE of what was just written, so that reading it asks for nothing: it halves the time of the first
//     cat. But it overwrites what a process has meanwhile changed through a shared mapping, of which we hear nothing:
//     the change is lost.
//   - FUSE_WRITEBACK_CACHE: the kernel no longer believes our sizes and times, so a file that somebody else extends
//     stays short.
//   - doing without default_permissions, which costs a GETATTR of a directory after each change in it: paths in the cache
//     would be open to everybody, and access(2) and chdir(2) would need requests.
//
// # The loop
//
// A no-op takes 9 µs when the goroutine that reads a request answers it, and 50 when it hands it to another one. So
// there is one token. The worker that has it reads a request, asks the tree, answers, and reads again:
//
//	        ┌────────────── answered ──────────────┐
//	        ▼                                      │
//	read a request ──► handle ──► tree answers from memory
//	        ▲             │
//	token   │             └─────► tree is about to wait: WillBlock
//	        │                          │ token to an idle worker, or a new one
//	        │                          ▼
//	     idle ◄──── answered ◄──── waits, and is registered for INTERRUPT
//
// The tree says that it is about to wait through the context of the request ([vfs.BlockHook]); fsync and the like do it
// without being asked. There are at most maxWorkers. The last one keeps the token while it waits, and whoever is done
// first takes it, so nothing is read until then. A few idle workers are kept, the others end.
//
// # Locks
//
// Each is held for a few instructions, and none while another is, nor during a call of the tree, a read, a reply or a
// notification:
//
//	loop.mu      who has the token, which requests wait
//	holds.mu     what the kernel was given
//	notifier.mu  the queue of notifications
//	habits.mu    who uses listings how
//	mountMu      the environment of the process, while it is changed for the library's mount helper
//
// WillBlock takes loop.mu and may be called with locks of the tree held; so it calls nothing. mountMu alone is held for
// long, by a mount; nothing that a mount waits for takes it.
//
// # Hazards
//
// Each of these has ended in processes that cannot be killed, until the connection was aborted:
//
//   - a notification of a name or of bytes sent by who answers requests: the kernel waits for a directory or page whose
//     holder waits for us;
//   - a notification sent with a lock that a request needs;
//   - this process using its own mount other than by a raw system call in a goroutine of its own: os.Open goes through
//     epoll, which asks the mount; a child that is started with a working directory in it stops the whole runtime.
package fusefs
