package control

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Owner is what a client knows of the process at the other end.
type Owner struct {
	PID    int
	Mounts bool // it mounts workspaces, see [Mounts]
}

// Client works on a store through its owner. It is a [Store], a [Mounts] and a [Serving]; its methods are safe for
// concurrent use. A call whose context ends is given up at the owner, and returns when the owner has said what became of
// it.
type Client struct {
	dir    string // the store's
	owner  Owner
	conn   net.Conn
	slots  chan struct{} // one element for each call under way
	reader sync.WaitGroup

	wmu sync.Mutex // guards w and enc: one frame at a time
	w   *bufio.Writer
	enc *gob.Encoder

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]*call
	err     error // why the connection has ended
	origins map[any]uint64
	values  []any // origins by number, less one
}

var (
	_ Store   = (*Client)(nil)
	_ Mounts  = (*Client)(nil)
	_ Serving = (*Client)(nil)
)

// call is one that waits for its reply.
type call struct {
	reply *reply
	part  func(*reply) // runs on the reader's goroutine; nil when the call does not stream
	done  chan error   // of capacity 1
}

// Dial connects to the owner of the store in dir: ErrNoOwner when there is none, ErrVersion when it is of another
// version of this program.
func Dial(ctx context.Context, dir string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := DialSocket(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the owner of the store %s: %w", dir, err)
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	owner, err := shakeHands(ctx, conn, r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the owner of the store %s: %w", dir, err), conn.Close())
	}
	return newClient(dir, conn, r, owner), nil
}

func shakeHands(ctx context.Context, conn net.Conn, r *bufio.Reader) (Owner, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // past: reads and writes fail
	defer stop()
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: carrel\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %d\r\n\r\n",
		controlPath, upgradeProtocol, protocolHeader, Protocol)
	if err != nil {
		return Owner{}, handshakeError(ctx, err)
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return Owner{}, handshakeError(ctx, err)
	}
	return readAnswer(answer)
}

func handshakeError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it has not answered for %v: %w", handshakeTimeout, vfs.ErrBusy)
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return fmt.Errorf("%w: %w", vfs.ErrClosed, err)
}

func readAnswer(answer *http.Response) (Owner, error) {
	pid, _ := strconv.Atoi(answer.Header.Get(pidHeader)) // zero when it does not say
	if answer.StatusCode != http.StatusSwitchingProtocols {
		_ = answer.Body.Close() // nothing of it is needed
		theirs := answer.Header.Get(protocolHeader)
		return Owner{}, fmt.Errorf("%w: process %d speaks control protocol %q and this program %d",
			ErrVersion, pid, theirs, Protocol)
	}
	return Owner{PID: pid, Mounts: answer.Header.Get(mountsHeader) == "true"}, nil
}

func newClient(dir string, conn net.Conn, r *bufio.Reader, o Owner) *Client {
	w := bufio.NewWriterSize(conn, 64<<10)
	c := &Client{
		dir: dir, owner: o, conn: conn, slots: make(chan struct{}, maxCalls), w: w, enc: gob.NewEncoder(w),
		pending: map[uint64]*call{}, origins: map[any]uint64{},
	}
	c.reader.Go(func() { c.fail(c.read(gob.NewDecoder(r))) })
	return c
}

// Owner returns who is at the other end.
func (c *Client) Owner() Owner { return c.owner }

// Close lets go of everything that the client has open at the owner. What was done and not synced becomes durable a
// little later, as anything in a live workspace does.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.reader.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Gone waits until the owner has ended the connection, or ctx ends.
func (c *Client) Gone(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		c.reader.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

func (c *Client) read(dec *gob.Decoder) error {
	for {
		var h header
		if err := dec.Decode(&h); err != nil {
			return err
		}
		if err := c.deliver(dec, h); err != nil {
			return err
		}
	}
}

func (c *Client) deliver(dec *gob.Decoder, h header) error {
	c.mu.Lock()
	k := c.pending[h.ID]
	if h.Kind == kindReply {
		delete(c.pending, h.ID)
	}
	c.mu.Unlock()
	if k == nil {
		return fmt.Errorf("answer to call %d, which was not made: %w", h.ID, vfs.ErrInvalid)
	}
	if h.Kind == kindPart {
		r := reply{}
		if err := dec.Decode(&r); err != nil {
			return err
		}
		if k.part != nil {
			k.part(&r)
		}
		return nil
	}
	if err := decodeError(h.Code, h.Text); err != nil {
		k.done <- err
		return nil
	}
	err := dec.Decode(k.reply)
	if err != nil {
		k.done <- c.closedError(err)
		return err
	}
	k.done <- nil
	return nil
}

// fail ends every call that waits, and every one to come.
func (c *Client) fail(err error) {
	_ = c.conn.Close() // the connection is of no more use, whatever this says
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = c.closedError(err)
	for id, k := range c.pending {
		delete(c.pending, id)
		k.done <- c.err
	}
}

func (c *Client) closedError(err error) error {
	return fmt.Errorf("connection to process %d, which has the store open: %w: %w", c.owner.PID, vfs.ErrClosed, err)
}

// do makes a call and waits for its reply.
func (c *Client) do(ctx context.Context, m method, q *request) (*reply, error) {
	r := &reply{}
	return r, c.doInto(ctx, m, q, r, nil)
}

func (c *Client) doInto(ctx context.Context, m method, q *request, r *reply, part func(*reply)) error {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return interrupted(ctx)
	}
	id, k, err := c.begin(ctx, m, q, r, part)
	if err != nil {
		return err
	}
	select {
	case err := <-k.done:
		return err
	case <-ctx.Done():
	}
	c.cancel(id)
	return <-k.done
}

// begin sends a call.
func (c *Client) begin(ctx context.Context, m method, q *request, r *reply, part func(*reply)) (uint64, *call, error) {
	k := &call{reply: r, part: part, done: make(chan error, 1)}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return 0, nil, c.err
	}
	c.lastID++
	id := c.lastID
	c.pending[id] = k
	q.Origin = c.originLocked(vfs.OriginOf(ctx))
	c.mu.Unlock()
	if err := c.send(header{ID: id, Kind: kindCall, Method: m}, q); err != nil {
		// The stream is broken in the middle of a frame: the reader ends all calls, this one among them.
		_ = c.conn.Close()
	}
	return id, k, nil
}

// cancel asks the owner to give a call up. An error needs no care: the reader then ends the call.
func (c *Client) cancel(id uint64) { _ = c.send(header{ID: id, Kind: kindCancel}, nil) }

func (c *Client) send(h header, q *request) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if err := c.enc.Encode(&h); err != nil {
		return err
	}
	if q != nil {
		if err := c.enc.Encode(q); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// originLocked returns the number of an origin, giving it one.
func (c *Client) originLocked(o any) uint64 {
	if o == nil {
		return 0
	}
	n, ok := c.origins[o]
	if !ok && len(c.values) < maxOrigins {
		c.values = append(c.values, o)
		n = uint64(len(c.values))
		c.origins[o] = n
	}
	return n
}

// originOf is the inverse.
func (c *Client) originOf(n uint64) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == 0 || n > uint64(len(c.values)) {
		return nil
	}
	return c.values[n-1]
}
