package syncwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// serveControl answers the requests of a session until the client or the session ends.
func (t *session) serveControl(stream Stream, r *frameReader) error {
	defer context.AfterFunc(t.ctx, func() { stream.SetReadDeadline(time.Unix(1, 0)) })()
	slots := make(chan struct{}, maxRequests)
	for {
		stream.SetReadDeadline(time.Now().Add(silence))
		if t.ctx.Err() != nil { // the deadline that says so may just have been overwritten
			return context.Cause(t.ctx)
		}
		typ, body, err := r.next(maxControlFrame)
		if err != nil && t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.takeFrame(typ, body, slots); err != nil {
			return err
		}
	}
}

// takeFrame takes one frame of the control stream. Requests are answered from goroutines; when all slots are taken, the
// next waits, and with it the client.
func (t *session) takeFrame(typ frameType, body []byte, slots chan struct{}) error {
	switch typ {
	case frameAck:
		var m ack
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		t.lag.acknowledge(m.Rev, time.Now())
		return nil
	case framePing:
		var m ping
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		return t.control.send(&pong{numbered{m.Req}})
	case frameCancel:
		var m cancel
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		t.open.cancel(m.Req)
		return nil
	}
	answer, ok := requests[typ]
	if !ok {
		return skip(t.control, typ, body)
	}
	m := messages[typ]().(request)
	if err := decodeBody(body, m); err != nil {
		return err
	}
	if err := t.may(RightRead, typ.String()); err != nil {
		return t.control.send(errorFrame(*m.number(), err))
	}
	select {
	case slots <- struct{}{}:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-time.After(stallTimeout): // it may be gone; who does not read does not notice
		return fmt.Errorf("more than %d requests: %w", maxRequests, ErrProtocol)
	}
	t.server.stats.requests[typ].Add(1)
	ctx, done := t.open.begin(t.ctx, *m.number())
	t.group.Go(func() {
		defer func() { <-slots }()
		defer done()
		ctx, traced := t.server.config.Trace.begin(ctx, typ.String())
		err := answer(t, ctx, m)
		traced(err)
		if err != nil && t.ctx.Err() == nil { // else the stream's end says why
			err = t.control.send(errorFrame(*m.number(), err))
		}
		if err != nil {
			t.cancel(err) // the client does not read, or is gone
		}
	})
	return nil
}

// openRequests are the requests of a control stream that are being answered, so that they can be cancelled.
type openRequests struct {
	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc
}

// begin returns the context of a request, and what is to be called when it has been answered. Of two requests under one
// number only the last can be cancelled.
func (o *openRequests) begin(ctx context.Context, req uint64) (context.Context, func()) {
	ctx, stop := context.WithCancel(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancels == nil {
		o.cancels = make(map[uint64]context.CancelFunc)
	}
	o.cancels[req] = stop
	return ctx, func() {
		stop()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.cancels, req)
	}
}

func (o *openRequests) cancel(req uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stop := o.cancels[req]; stop != nil {
		stop()
	}
}

// requests are what answers each request of a control stream. Messages of control streams do not alias their frames.
var requests = map[frameType]func(*session, context.Context, request) error{
	frameWhere:   func(t *session, ctx context.Context, m request) error { return t.answerWhere(ctx, m.(*where)) },
	frameGet:     func(t *session, ctx context.Context, m request) error { return t.answerGet(ctx, m.(*get)) },
	frameSums:    func(t *session, ctx context.Context, m request) error { return t.answerSums(ctx, m.(*sums)) },
	frameLease:   func(t *session, ctx context.Context, m request) error { return t.answerLease(ctx, m.(*lease)) },
	frameMissing: func(t *session, ctx context.Context, m request) error { return t.answerMissing(ctx, m.(*missing)) },
}

func (t *session) answerWhere(ctx context.Context, m *where) (err error) {
	a := &position{numbered: m.numbered}
	switch m.Mode {
	case whereNow:
		a.Position, err = t.authority.Position(ctx)
	case whereAfter:
		a.Position, err = t.authority.Wait(ctx, m.Rev)
	case whereBarrier:
		a.Position, err = t.authority.Barrier(ctx)
	}
	if err != nil {
		return err
	}
	return t.control.send(a)
}

// getCost is what the answer to a get may take in memory: inodes and dirents are a few kilobytes at most.
func getCost(keys []vfs.Key) (n int64) {
	for _, k := range keys {
		if n += 2 * vfs.MaxInline; k.Kind == vfs.KeyXattr {
			n += vfs.MaxXattrSize
		}
	}
	return n
}

func (t *session) answerGet(ctx context.Context, m *get) error {
	release, err := t.reserve(getCost(m.Keys))
	if err != nil {
		return err
	}
	defer release()
	records, rev, err := t.authority.Get(ctx, m.Keys)
	if err != nil {
		return err
	}
	for {
		n := fitting(records, recordsFrame)
		part := &got{numbered: m.numbered, Rev: rev, More: n < len(records), Records: records[:n]}
		if err := t.control.send(part); err != nil || !part.More {
			return err
		}
		records = records[n:]
	}
}

// fitting returns how many records, at least one if there is one, take no more than max bytes.
func fitting(records []vfs.Record, max int) (n int) {
	for size := 0; n < len(records); n++ {
		r := &records[n]
		if size += recordSize(r); size > max && n > 0 {
			break
		}
	}
	return n
}

// recordSize is about what a record takes on the wire.
func recordSize(r *vfs.Record) int { return len(r.Name) + len(r.Value) + 24 }

func (t *session) answerSums(ctx context.Context, m *sums) error {
	digests, rev, err := t.authority.Sums(ctx, m.Ranges)
	if err != nil {
		return err
	}
	return t.control.send(&summed{numbered: m.numbered, Rev: rev, Digests: digests})
}

func (t *session) answerLease(ctx context.Context, m *lease) error {
	if err := t.may(RightWrite, "lease"); err != nil {
		return err
	}
	in, err := t.authority.LeaseInos(ctx, t.peer, m.N)
	if err != nil {
		return err
	}
	return t.control.send(&leased{numbered: m.numbered, Range: in})
}

func (t *session) answerMissing(ctx context.Context, m *missing) error {
	ids, err := t.authority.MissingChunks(ctx, m.IDs)
	if err != nil {
		return fmt.Errorf("missing: %w", err)
	}
	return t.control.send(&missed{numbered: m.numbered, IDs: ids})
}
