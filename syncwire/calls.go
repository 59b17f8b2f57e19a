package syncwire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// ask makes a request whose answer is one frame.
func ask[A any, M interface {
	*A
	message
}](ctx context.Context, c *Client, m func() request) (M, error) {
	return retry(ctx, c, func(v *visit) (M, error) {
		answer := M(new(A))
		err := v.ask(ctx, m(), func(typ frameType, body []byte) (bool, error) {
			if typ != answer.frame() {
				return true, unexpected(answer.frame(), typ)
			}
			return true, cloned(body, answer)
		})
		return answer, err
	})
}

// Position implements vfs.Authority.
func (c *Client) Position(ctx context.Context) (vfs.Position, error) {
	return c.where(ctx, whereNow, 0)
}

// Wait implements vfs.Authority.
func (c *Client) Wait(ctx context.Context, after vfs.Rev) (vfs.Position, error) {
	return c.where(ctx, whereAfter, after)
}

// Barrier implements vfs.Authority.
func (c *Client) Barrier(ctx context.Context) (vfs.Position, error) {
	return c.where(ctx, whereBarrier, 0)
}

func (c *Client) where(ctx context.Context, mode whereMode, rev vfs.Rev) (vfs.Position, error) {
	a, err := ask[position](ctx, c, func() request { return &where{Mode: mode, Rev: rev} })
	if err != nil {
		return vfs.Position{}, err
	}
	return a.Position, nil
}

// Get implements vfs.Authority.
func (c *Client) Get(ctx context.Context, keys []vfs.Key) ([]vfs.Record, vfs.Rev, error) {
	a, err := retry(ctx, c, func(v *visit) (got, error) {
		var all got
		err := v.ask(ctx, &get{Keys: keys}, func(typ frameType, body []byte) (bool, error) {
			if typ != frameGot {
				return true, unexpected(frameGot, typ)
			}
			var part got
			if err := cloned(body, &part); err != nil {
				return true, err
			}
			all.Rev, all.Records = part.Rev, append(all.Records, part.Records...)
			return !part.More, tooMany(len(all.Records), len(keys), frameGot)
		})
		return all, err
	})
	if err == nil && len(a.Records) != len(keys) {
		err = fmt.Errorf("got: %d records for %d keys: %w", len(a.Records), len(keys), ErrProtocol)
	}
	if err != nil {
		return nil, 0, err
	}
	return a.Records, a.Rev, nil
}

// tooMany is an error when a server sends more than it was asked for.
func tooMany(n, max int, t frameType) error {
	if n > max {
		return fmt.Errorf("%v: %d items, %d were asked for: %w", t, n, max, ErrProtocol)
	}
	return nil
}

// Sums implements vfs.Authority.
func (c *Client) Sums(ctx context.Context, ranges []vfs.InoRange) ([]vfs.Digest, vfs.Rev, error) {
	a, err := ask[summed](ctx, c, func() request { return &sums{Ranges: ranges} })
	if err == nil && len(a.Digests) != len(ranges) {
		err = fmt.Errorf("summed: %d digests of %d intervals: %w", len(a.Digests), len(ranges), ErrProtocol)
	}
	if err != nil {
		return nil, 0, err
	}
	return a.Digests, a.Rev, nil
}

// LeaseInos implements vfs.Authority.
func (c *Client) LeaseInos(ctx context.Context, _ vfs.PeerID, n uint64) (vfs.InoRange, error) {
	a, err := ask[leased](ctx, c, func() request { return &lease{N: n} })
	if err != nil {
		return vfs.InoRange{}, err
	}
	return a.Range, nil
}

// MissingChunks implements vfs.Authority.
func (c *Client) MissingChunks(ctx context.Context, ids []chunk.ID) ([]chunk.ID, error) {
	a, err := ask[missed](ctx, c, func() request { return &missing{IDs: ids} })
	if err != nil {
		return nil, err
	}
	return a.IDs, nil
}

// Acknowledge tells the server that the client has everything up to rev, and will after a crash. It does not wait, and is
// lost when there is no session.
func (c *Client) Acknowledge(rev vfs.Rev) {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	if v != nil {
		v.acknowledge(rev)
	}
}

// Welcome is what the server has said of the session.
type Welcome struct {
	Position vfs.Position // when the session began
	Peer     vfs.PeerID
	Rights   Rights
	Agent    string
	// PushRecords and PushBytes are the most of a push that the server takes.
	PushRecords, PushBytes int
}

// Welcome connects, if need be, and returns what the server says.
func (c *Client) Welcome(ctx context.Context) (Welcome, error) {
	return retry(ctx, c, func(v *visit) (Welcome, error) {
		m, err := v.awaitWelcome(ctx)
		if err != nil {
			return Welcome{}, err
		}
		return Welcome{
			Position: m.Position, Peer: m.Peer, Rights: m.Rights, Agent: m.Agent, PushRecords: int(m.PushRecords),
			PushBytes: int(m.PushBytes),
		}, nil
	})
}

func (v *visit) awaitWelcome(ctx context.Context) (*welcome, error) {
	select {
	case <-v.ready:
		return v.welcome.Load(), nil
	case <-v.done:
		return nil, v.lost()
	case <-ctx.Done():
		return nil, interrupted(ctx)
	}
}

// ReadChunks implements vfs.Authority. Chunks are checked before they are yielded. After a lost connection it asks for
// those that have not come.
func (c *Client) ReadChunks(ctx context.Context, ids []chunk.ID, yield func(vfs.Chunk) error) error {
	f := &fetching{rest: ids, yield: yield}
	_, err := retry(ctx, c, func(v *visit) (none struct{}, err error) {
		return none, v.bulk.on(ctx, v, streamBulk, frameFetch, func(l *lane) error { return f.on(ctx, v, l) })
	})
	return err
}

// fetching is a ReadChunks that is under way.
type fetching struct {
	rest  []chunk.ID // that have neither come nor been passed over
	yield func(vfs.Chunk) error
	// What is being checked.
	chunks  []vfs.Chunk
	checker vfs.Checker
}

// on asks for the rest on a lane. Chunks are checked in pairs, which takes half as long, and the next one is read meanwhile.
func (f *fetching) on(ctx context.Context, v *visit, l *lane) error {
	if err := l.w.send(&fetch{numbered{1}, f.rest}); err != nil {
		return l.explain(ctx, v, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	came := make(chan arrival)
	go l.readChunks(ctx, v, came)
	defer func() {
		cancel()
		if !l.whole {
			l.stream.Close()
		}
		for range came { // until nobody reads any more
		}
	}()
	var pair [2]arrival
	wait := time.NewTimer(pairWait)
	defer wait.Stop()
	for pair[0] = range came {
		n := 1
		if wait.Reset(pairWait); pair[0].isChunk() {
			select {
			case next, ok := <-came:
				if ok {
					pair[1], n = next, 2
				}
			case <-wait.C:
			}
		}
		if more, err := f.take(pair[:n]); !more {
			l.whole = err == nil
			return err
		}
	}
	return interrupted(ctx)
}

// arrival is what has come on a lane.
type arrival struct {
	typ  frameType
	body []byte // good until the third after it is taken
	err  error
}

func (a arrival) isChunk() bool { return a.err == nil && a.typ == frameChunk }

// readChunks reads frames up to the first that is no chunk, or until ctx ends, one ahead of who takes them. Then it closes
// the channel.
func (l *lane) readChunks(ctx context.Context, v *visit, to chan<- arrival) {
	defer close(to)
	var spare [2][]byte
	for {
		typ, body, err := l.next(ctx, v)
		select {
		case to <- arrival{typ, body, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || typ != frameChunk {
			return
		}
		l.r.buf, spare[0], spare[1] = spare[0], spare[1], l.r.buf
	}
}

// take yields the chunks that a list begins with, and reports whether more are to come.
func (f *fetching) take(list []arrival) (more bool, err error) {
	f.chunks = f.chunks[:0]
	for _, a := range list {
		if !a.isChunk() {
			break
		}
		var m chunkMessage
		if err := decodeBody(a.body, &m); err != nil {
			return false, err
		}
		i := slices.Index(f.rest, m.Chunk.ID)
		if i < 0 {
			return false, fmt.Errorf("chunk %v was not asked for: %w", m.Chunk.ID, ErrProtocol)
		}
		f.rest = f.rest[i+1:]
		f.chunks = append(f.chunks, m.Chunk)
	}
	if err := f.checker.Check(f.chunks...); err != nil {
		return false, err
	}
	for _, c := range f.chunks {
		if err := f.yield(c); err != nil {
			return false, asOwn(err)
		}
	}
	switch last := list[len(list)-1]; {
	case last.err != nil:
		return false, last.err
	case last.typ == frameFetched:
		return false, nil
	case last.typ != frameChunk:
		return false, unexpected(frameChunk, last.typ)
	}
	return true, nil
}

// WriteChunks implements vfs.Authority.
func (c *Client) WriteChunks(ctx context.Context, chunks []vfs.Chunk) error {
	_, err := retry(ctx, c, func(v *visit) (none struct{}, err error) {
		return none, v.bulk.on(ctx, v, streamBulk, frameStore, func(l *lane) error {
			if err := l.sendChunks(chunks); err != nil {
				return l.explain(ctx, v, err)
			}
			return l.conclude(ctx, v, &stored{})
		})
	})
	return err
}

func (l *lane) sendChunks(chunks []vfs.Chunk) error {
	if err := l.w.send(&store{numbered{1}, uint32(len(chunks))}); err != nil {
		return err
	}
	for _, c := range chunks {
		if err := l.w.send(&chunkMessage{c}); err != nil {
			return err
		}
	}
	return nil
}

// conclude waits for the one frame that answers a request of a lane.
func (l *lane) conclude(ctx context.Context, v *visit, answer message) error {
	typ, body, err := l.next(ctx, v)
	switch {
	case err != nil:
		return err
	case typ != answer.frame():
		return unexpected(answer.frame(), typ)
	}
	l.whole = true
	return cloned(body, answer)
}

// Push implements vfs.Authority. Pushes go one after the other, small ones and large ones on streams of their own, so
// those that build on each other are made by one goroutine.
func (c *Client) Push(ctx context.Context, _ vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	return c.PushWith(ctx, p, nil, nil)
}

// smallPush is up to how many bytes a push is sent with the small ones.
const smallPush = 256 << 10

// PushWith makes a push and sends chunks before it in the same flight, which it reads from a set of chunks that has all
// of them. So a push whose chunks the server does not have takes one round trip. When they are many bytes, MissingChunks
// tells first which of them are needed.
func (c *Client) PushWith(ctx context.Context, p vfs.Push, ids []chunk.ID, from vfs.Chunks) (vfs.Outcome, error) {
	size := 0
	for i := range p.Records {
		r := &p.Records[i]
		if err := r.Key.Valid(); err != nil {
			return vfs.Outcome{}, fmt.Errorf("push: %w", err)
		}
		size += len(r.Name) + len(r.Value)
	}
	if len(p.Records) > vfs.MaxPushRecords || size > vfs.MaxPushBytes || len(ids) > maxPushChunks {
		return vfs.Outcome{}, fmt.Errorf("push of %d records, %d bytes, %d chunks: %w",
			len(p.Records), size, len(ids), vfs.ErrInvalid)
	}
	kind := 0
	if len(ids)*chunk.AvgSize+size > smallPush {
		kind = 1
	}
	return retry(ctx, c, func(v *visit) (o vfs.Outcome, err error) {
		err = v.pushes[kind].on(ctx, v, streamPush, framePush, func(l *lane) error {
			head := &push{numbered{1}, p.ID, uint32(len(ids)), uint32(len(p.Records)), uint32(size)}
			if err := l.sendPush(ctx, head, p, ids, from); err != nil {
				return l.explain(ctx, v, err)
			}
			var answer outcome
			err := l.conclude(ctx, v, &answer)
			o = answer.Outcome
			return err
		})
		return o, err
	})
}

// errLocalChunk is for a chunk of a push that its maker does not have.
var errLocalChunk = errors.New("a chunk of the push is not there")

// sendPush sends all of a push.
func (l *lane) sendPush(ctx context.Context, head *push, p vfs.Push, ids []chunk.ID, from vfs.Chunks) error {
	if err := l.w.send(head); err != nil {
		return err
	}
	if len(ids) > 0 {
		sent := 0
		var broken error
		err := from.ReadChunks(ctx, ids, func(c vfs.Chunk) error {
			sent++
			broken = l.w.send(&chunkMessage{c})
			return broken
		})
		switch {
		case broken != nil:
			return broken
		case err != nil:
			return asOwn(err)
		case sent != len(ids):
			return asOwn(errLocalChunk)
		}
	}
	for rest := p.Records; len(rest) > 0; {
		n, size := 0, 0
		for ; n < len(rest) && n < maxRecords; n++ {
			if size += recordSize(&rest[n].Record) + len(vfs.Base{}); size > recordsFrame && n > 0 {
				break
			}
		}
		if err := l.w.send(&changes{rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// OpenService opens a stream to a service of the server. It is never opened again when it is lost.
func (c *Client) OpenService(ctx context.Context, name string) (Stream, error) {
	v, err := c.visit(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := v.open(ctx, streamService, name)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { stream.Close() })
	l := &lane{stream: stream, r: newUnbufferedReader(stream), w: newFrameWriter(stream)}
	err = l.conclude(ctx, v, &opened{})
	if !stop() || err != nil {
		stream.Close()
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		return nil, err
	}
	return stream, nil
}
