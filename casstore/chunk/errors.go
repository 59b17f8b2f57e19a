package chunk

import (
	"errors"
	"fmt"
)

// Errors of this package. They stand here and not in vfs because this package is below vfs; the store translates.
var (
	// ErrCorrupt is for bytes that are not what they should be: an encoding that no encoder makes, a chunk that does
	// not hash to its name.
	ErrCorrupt = errors.New("corrupt chunk data")

	// ErrTooBig is for a manifest that has more entries than may be encoded.
	ErrTooBig = errors.New("manifest too long")
)

// corrupt returns an error that wraps ErrCorrupt and says what is wrong.
func corrupt(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrCorrupt)...)
}
