package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ErrNoOwner says that no process serves the store's socket.
var ErrNoOwner = errors.New("no process has the store open")

// ErrVersion says that the owner of the store is of another version of this program.
var ErrVersion = errors.New("another version of carrel has the store open")

// code is an error on the wire. The numbers are part of the protocol.
type code uint8

const (
	codeNone  code = 0
	codeOther code = 255 // an error of no sentinel: only its text travels
)

// codes gives each sentinel its number. One that is missing would travel as text alone and be no sentinel any more at
// the other side, so a test holds the table against vfs.Errors.
var codes = map[error]code{
	vfs.ErrNotExist:      1,
	vfs.ErrExist:         2,
	vfs.ErrNotDir:        3,
	vfs.ErrIsDir:         4,
	vfs.ErrNotEmpty:      5,
	vfs.ErrNameTooLong:   6,
	vfs.ErrInvalid:       7,
	vfs.ErrTooBig:        8,
	vfs.ErrNoSpace:       9,
	vfs.ErrQuota:         10,
	vfs.ErrReadOnly:      11,
	vfs.ErrNoXattr:       12,
	vfs.ErrXattrTooBig:   13,
	vfs.ErrTooManyLinks:  14,
	vfs.ErrNotSupported:  15,
	vfs.ErrNotPermitted:  16,
	vfs.ErrStale:         17,
	vfs.ErrBusy:          18,
	vfs.ErrInterrupted:   19,
	vfs.ErrNoData:        20,
	vfs.ErrCorrupt:       21,
	vfs.ErrClosed:        22,
	vfs.ErrInUse:         23,
	vfs.ErrNewerFormat:   24,
	vfs.ErrNotStore:      25,
	vfs.ErrNoWorkspace:   26,
	vfs.ErrWorkspaceBusy: 27,
	vfs.ErrVoidCursor:    28,
	vfs.ErrPushReused:    29,
	vfs.ErrNoRevision:    30,
	vfs.ErrKey:           31,
}

var sentinels = func() map[code]error {
	m := make(map[code]error, len(codes))
	for err, c := range codes {
		m[c] = err
	}
	return m
}()

// encodeError splits err into what travels. Of an error that wraps several sentinels the first of vfs.Errors counts.
func encodeError(err error) (code, string) {
	if err == nil {
		return codeNone, ""
	}
	for _, s := range vfs.Errors() {
		if errors.Is(err, s) {
			return codes[s], err.Error()
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return codes[vfs.ErrInterrupted], err.Error()
	}
	return codeOther, err.Error()
}

// decodeError is the inverse: the error has the same text, and errors.Is finds the same sentinel.
func decodeError(c code, text string) error {
	if c == codeNone {
		return nil
	}
	return &ownerError{text: text, sentinel: sentinels[c]}
}

// ownerError is an error that the owner's side returned.
type ownerError struct {
	text     string
	sentinel error // nil when there is none
}

func (e *ownerError) Error() string { return e.text }
func (e *ownerError) Unwrap() error { return e.sentinel }

// interrupted is the error of a call whose context ended before it was sent.
func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", vfs.ErrInterrupted, context.Cause(ctx))
}
