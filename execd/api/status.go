package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// errorHeader carries the name of a sentinel.
const errorHeader = "Carrel-Error"

// status is what an error is on the wire. The first that fits is taken.
type status struct {
	err  error
	name string
	code connect.Code
	http int
}

var statuses = []status{
	{ErrUnknown, "unknown", connect.CodeUnauthenticated, http.StatusUnauthorized},
	{ErrNoMachine, "no_machine", connect.CodeNotFound, http.StatusNotFound},
	{execd.ErrNoProgram, "no_program", connect.CodeNotFound, http.StatusNotFound},
	{execd.ErrNotRunnable, "not_runnable", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrNotExist, "not_exist", connect.CodeNotFound, http.StatusNotFound},
	{vfs.ErrNoWorkspace, "no_workspace", connect.CodeNotFound, http.StatusNotFound},
	{vfs.ErrNoRevision, "no_revision", connect.CodeNotFound, http.StatusNotFound},
	{vfs.ErrExist, "exist", connect.CodeAlreadyExists, http.StatusConflict},
	{vfs.ErrNotDir, "not_dir", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrIsDir, "is_dir", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrNotEmpty, "not_empty", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrNameTooLong, "name_too_long", connect.CodeInvalidArgument, http.StatusBadRequest},
	{vfs.ErrInvalid, "invalid", connect.CodeInvalidArgument, http.StatusBadRequest},
	{vfs.ErrTooBig, "too_big", connect.CodeInvalidArgument, http.StatusRequestEntityTooLarge},
	{vfs.ErrXattrTooBig, "xattr_too_big", connect.CodeInvalidArgument, http.StatusRequestEntityTooLarge},
	{vfs.ErrNoSpace, "no_space", connect.CodeResourceExhausted, http.StatusInsufficientStorage},
	{vfs.ErrQuota, "quota", connect.CodeResourceExhausted, http.StatusInsufficientStorage},
	{vfs.ErrTooManyLinks, "too_many_links", connect.CodeResourceExhausted, http.StatusConflict},
	{vfs.ErrReadOnly, "read_only", connect.CodePermissionDenied, http.StatusForbidden},
	{vfs.ErrNotPermitted, "not_permitted", connect.CodePermissionDenied, http.StatusForbidden},
	{vfs.ErrNoXattr, "no_xattr", connect.CodeNotFound, http.StatusNotFound},
	{vfs.ErrNoData, "no_data", connect.CodeOutOfRange, http.StatusRequestedRangeNotSatisfiable},
	{vfs.ErrNotSupported, "not_supported", connect.CodeUnimplemented, http.StatusNotImplemented},
	{vfs.ErrStale, "stale", connect.CodeAborted, http.StatusGone},
	{vfs.ErrBusy, "busy", connect.CodeResourceExhausted, http.StatusTooManyRequests},
	{vfs.ErrWorkspaceBusy, "workspace_busy", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrInterrupted, "interrupted", connect.CodeCanceled, 499}, // what servers give who went away
	{vfs.ErrClosed, "closed", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrCorrupt, "corrupt", connect.CodeDataLoss, http.StatusInternalServerError},
	{vfs.ErrInUse, "in_use", connect.CodeUnavailable, http.StatusServiceUnavailable},
	{vfs.ErrNewerFormat, "newer_format", connect.CodeUnimplemented, http.StatusNotImplemented},
	{vfs.ErrNotStore, "not_store", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrKey, "key", connect.CodeFailedPrecondition, http.StatusConflict},
	{vfs.ErrVoidCursor, "void_cursor", connect.CodeOutOfRange, http.StatusGone},
	{vfs.ErrPushReused, "push_reused", connect.CodeAlreadyExists, http.StatusConflict},
}

// statusOf returns what an error is on the wire: that of an internal error when it is none of the sentinels.
func statusOf(err error) status {
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s
		}
	}
	return status{err, "", connect.CodeInternal, http.StatusInternalServerError}
}

// wireError is err for Connect.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	s := statusOf(err)
	e := connect.NewError(s.code, err)
	if s.name != "" {
		e.Meta().Set(errorHeader, s.name)
	}
	return e
}

// ErrNoMachine is for a call that is to be passed on to a machine which is not there.
var ErrNoMachine = fmt.Errorf("no such machine: %w", vfs.ErrNotExist)

// WriteError answers a call of the ExecService, in the protocol in which it is made, with err.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	_ = connect.NewErrorWriter().Write(w, r, wireError(err)) // who has gone needs none
}

// HTTPError answers a plain request with err.
func HTTPError(w http.ResponseWriter, err error) {
	s := statusOf(err)
	if s.name != "" {
		w.Header().Set(errorHeader, s.name)
	}
	http.Error(w, err.Error(), s.http)
}

// PlainError is the error that HTTPError has answered with, from the headers and the text of the answer.
func PlainError(h http.Header, text string) error {
	e := &remoteError{strings.TrimSpace(text), nil}
	if name := h.Get(errorHeader); name != "" {
		for _, s := range statuses {
			if s.name == name {
				e.sentinel = s.err
				break
			}
		}
	}
	return e
}

// remoteError is an error that another process gave. Its sentinel is nil when it is none of ours.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

// ErrBroken is for a connection that broke: whether the call has reached anybody is not known. It is an ErrClosed of vfs.
var ErrBroken = fmt.Errorf("the connection broke: %w", vfs.ErrClosed)

// Error gives the sentinel of an error of a call back, or ErrBroken.
func Error(err error) error {
	var e *connect.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	name := e.Meta().Get(errorHeader)
	for _, s := range statuses {
		if s.name == name {
			return &remoteError{e.Message(), s.err}
		}
	}
	// Connect takes a connection that was reset for a call that was canceled.
	reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if (e.Code() == connect.CodeCanceled || e.Code() == connect.CodeDeadlineExceeded) && !reset {
		return &remoteError{e.Message(), vfs.ErrInterrupted}
	}
	if !connect.IsWireError(err) {
		return &remoteError{"connection to the daemon: " + e.Message(), ErrBroken}
	}
	return err
}
