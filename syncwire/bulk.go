package syncwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// serveBulk sends and takes chunks, one request after the other.
func (t *session) serveBulk(stream Stream, r *frameReader, w *frameWriter) error {
	return serveFrames(stream, r, w, func(typ frameType, body []byte) (known bool, err error) {
		switch typ {
		case frameFetch:
			var m fetch
			if err = decodeBody(body, &m); err == nil {
				err = t.answer(w, typ, m.Req, &fetched{m.numbered}, func(ctx context.Context) (refusal, err error) {
					return t.fetch(ctx, w, &m)
				})
			}
		case frameStore:
			var m store
			if err = decodeBody(body, &m); err == nil {
				err = t.answer(w, typ, m.Req, &stored{m.numbered}, func(context.Context) (refusal, err error) {
					return t.store(stream, r, w, &m)
				})
			}
		default:
			return false, nil
		}
		return true, err
	})
}

// serveFrames has every frame of a stream served, one after the other, however long the next one takes to come. What is
// not known is skipped.
func serveFrames(stream Stream, r *frameReader, w *frameWriter, serve func(frameType, []byte) (bool, error)) error {
	for {
		stream.SetReadDeadline(time.Time{})
		typ, body, err := r.next(maxFrame)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		known, err := serve(typ, body)
		if err == nil && !known {
			err = skip(w, typ, body)
		}
		if err != nil {
			return err
		}
	}
}

// answer has a request served, and sends what it ends with: ok, or the error for which it was refused.
func (t *session) answer(
	w *frameWriter, typ frameType, req uint64, ok message, serve func(ctx context.Context) (refusal, err error),
) error {
	ctx, done := t.traced(typ)
	refusal, err := serve(ctx)
	done(cmp.Or(err, refusal))
	switch {
	case err != nil:
		return err
	case refusal != nil:
		return w.send(errorFrame(req, fmt.Errorf("%v: %w", typ, refusal)))
	}
	return w.send(ok)
}

// fetch sends those of the chunks that are there.
func (t *session) fetch(ctx context.Context, w *frameWriter, m *fetch) (refusal, err error) {
	if err := t.may(RightRead, "fetch"); err != nil {
		return nil, err
	}
	refusal = t.authority.ReadChunks(ctx, m.IDs, func(c vfs.Chunk) error {
		t.server.stats.chunksOut.Add(1)
		t.server.stats.chunkBytesOut.Add(uint64(len(c.Stored)))
		err = w.send(&chunkMessage{Chunk: c})
		return err
	})
	return refusal, err
}

// store keeps chunks for pushes to come.
func (t *session) store(stream Stream, r *frameReader, w *frameWriter, m *store) (refusal, err error) {
	if err := t.may(RightWrite, "store"); err != nil {
		return nil, err
	}
	in := &incoming{session: t, stream: stream, r: r, w: w, deadline: time.Now().Add(pushTimeout)}
	release, err := t.reserve(batchCost(m.Chunks))
	if err != nil {
		return nil, err
	}
	defer release()
	return in.chunks(m.Chunks)
}
