package pack

import "github.com/carrelfs/carrel/casstore/chunk"

// Limits of pack files, in bytes unless they say otherwise.
const (
	// DefaultPackSize is where a pack is full. Files this large make few of them even on a large disk, and are still
	// quick to copy when garbage collection empties one.
	DefaultPackSize = 256 << 20

	// MaxPackSize is the largest size that Options may ask for: offsets have 32 bits.
	MaxPackSize = 1 << 30

	// DefaultPrealloc is how much space is reserved ahead of the appends.
	DefaultPrealloc = 16 << 20

	// preallocPart is the part of the free space, as a divisor, that is reserved ahead at most, so that on a small disk
	// the reserve does not stand in the way of others.
	preallocPart = 64

	// writebackStep is after how much the kernel is told to start writing. What is left for Sync then takes a fraction
	// of a second on the slowest disk.
	writebackStep = 8 << 20

	// maxOpen is how many packs are kept open for reading, well below the usual limit of 1,024 files.
	maxOpen = 256

	// scanBuffer is how much Scan reads at a time.
	scanBuffer = 256 << 10

	// maxFrame is the longest frame: the largest chunk, raw. A nonce before it is not part of it.
	maxFrame = frameHeader + chunk.MaxSize
)
