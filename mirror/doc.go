// Package mirror is a writable replica of a workspace on another machine than its authority.
//
// A [Mirror] keeps a local store (package casstore) and gives a vfs.Tree. It is written at the speed of memory; what is
// written is pushed to the authority as it is committed, and what others write there arrives through the feed. It works on
// when the authority cannot be reached, and pushes later.
//
//	   reads, writes                      fusefs, exec backends
//	        │                                     ▲
//	        ▼                                     │ Watch
//	Tree ── live tree of the local store ─────────┘
//	            │ commits            ▲ apply: one revision, all names, sizes and bytes at once
//	            ▼                    │
//	  records + bases of edits    casstore/reconcile (pure)
//	            │                    ▲
//	 push ──────┴──▶  authority  ────┴── feed; lookups and chunks on demand
//
// # What the local store knows
//
// The records that the tree has, and, of each record that the authority does not have yet, what the authority had instead:
// its basis (casstore.Replica). They are written in one revision with the edit. Together they are the authority's tree as
// the mirror knows it, whose digest must be the one that the authority says; and an edit with its basis is all that a push
// needs, and, with what the authority has meanwhile, all that a reconciliation needs.
//
// # States
//
//	metadata   loading ──▶ whole           once; loading is resumed where it was cut off
//	an edit    dirty ──▶ committed ──▶ in a push ──▶ settled
//	a push     noted ──▶ sent ──▶ applied: its records are what the authority has
//	                          ──▶ stale:   the feed brings why; reconcile; another push
//	                          ──▶ in doubt, when the session ends: it is made again, and a feed that may hold what it has
//	                              done waits for the answer
//
// While metadata is loading, whatever is looked up and has not arrived is asked for by itself, and waited for (loader). The
// cursor then stands at the revision before the snapshot began, so that the feed brings every change after that once more;
// what is known to be newer is left out. Until then the local tree is of several revisions at once: a file may have come
// without the directory entry that leads to it, or with two. So what makes it one of a single revision is not held to the
// counts of what was there (taking.mending), and neither is what a comparison or a repair finds.
//
// A mirror that was stopped while metadata is loading goes on where it was cut off, if what has changed since can be told. Else
// what it has is a part of a tree that is no more: the next snapshot is compared with it, and nothing of it but what was made or
// changed here is brought back to an authority that does not have it (taking.partial).
//
// When the cursor is void, or another life of the store answers, the authority's snapshot is compared with what the mirror
// knows, and the difference is taken as the change. Of a store that was put back to an older state nothing can be told of
// what was removed and what was never there: then nothing is removed. A store that was copied back has the epoch of before,
// and perhaps other revisions of the same numbers: what a feed brings first is held against the digest that it comes
// with before it is taken over (sameLife).
//
// # Bytes that are nowhere
//
// Of a file that is edited here other chunks may be at the authority alone, and be gone with its store. What is left of the file is a
// conflicting copy then, with holes for them (reconcile.ConflictLost), and the authority's file stands: else no push would be taken
// any more. A file that was not edited here is let go of.
//
// # Local paths
//
// Paths that match Config.Local are kept in a store of their own, which no push, digest or barrier knows of; package localpath
// presents both as one.
//
// # Memory
//
// What the feed brings in one update is in memory until it is applied, some hundred bytes a record, and so are all edits that
// are not pushed while a push or a reconciliation is made of them. Snapshots stream.
//
// # What survives a crash
//
// Of the mirror: everything that was committed locally (at the latest after a second), with the bases, the cursor, the push
// that was under way with its id, and conflicts. What Fsync or Sync has returned for is at the authority, unless they were
// relaxed by Config.LocalFsync. A mirror without its disk loses what it has not pushed, which nobody was told is durable.
//
// Of the authority: the mirror works on and pushes again. A push that was answered is durable there; one that was not is
// made again under its id, and has its effect once.
//
// # Locks and goroutines
//
//	Mirror.turn     whoever changes what the authority is known to have: the feed, the end of a push, a repair
//	  loader.turn   whoever writes records that are loaded
//	    Mirror.mu, loader.mu, and those of casstore
//
// The turns are held while the local store writes, and never while the network is waited for, but for a repair. A mirror has
// one goroutine that follows the feed, one that pushes and one that leases numbers; Close waits for all, and for prefetches.
package mirror
