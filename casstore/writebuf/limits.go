package writebuf

const (
	// growSlab is the most that a slab is made larger than the write it is for, in bytes: the unused end of it is memory
	// that is charged for nothing, and 128 KiB is what the kernel sends in one write and the average chunk.
	growSlab = 128 << 10

	// maxSlab is the largest slab, in bytes; a longer write is cut. It is the largest write of the kernel. Cutting a
	// hole into an extent copies at most half a slab.
	maxSlab = 1 << 20

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
