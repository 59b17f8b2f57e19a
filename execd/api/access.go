package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// Right is what a call needs.
type Right int

// The rights.
const (
	Read Right = iota + 1
	Write
	Exec
	Admin // everything, on the machine's behalf
)

// mayStart asks for the rights that a spec needs.
func (a Access) mayStart(ctx context.Context, h http.Header, s execd.Spec) (context.Context, error) {
	ctx, err := a(ctx, h, s.Workspace, Exec)
	if err == nil && s.Privileged() {
		err = a.check(h, s.Workspace, Admin)
	}
	return ctx, err
}

// Access decides what a request may do on a workspace, by its headers and its connection. It returns ErrUnknown for who is
// not known, vfs.ErrNotPermitted, or the context of what is told from then on: it ends when ctx does, and when what let the
// request in is not accepted any more. Nothing is left of it once ctx has ended.
type Access func(ctx context.Context, h http.Header, workspace string, right Right) (context.Context, error)

// Anyone is for connections that only those can make who may do everything.
func Anyone(ctx context.Context, _ http.Header, _ string, _ Right) (context.Context, error) {
	return ctx, nil
}

// check is for what is answered at once.
func (a Access) check(h http.Header, workspace string, right Right) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := a(ctx, h, workspace, right)
	return err
}

// whileKnown returns err, or ErrUnknown when it came because the access of a request has ended before the request.
func whileKnown(request, access context.Context, err error) error {
	if err != nil && request.Err() == nil && access.Err() != nil {
		return ErrUnknown
	}
	return err
}

// ErrUnknown is for a request without a token, or with one that is not accepted.
var ErrUnknown = fmt.Errorf("no token that is accepted: %w", vfs.ErrNotPermitted)
