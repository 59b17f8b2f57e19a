package writebuf

import "time"

const (
	// growSlab is the most that a slab is made larger than the write it is for, in bytes: the unused end of it is memory
	// that is charged for nothing, and 128 KiB is the average chunk.
	growSlab = 128 << 10

	// longRun is how much a layer holds before a writer that appends gets slabs of maxSlab, in bytes: then no more than a
	// third is unused.
	longRun = 2 * maxSlab

	// maxSlab is the largest slab, in bytes; a longer write is cut. It is the largest write of the kernel. Cutting a
	// hole into an extent copies at most half a slab.
	maxSlab = 1 << 20

	// arenaSize is how many bytes the slabs of maxSlab may have together, beside the heap. It takes a burst of 64 MiB, which
	// is flushed while it is written, and what the next one brings; more comes from the heap.
	arenaSize = 96 << 20

	// arenaIdle is how long memory of theirs is kept that is not used: so long at least, and no more than twice.
	arenaIdle = 10 * time.Second

	// slabStep is the change of their memory that is worth telling, in bytes.
	slabStep = 8 << 20

	// hugePage is the size and the alignment of a huge page, in bytes.
	hugePage = 2 << 20

	// blockLen is how many extents are kept in one block of a list. An insertion moves half of a block on average
	// (1.5 KiB), and one insertion in 32 or more moves the list of blocks.
	blockLen = 64

	// minJoined is how many extents two neighbouring blocks hold at least; with fewer they are joined. It is less than
	// blockLen so that an insertion after a removal does not split again.
	minJoined = blockLen * 3 / 4

	// extentOverhead is what an extent is charged beside its slab, in bytes: it has 48, in blocks that are three eighths
	// full on average or more (minJoined), so 128 at most, and the lists and layers around them have a few more.
	extentOverhead = 136
)
