package pack

import (
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Errors of this package. They stand here and not in vfs because this package is below vfs; the store translates.
var (
	// ErrClosed is for calls after Close.
	ErrClosed = errors.New("packs are closed")
	// ErrNoPack is for a pack that is not there, perhaps because it was removed.
	ErrNoPack = errors.New("no such pack")
	// ErrActive is for removing the pack that is being written.
	ErrActive = errors.New("pack is being written")
	// ErrVersion is for a file of a version that this program does not know.
	ErrVersion = errors.New("pack of an unknown version")
)

// CorruptError says where a pack is not as it should be. It wraps [chunk.ErrCorrupt].
type CorruptError struct {
	Pack uint32
	Off  uint32 // of the frame, or of the end that is missing
	What string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("pack %s at %d: %s: %v", name(e.Pack), e.Off, e.What, chunk.ErrCorrupt)
}

// Unwrap returns chunk.ErrCorrupt.
func (e *CorruptError) Unwrap() error { return chunk.ErrCorrupt }
