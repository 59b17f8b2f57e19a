// Package writebuf holds the bytes of files that have been written and not yet stored, under one budget of memory.
//
// # Layers
//
// A [Buffer] belongs to one file. It is a stack of layers over the base, which is the file as it is stored (the owner
// keeps it, as a manifest; this package never sees it):
//
//	offset    0------------------------------>
//	live            DDDDDD                      changed in place by Write, Zero and Truncate
//	frozen 1    DDDD     zzzzzz   ^ floor       immutable
//	frozen 0  DDDDDD                      DDDD  immutable, the next to be stored
//	base      bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
//	view      DDDDDDDDDDDDzzzzzbbb000000000000
//
// A layer has extents, which are data (D) or zeros (z). Where it has none, what is below shows through, but only below
// the layer's floor: the lowest size that the file was truncated to while the layer was live. At and above the floor
// there are only the layer's own extents, and zeros between them, however far the file is extended later.
//
// The owner stores a file by [Buffer.Freeze], which costs nothing and lets writers go on, then writes the frozen layer
// into the base without a lock, then swaps the base and calls [Buffer.Drop] under its lock. A buffer does not know the
// size of its file: the owner does, and does not ask for what lies beyond it. The base reads as zeros past its end.
//
// # Memory
//
// Written bytes are copied once and never moved because a file grows: each extent has an allocation (a slab) of its
// own, and a writer that appends gets slabs that double in size up to 128 KiB, and in a long run slabs of 1 MiB. These
// are not in Go's heap (see arena). Writing over data that is in the live layer happens in place. Every byte held, unused ends of slabs and the extents' own memory included, is charged to
// the [Pool] that all buffers of a store share, and exactly that is given back.
//
// # Locks
//
// A Buffer has none: the owner's lock of the file guards it. Methods that change a buffer exclude all others; methods
// that only look may run beside each other. A frozen [Layer] never changes and needs no lock. A Pool has one lock, and
// so has the arena; both are the last in any order: nothing is called with them held. Admit waits, so it is called before the file's
// lock is taken.
//
// # A crash
//
// Nothing here survives one.
package writebuf
