package syncwire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Errors of the connection. Those of an authority are package vfs's, and pass from one side to the other.
var (
	// ErrProtocol is for what breaks PROTOCOL.md. The stream on which it happened is closed, and nothing else.
	ErrProtocol = errors.New("protocol error")
	// ErrVersion is for peers that have no version of the protocol in common.
	ErrVersion = errors.New("no common version of the protocol")
	// ErrToken is for a token that is not known, expired, revoked, or not for this workspace. Which, only the server's
	// log says.
	ErrToken = errors.New("token not accepted")
	// ErrRights is for what the token does not allow.
	ErrRights = errors.New("token does not allow this")
	// ErrOverloaded is for a server at one of its limits. Trying again later helps.
	ErrOverloaded = errors.New("server is at its limit")
	// ErrDraining is for a server that is about to stop. Trying again later helps.
	ErrDraining = errors.New("server is stopping")
	// ErrNoService is for a service that the server does not have.
	ErrNoService = errors.New("no such service")
	// ErrFingerprint is for a server whose key is not the pinned one.
	ErrFingerprint = errors.New("server has another key than the pinned one")
	// ErrClientKey is for a server that lets in only clients whose keys it knows.
	ErrClientKey = errors.New("server does not know the client's key")
)

// Errors returns every sentinel of this package.
func Errors() []error {
	return []error{
		ErrProtocol, ErrVersion, ErrToken, ErrRights, ErrOverloaded, ErrDraining, ErrNoService, ErrFingerprint,
		ErrClientKey,
	}
}

// code is an error on the wire. The numbers are part of the protocol.
type code uint16

// codeOther is an error of no sentinel: only its text travels.
const codeOther code = 255

// codes gives each sentinel its number; a test holds them against both packages.
var codes = map[error]code{
	vfs.ErrNotExist: 1, vfs.ErrExist: 2, vfs.ErrNotDir: 3, vfs.ErrIsDir: 4, vfs.ErrNotEmpty: 5, vfs.ErrNameTooLong: 6,
	vfs.ErrInvalid: 7, vfs.ErrTooBig: 8, vfs.ErrNoSpace: 9, vfs.ErrQuota: 10, vfs.ErrReadOnly: 11, vfs.ErrNoXattr: 12,
	vfs.ErrXattrTooBig: 13, vfs.ErrTooManyLinks: 14, vfs.ErrNotSupported: 15, vfs.ErrNotPermitted: 16, vfs.ErrStale: 17,
	vfs.ErrBusy: 18, vfs.ErrInterrupted: 19, vfs.ErrNoData: 20, vfs.ErrCorrupt: 21, vfs.ErrClosed: 22, vfs.ErrInUse: 23,
	vfs.ErrNewerFormat: 24, vfs.ErrNotStore: 25, vfs.ErrNoWorkspace: 26, vfs.ErrWorkspaceBusy: 27, vfs.ErrVoidCursor: 28,
	vfs.ErrPushReused: 29, vfs.ErrNoRevision: 30, vfs.ErrKey: 31,

	ErrProtocol: 128, ErrVersion: 129, ErrToken: 130, ErrRights: 131, ErrOverloaded: 132, ErrDraining: 133,
	ErrNoService: 134, ErrFingerprint: 135, ErrClientKey: 136,
}

var sentinels = func() map[code]error {
	m := make(map[code]error, len(codes))
	for err, c := range codes {
		m[c] = err
	}
	return m
}()

// codeOf returns the number of err. Of an error that wraps several sentinels, the connection's counts first, then the
// first of vfs.Errors.
func codeOf(err error) code {
	for _, s := range Errors() {
		if errors.Is(err, s) {
			return codes[s]
		}
	}
	for _, s := range vfs.Errors() {
		if errors.Is(err, s) {
			return codes[s]
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return codes[vfs.ErrInterrupted]
	}
	return codeOther
}

// Error is an error that the other side has sent. errors.Is finds the sentinel that it wrapped there.
type Error struct {
	Code uint16 // as PROTOCOL.md lists them
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("peer: %s", e.Text) }

// Unwrap returns the sentinel, nil when the code is none that this version knows.
func (e *Error) Unwrap() error { return sentinels[code(e.Code)] }

// errorFrame is what travels of err.
func errorFrame(req uint64, err error) *failure {
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText-utf8.UTFMax], "") + "…"
	}
	return &failure{numbered: numbered{req}, Code: codeOf(err), Text: text}
}
