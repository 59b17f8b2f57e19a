package chunk

// Sizes of chunks, in bytes. Changing one changes where files are cut: old chunks stay readable, but new versions of
// old files share nothing with them.
const (
	// MinSize is the least that a cut leaves behind it, except at the end of a file. Below it the cost of an index
	// entry and a frame shows against the bytes.
	MinSize = 64 << 10

	// AvgSize is where the splitter starts to look for easier cuts. Small enough that a changed byte costs little to
	// send, large enough that a terabyte has no more than some eight million chunks.
	AvgSize = 128 << 10

	// MaxSize is the largest chunk, and so the largest buffer that reading, hashing or sending one needs.
	MaxSize = 512 << 10
)

// Limits of manifests and their encodings.
const (
	// MaxFileSize is the most bytes that a manifest covers: the largest file that vfs allows.
	MaxFileSize = 16 << 40

	// MaxEntries is the most entries of an encoded manifest: a file of MaxFileSize cut into chunks of MinSize.
	MaxEntries = MaxFileSize / MinSize

	// MaxInline is the most entries that are encoded in line in a file's record, about 1.1 KB. A file of up to 4 MiB
	// of average chunks then needs no node.
	MaxInline = 32

	// MinNode is the fewest items of a node that ends by content. It bounds the height of a tree.
	MinNode = 32

	// MaxNode is the most items of a node, about 44 KB: where ids repeat or never match, nodes still end.
	MaxNode = 1024

	// MaxLevel is the highest level of a root: MaxEntries, gathered by no fewer than MinNode, are one node at level 5.
	MaxLevel = 5
)

// Of compression.
const (
	// minSaving is the part of the plain bytes, as a divisor, that compression must save to be kept. Less is not worth
	// the time of decoding at every read.
	minSaving = 16

	// probeSize is how much of a large chunk is looked at before all of it is compressed.
	probeSize = 8 << 10

	// probeAbove is the size from which probing costs little against compressing what turns out to be random.
	probeAbove = 4 * probeSize
)
