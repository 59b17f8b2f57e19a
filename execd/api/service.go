package api

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
	"github.com/carrelfs/carrel/execd/api/carrel/v1/carrelv1connect"
)

// service is the ExecService.
type service struct {
	execs  *execd.Registry
	access Access
}

var _ carrelv1connect.ExecServiceHandler = (*service)(nil)

// get returns an exec that the caller may see.
func (s *service) get(h http.Header, id string) (*execd.Exec, error) {
	e, err := s.execs.Get(id)
	if err != nil {
		return nil, err
	}
	return e, s.access.check(h, e.Info().Spec.Workspace, Exec)
}

// Start implements carrelv1connect.ExecServiceHandler.
func (s *service) Start(
	ctx context.Context, r *connect.Request[carrelv1.StartRequest], to *connect.ServerStream[carrelv1.Event],
) error {
	spec, err := specOf(r.Msg.GetSpec())
	if err != nil {
		return wireError(err)
	}
	access, err := s.access.mayStart(ctx, r.Header(), spec)
	if err != nil {
		return wireError(err)
	}
	e, err := s.execs.Start(ctx, spec)
	if err != nil {
		return wireError(err)
	}
	started := &carrelv1.Event{Event: &carrelv1.Event_Started{Started: e.ID()}}
	if err := to.Send(started); err != nil {
		return err
	}
	return wireError(whileKnown(ctx, access, send(access, e.Attach(0, r.Msg.GetHold()), to)))
}

// Attach implements carrelv1connect.ExecServiceHandler.
func (s *service) Attach(
	ctx context.Context, r *connect.Request[carrelv1.AttachRequest], to *connect.ServerStream[carrelv1.Event],
) error {
	e, err := s.execs.Get(r.Msg.GetId())
	if err != nil {
		return wireError(err)
	}
	access, err := s.access(ctx, r.Header(), e.Info().Spec.Workspace, Exec)
	if err != nil {
		return wireError(err)
	}
	// A client waits for the head of the answer, and there may be no event for a long time.
	if err := to.Send(nil); err != nil {
		return err
	}
	return wireError(whileKnown(ctx, access, send(access, e.Attach(r.Msg.GetAfterSeq(), r.Msg.GetHold()), to)))
}

// send sends what a reader gives, to the end.
func send(ctx context.Context, from *execd.Reader, to *connect.ServerStream[carrelv1.Event]) error {
	defer from.Close()
	for {
		e, err := from.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var m *carrelv1.Event
		if err == nil {
			m, err = eventMessage(e)
		}
		if err != nil {
			return err
		}
		if err := to.Send(m); err != nil {
			return err
		}
	}
}

// Input implements carrelv1connect.ExecServiceHandler.
func (s *service) Input(
	ctx context.Context, r *connect.Request[carrelv1.InputRequest],
) (*connect.Response[carrelv1.InputResponse], error) {
	e, err := s.get(r.Header(), r.Msg.GetId())
	answer := &carrelv1.InputResponse{}
	switch {
	case err != nil:
	case r.Msg.GetFeed() != "":
		answer.Taken, err = e.Feed(ctx, r.Msg.GetFeed(), r.Msg.GetOffset(), r.Msg.GetData())
	case len(r.Msg.GetData()) > 0:
		err = e.Input(ctx, r.Msg.GetData())
	}
	if err == nil && r.Msg.GetClose() {
		err = e.CloseInput()
	}
	return connect.NewResponse(answer), wireError(err)
}

// Signal implements carrelv1connect.ExecServiceHandler.
func (s *service) Signal(
	_ context.Context, r *connect.Request[carrelv1.SignalRequest],
) (*connect.Response[carrelv1.SignalResponse], error) {
	e, err := s.get(r.Header(), r.Msg.GetId())
	if err != nil {
		return nil, wireError(err)
	}
	number := int(unix.SIGTERM)
	if r.Msg.GetSignal() != "" {
		number, err = execd.ParseSignal(r.Msg.GetSignal())
	}
	if err == nil {
		err = e.Signal(number)
	}
	return connect.NewResponse(&carrelv1.SignalResponse{}), wireError(err)
}

// Resize implements carrelv1connect.ExecServiceHandler.
func (s *service) Resize(
	_ context.Context, r *connect.Request[carrelv1.ResizeRequest],
) (*connect.Response[carrelv1.ResizeResponse], error) {
	e, err := s.get(r.Header(), r.Msg.GetId())
	if err != nil {
		return nil, wireError(err)
	}
	size, err := sizeOf(r.Msg.GetSize())
	if err == nil {
		err = e.Resize(size)
	}
	return connect.NewResponse(&carrelv1.ResizeResponse{}), wireError(err)
}

// List implements carrelv1connect.ExecServiceHandler. It leaves out what the caller may not see.
func (s *service) List(
	_ context.Context, r *connect.Request[carrelv1.ListRequest],
) (*connect.Response[carrelv1.ListResponse], error) {
	list := &carrelv1.ListResponse{}
	seen := false
	for _, e := range s.execs.List() {
		in := e.Info()
		if want := r.Msg.GetWorkspace(); want != "" && want != in.Spec.Workspace {
			continue
		}
		if s.access.check(r.Header(), in.Spec.Workspace, Exec) == nil {
			list.Execs = append(list.Execs, execMessage(in))
			seen = true
		}
	}
	if err := s.access.check(r.Header(), r.Msg.GetWorkspace(), Exec); !seen && err != nil {
		return nil, wireError(err)
	}
	return connect.NewResponse(list), nil
}

// Get implements carrelv1connect.ExecServiceHandler.
func (s *service) Get(_ context.Context, r *connect.Request[carrelv1.GetRequest]) (*connect.Response[carrelv1.Exec], error) {
	e, err := s.get(r.Header(), r.Msg.GetId())
	if err != nil {
		return nil, wireError(err)
	}
	return connect.NewResponse(execMessage(e.Info())), nil
}

// Dispose implements carrelv1connect.ExecServiceHandler.
func (s *service) Dispose(
	ctx context.Context, r *connect.Request[carrelv1.DisposeRequest],
) (*connect.Response[carrelv1.DisposeResponse], error) {
	_, err := s.get(r.Header(), r.Msg.GetId())
	if err == nil {
		err = s.execs.Dispose(ctx, r.Msg.GetId())
	}
	return connect.NewResponse(&carrelv1.DisposeResponse{}), wireError(err)
}
