package api

import (
	"context"
	"io"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
	"github.com/carrelfs/carrel/execd/api/carrel/v1/carrelv1connect"
)

// Client runs things on the workspaces of a daemon, and works on their files. Its errors wrap the sentinels of vfs;
// ErrBroken says that the connection broke, and what became of the call is not known.
type Client struct {
	calls     carrelv1connect.ExecServiceClient
	files     carrelv1connect.FilesServiceClient
	transport *http.Transport
}

// NewClient returns a client over connections that dial makes.
func NewClient(dial func(ctx context.Context) (net.Conn, error)) *Client {
	return NewClientAt(dial, "")
}

// NewClientAt is NewClient for an API that begins at a path.
func NewClientAt(dial func(ctx context.Context) (net.Conn, error), path string) *Client {
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression: true,
	}
	anywhere := "http://carrel" + path
	to := &http.Client{Transport: t}
	return &Client{
		carrelv1connect.NewExecServiceClient(to, anywhere), carrelv1connect.NewFilesServiceClient(to, anywhere), t,
	}
}

// Files is the service of files as it is. [Error] gives the sentinels of its errors.
func (c *Client) Files() carrelv1connect.FilesServiceClient { return c.files }

// Close lets go of connections that are not in use.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Stream is an answer in pieces. It must be closed.
type Stream[M any] struct {
	in *connect.ServerStreamForClient[M]
}

// Next returns the next piece: io.EOF after the last.
func (s *Stream[M]) Next() (*M, error) {
	if s.in.Receive() {
		return s.in.Msg(), nil
	}
	if err := s.in.Err(); err != nil {
		return nil, Error(err)
	}
	return nil, io.EOF
}

// Close ends the stream. What it tells of goes on.
func (s *Stream[M]) Close() { _ = s.in.Close() } // nothing is lost by it

func streamOf[M any](in *connect.ServerStreamForClient[M], err error) (*Stream[M], error) {
	if err != nil {
		return nil, Error(err)
	}
	return &Stream[M]{in}, nil
}

// Events is a stream of the events of an exec, which ends with the exit.
type Events = Stream[carrelv1.Event]

// News is a stream of what changes in a workspace. It has no end but an error.
type News = Stream[carrelv1.WatchResponse]

// Watch tells what changes at a path of a workspace and below it, from a revision on; zero is now.
func (c *Client) Watch(ctx context.Context, workspace, path string, after vfs.Rev) (*News, error) {
	q := &carrelv1.WatchRequest{Workspace: workspace, AfterRevision: uint64(after)}
	q.Path, q.RawPath = readable(path)
	return streamOf(c.files.Watch(ctx, connect.NewRequest(q)))
}

// Start starts an exec. The first event says its id.
func (c *Client) Start(ctx context.Context, s execd.Spec) (*Events, error) {
	return streamOf(c.calls.Start(ctx, connect.NewRequest(&carrelv1.StartRequest{Spec: Spec(s), Hold: true})))
}

// Attach follows an exec from an event on.
func (c *Client) Attach(ctx context.Context, id string, after uint64, hold bool) (*Events, error) {
	return streamOf(c.calls.Attach(ctx, connect.NewRequest(&carrelv1.AttachRequest{Id: id, AfterSeq: after, Hold: hold})))
}

// Input gives an exec standard input; last says that there is no more.
func (c *Client) Input(ctx context.Context, id string, p []byte, last bool) error {
	_, err := c.calls.Input(ctx, connect.NewRequest(&carrelv1.InputRequest{Id: id, Data: p, Close: last}))
	return Error(err)
}

// Feed gives an exec standard input, as what a feed has from offset on, and may be called again with the same when the connection
// broke: see execd.Exec.Feed. Last says that there is no more.
func (c *Client) Feed(ctx context.Context, id, feed string, offset uint64, p []byte, last bool) error {
	_, err := c.calls.Input(ctx, connect.NewRequest(&carrelv1.InputRequest{Id: id, Data: p, Close: last, Feed: feed, Offset: offset}))
	return Error(err)
}

// Signal sends an exec a signal by its name or number.
func (c *Client) Signal(ctx context.Context, id, signal string) error {
	_, err := c.calls.Signal(ctx, connect.NewRequest(&carrelv1.SignalRequest{Id: id, Signal: signal}))
	return Error(err)
}

// Resize changes the size of an exec's terminal.
func (c *Client) Resize(ctx context.Context, id string, s execd.Size) error {
	size := &carrelv1.Size{Rows: uint32(s.Rows), Cols: uint32(s.Cols)}
	_, err := c.calls.Resize(ctx, connect.NewRequest(&carrelv1.ResizeRequest{Id: id, Size: size}))
	return Error(err)
}

// List lists the execs of a workspace, or all.
func (c *Client) List(ctx context.Context, workspace string) ([]*carrelv1.Exec, error) {
	r, err := c.calls.List(ctx, connect.NewRequest(&carrelv1.ListRequest{Workspace: workspace}))
	if err != nil {
		return nil, Error(err)
	}
	return r.Msg.GetExecs(), nil
}

// Get says how an exec is.
func (c *Client) Get(ctx context.Context, id string) (*carrelv1.Exec, error) {
	r, err := c.calls.Get(ctx, connect.NewRequest(&carrelv1.GetRequest{Id: id}))
	if err != nil {
		return nil, Error(err)
	}
	return r.Msg, nil
}

// Dispose forgets an exec, and kills it first when it is running.
func (c *Client) Dispose(ctx context.Context, id string) error {
	_, err := c.calls.Dispose(ctx, connect.NewRequest(&carrelv1.DisposeRequest{Id: id}))
	return Error(err)
}
