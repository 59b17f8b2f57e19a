package tools

import "errors"

// What tools find wrong beside the errors of vfs.
var (
	ErrBinary    = errors.New("not text")
	ErrNoMatch   = errors.New("the old text is not in the file")
	ErrAmbiguous = errors.New("the old text is in several places")
	ErrOverlap   = errors.New("edits overlap")
	ErrNoChange  = errors.New("nothing would change")
)
