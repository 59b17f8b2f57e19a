package syncwire

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// feed is a stream that the server writes and the client reads.
type feed struct {
	*session
	w        *frameWriter
	interval vfs.InoRange
	all      bool // leave nothing out

	// A frame of records that is being gathered: their encodings, and how many.
	batch []byte
	count int
	// The last revision that was asked about, and whether it is the session's own. Records of one push come close
	// together.
	asked    vfs.Rev
	isOwnRev bool
}

// serveFeed sends what changed, and goes on as it changes.
func (t *session) serveFeed(stream Stream, r *frameReader, w *frameWriter) error {
	if err := t.may(RightRead, "feed"); err != nil {
		return err
	}
	stream.SetReadDeadline(time.Now().Add(helloTimeout))
	typ, body, err := r.next(maxFirstFrame)
	if err != nil {
		return err
	}
	if typ != frameAttach {
		return fmt.Errorf("a feed begins with %v: %w", typ, ErrProtocol)
	}
	var m attach
	if err := decodeBody(body, &m); err != nil {
		return err
	}
	stream.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	t.server.group.Go(func() { // the client says nothing more; its end is the feed's
		io.Copy(io.Discard, stream)
		cancel(io.EOF)
	})
	if m.Since == (vfs.Cursor{}) {
		t.server.stats.snapshots.Add(1)
	} else {
		t.server.stats.resumes.Add(1)
	}
	f := &feed{session: t, w: w, interval: m.Range, all: m.Once}
	err = f.run(ctx, &m)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // who is only slow comes again
		w.send(errorFrame(0, err))
		t.server.log.Info("feed ends", "workspace", t.hello.Workspace, "subject", t.grant.Subject, "err", err)
	}
	stream.CloseWrite()
	stream.SetReadDeadline(time.Now().Add(closeGrace))
	<-ctx.Done()
	return nil
}

func (f *feed) run(ctx context.Context, m *attach) error {
	since := m.Since
	if m.From != 0 && !m.Once {
		err := f.rest(ctx, m.From, &since)
		if err != nil {
			return err
		}
	}
	for {
		position, err := f.update(ctx, since, m.Range)
		if errors.Is(err, vfs.ErrVoidCursor) && !m.Once {
			position, err = f.update(ctx, vfs.Cursor{}, m.Range)
		}
		if err != nil || m.Once {
			return err
		}
		f.lag.send(position.Rev, time.Now())
		f.batch = nil // it may be hours until the next
		since = position.Cursor
		if _, err := f.authority.Wait(ctx, since.Rev); err != nil {
			return err
		}
	}
}

// rest sends the rest of a snapshot that was cut off, unless the cursor at which it began is void by now; then the whole
// begins anew.
func (f *feed) rest(ctx context.Context, from vfs.Ino, since *vfs.Cursor) error {
	position, err := f.authority.Position(ctx)
	if err != nil {
		return err
	}
	if since.Epoch != position.Epoch || since.Rev < position.Oldest || since.Rev > position.Rev {
		*since = vfs.Cursor{}
		return nil
	}
	_, err = f.update(ctx, vfs.Cursor{}, vfs.InoRange{First: max(from, f.interval.First), Last: f.interval.Last})
	return err
}

// update sends what a query yields. The first frame is sent with the first record, so that nothing is said of a cursor
// that turns out to be void.
func (f *feed) update(ctx context.Context, since vfs.Cursor, in vfs.InoRange) (_ vfs.Position, err error) {
	if !in.Valid() {
		return vfs.Position{}, fmt.Errorf("attach: interval %v: %w", in, vfs.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	ctx, done := f.server.config.Trace.begin(ctx, frameUpdate.String())
	defer func() { done(err) }()
	begun := false
	start := func() error {
		if begun {
			return nil
		}
		begun = true
		m := &begin{Since: since.Rev}
		if since == (vfs.Cursor{}) {
			m.First = in.First
		}
		return f.w.send(m)
	}
	position, err := f.authority.Read(ctx, vfs.Query{Since: since, Range: in}, func(r vfs.Record) error {
		if own, err := f.isOwn(ctx, since, r.Rev); own || err != nil {
			return err
		}
		if err := start(); err != nil {
			return err
		}
		return f.add(&r)
	})
	if err != nil {
		return position, cmp.Or(ctx.Err(), err)
	}
	if err := errors.Join(start(), f.flush()); err != nil {
		return position, err
	}
	var ids []vfs.PushID
	if !f.whole(since) {
		if ids, err = f.own.between(ctx, since.Rev, position.Rev); err != nil {
			return position, err
		}
	}
	f.server.stats.updates.Add(1)
	return position, f.w.send(&update{Position: position, Own: ids})
}

// whole reports whether nothing is left out of what changed after since: not of a snapshot, nor of one reading.
func (f *feed) whole(since vfs.Cursor) bool { return f.all || since == vfs.Cursor{} }

// isOwn reports whether a record is to be left out because the session has pushed it.
func (f *feed) isOwn(ctx context.Context, since vfs.Cursor, rev vfs.Rev) (own bool, err error) {
	if f.whole(since) {
		return false, nil
	}
	if rev != f.asked {
		if f.isOwnRev, err = f.own.made(ctx, rev); err != nil {
			return false, err
		}
		f.asked = rev
	}
	return f.isOwnRev, nil
}

// add gathers a record, and sends a frame when enough have come together.
func (f *feed) add(r *vfs.Record) error {
	if f.count > 0 && (len(f.batch)+recordSize(r) > recordsFrame || f.count == maxRecords) {
		if err := f.flush(); err != nil {
			return err
		}
	}
	c := coder{mode: writing, b: f.batch}
	recordFields(&c, r)
	f.batch = c.b
	f.count++
	return c.err
}

func (f *feed) flush() error {
	if f.count == 0 {
		return nil
	}
	err := f.w.sendBody(frameRecords, binary.AppendUvarint(nil, uint64(f.count)), f.batch)
	f.batch, f.count = f.batch[:0], 0
	return err
}
