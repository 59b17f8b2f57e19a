package transfer

const (
	// pieceSize is how many bytes move at a time: what one frame of the control socket carries.
	pieceSize = 1 << 20

	// zeroBlock is the smallest run of zeros that becomes a hole where the source cannot tell its holes: a page, as
	// in every Linux filesystem.
	zeroBlock = 4 << 10

	// maxRuns bounds the list of a sparse file's runs, 16 MiB of memory. The holes of a file with more are written out
	// as zeros after the last one.
	maxRuns = 1 << 20

	// maxLinked bounds the memory for the files with more than one name that a source remembers, some 100 bytes each.
	// A source with more fails: to give up hard links silently would be a wrong copy.
	maxLinked = 8 << 20
)
