package syncwire

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// servePush takes the pushes of a stream, one after the other.
func (t *session) servePush(stream Stream, r *frameReader, w *frameWriter) error {
	if err := t.may(RightWrite, "push"); err != nil {
		return err
	}
	return serveFrames(stream, r, w, func(typ frameType, body []byte) (known bool, err error) {
		if typ != framePush {
			return false, nil
		}
		var m push
		if err = decodeBody(body, &m); err == nil {
			err = t.push(stream, r, w, &m)
		}
		return true, err
	})
}

// push receives a push and answers it. An error is one of the stream; what is wrong with the push is answered.
func (t *session) push(stream Stream, r *frameReader, w *frameWriter, m *push) (err error) {
	ctx, done := t.traced(framePush)
	var refusal error
	defer func() { done(cmp.Or(err, refusal)) }()
	in := &incoming{session: t, stream: stream, r: r, w: w, deadline: time.Now().Add(pushTimeout)}
	release, err := t.reserve(int64(m.Bytes) + int64(m.Records)*pushRecordCost + batchCost(m.Chunks))
	if err != nil {
		return err
	}
	defer release()
	if refusal, err = in.chunks(m.Chunks); err != nil {
		return err
	}
	p := vfs.Push{ID: m.ID}
	if p.Records, err = in.records(m); err != nil {
		return err
	}
	var o vfs.Outcome
	if refusal == nil {
		o, refusal = t.own.push(ctx, p.ID, func() (vfs.Outcome, error) { return t.authority.Push(ctx, t.peer, p) })
	}
	if refusal != nil {
		return w.send(errorFrame(m.Req, refusal))
	}
	t.count(&o)
	o.Stale = o.Stale[:fitting(o.Stale, staleBytes)]
	return w.send(&outcome{numbered: m.numbered, Outcome: o})
}

func (t *session) count(o *vfs.Outcome) {
	switch c := &t.server.stats; {
	case len(o.Stale) > 0:
		c.stalePushes.Add(1)
	case len(o.Missing) > 0:
		c.missingPushes.Add(1)
	default:
		c.pushes.Add(1)
	}
}

// batchCost is what n chunks take in memory while they are received.
func batchCost(n uint32) int64 { return min(int64(n)*maxStored, chunkBatch) }

// incoming is a push or a lot of chunks that is being received.
type incoming struct {
	*session
	stream   Stream
	r        *frameReader
	w        *frameWriter
	deadline time.Time
	batch    []vfs.Chunk
	size     int
}

// next returns the next frame of type want, and answers what it does not know before it.
func (in *incoming) next(want frameType) ([]byte, error) {
	for {
		deadline := time.Now().Add(stallTimeout)
		if in.deadline.Before(deadline) {
			deadline = in.deadline
		}
		in.stream.SetReadDeadline(deadline)
		typ, body, err := in.r.next(maxFrame)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || typ == want {
			return body, err
		}
		if err := skip(in.w, typ, body); err != nil {
			return nil, err
		}
	}
}

// chunks receives n chunks and keeps them, a batch at a time. refusal says what was wrong with one of them; the rest are
// read all the same, so that the stream goes on behind them.
func (in *incoming) chunks(n uint32) (refusal, err error) {
	for range n {
		body, err := in.next(frameChunk)
		if err != nil {
			return nil, err
		}
		var m chunkMessage
		if err := decodeBody(body, &m); err != nil {
			return nil, err
		}
		if refusal != nil {
			continue
		}
		m.Chunk.Stored = bytes.Clone(m.Chunk.Stored)
		in.batch = append(in.batch, m.Chunk)
		if in.size += len(m.Chunk.Stored); in.size >= chunkBatch-maxStored {
			refusal = in.keep()
		}
	}
	if refusal == nil {
		refusal = in.keep()
	}
	return refusal, nil
}

func (in *incoming) keep() error {
	if len(in.batch) == 0 {
		return nil
	}
	err := in.authority.WriteChunks(in.ctx, in.batch)
	in.server.stats.chunksIn.Add(uint64(len(in.batch)))
	in.server.stats.chunkBytesIn.Add(uint64(in.size))
	in.batch, in.size = nil, 0
	return err
}

// records receives the records of a push.
func (in *incoming) records(m *push) (all []vfs.PushRecord, err error) {
	bytesLeft := int(m.Bytes)
	for uint32(len(all)) < m.Records {
		body, err := in.next(frameChanges)
		if err != nil {
			return nil, err
		}
		var part changes
		if err := decodeBody(body, &part); err != nil {
			return nil, err
		}
		for i := range part.Records {
			r := &part.Records[i]
			r.Value = bytes.Clone(r.Value)
			bytesLeft -= len(r.Name) + len(r.Value)
		}
		all = append(all, part.Records...)
		if len(part.Records) == 0 || uint32(len(all)) > m.Records || bytesLeft < 0 {
			return nil, fmt.Errorf("changes: %d records, %d bytes left of what the push said: %w",
				len(all), bytesLeft, ErrProtocol)
		}
	}
	return all, nil
}
