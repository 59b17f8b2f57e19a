package execd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Reader reads a log from some event on, and follows it. It is for one goroutine, and must be closed.
type Reader struct {
	log *Log
	pos uint64 // the last event that was given; written under log.mu when the reader holds

	first  uint64   // of the segment that is read
	file   *os.File // nil before the first
	at     int64    // where buf begins in it
	buf    []byte   // what was read and not yet given, at the end of space
	space  []byte
	offset uint64 // where the output of the last event before pos ends, as far as is known
	kept   Event  // given after the Gap before it
}

// Attach returns a reader that begins after an event: 0 for all. One that holds makes the program wait when it writes
// more than the log keeps and the reader has not had it yet, for as long as the reader is not closed.
func (l *Log) Attach(after uint64, hold bool) *Reader {
	r := &Reader{log: l, pos: after}
	if hold {
		l.mu.Lock()
		l.holders[r] = struct{}{}
		l.mu.Unlock()
	}
	return r
}

// Close ends the reader.
func (r *Reader) Close() error {
	r.log.mu.Lock()
	delete(r.log.holders, r)
	r.log.movedLocked()
	r.log.mu.Unlock()
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Next returns the next event and waits for it: io.EOF after the last, ErrInterrupted when ctx ended, ErrCorrupt when
// what is on disk is not what was written, ErrNotExist when the exec was forgotten.
func (r *Reader) Next(ctx context.Context) (Event, error) {
	if e := r.kept; e.Seq != 0 {
		r.kept = Event{}
		return r.give(e), nil
	}
	for {
		e, ok, err := r.frame()
		switch {
		case err != nil:
			return Event{}, err
		case ok && e.Seq > r.pos+1:
			r.kept = e
			gap := Event{Stream: Gap, Seq: e.Seq - 1, First: r.pos + 1, Offset: r.offset, Lost: e.Offset - r.offset}
			return r.give(gap), nil
		case ok && e.Seq == r.pos+1:
			return r.give(e), nil
		case ok:
			r.offset = e.end()
			continue
		}
		if err := r.more(ctx); err != nil {
			return Event{}, err
		}
	}
}

// end is the offset behind an event.
func (e Event) end() uint64 {
	switch e.Stream {
	case Stdout, Stderr:
		return e.Offset + uint64(len(e.Data))
	case Gap:
		return e.Offset + e.Lost
	}
	return e.Offset
}

func (r *Reader) give(e Event) Event {
	r.offset = e.end()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.pos = e.Seq
	r.log.movedLocked()
	return e
}

// frame takes an event out of what was read.
func (r *Reader) frame() (e Event, ok bool, err error) {
	n, err := frameLen(r.buf)
	if err == nil && (n == 0 || n > len(r.buf)) {
		return Event{}, false, nil
	}
	var frame []byte
	if err == nil {
		frame, err = r.log.seal.showFrame(r.buf[:n])
	}
	if err == nil {
		e, err = parseFrame(frame)
	}
	if err != nil {
		return Event{}, false, corrupt(r.path(), err)
	}
	r.buf = r.buf[n:]
	r.at += int64(n)
	return e, true, nil
}

func (r *Reader) path() string { return segment{first: r.first}.path(r.log.dir) }

// more reads on, in the next segment when this one is at its end, and waits when there is nothing.
func (r *Reader) more(ctx context.Context) error {
	look := r.look()
	switch {
	case r.file != nil && (look.size < 0 || r.at+int64(len(r.buf)) < look.size):
		n, err := r.fill(look.size)
		if err != nil || n > 0 || look.next == 0 {
			return err
		}
		return r.open(look.next) // it fell out of the log, and is at its end
	case len(r.buf) > 0:
		return corrupt(r.path(), io.ErrUnexpectedEOF)
	case look.next != 0:
		return r.open(look.next)
	case look.ended:
		return io.EOF
	}
	select {
	case <-look.changed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read a log: %w", vfs.ErrInterrupted)
	}
}

// look is what a reader finds in its log.
type look struct {
	size    int64  // of the segment that is read; -1 when it fell out, and what the file has counts
	next    uint64 // the segment after it; 0 for none
	ended   bool
	changed <-chan struct{}
}

func (r *Reader) look() look {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	k := look{size: -1, ended: r.log.ended, changed: r.log.changed}
	for _, s := range r.log.segs {
		switch {
		case r.file != nil && s.first == r.first:
			k.size = s.size
		case r.file == nil && (s.first <= r.pos+1 || k.next == 0):
			k.next = s.first
		case r.file != nil && s.first > r.first && k.next == 0:
			k.next = s.first
		}
	}
	return k
}

// open goes on with another segment. One that has fallen out meanwhile is not an error: the next look finds another.
func (r *Reader) open(first uint64) error {
	f, err := os.Open(segment{first: first}.path(r.log.dir))
	if errors.Is(err, fs.ErrNotExist) && r.log.has(first) {
		return fmt.Errorf("the log of an exec that was forgotten: %w", vfs.ErrNotExist)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.file != nil {
		err = r.file.Close()
	}
	r.file, r.first, r.at, r.buf = f, first, 0, nil
	return err
}

func (l *Log) has(first uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segs {
		if s.first == first {
			return true
		}
	}
	return false
}

// fill reads what follows buf, up to size, or up to the end of the file when size is negative.
func (r *Reader) fill(size int64) (int, error) {
	need := 2 * maxChunk
	if n, _ := frameLen(r.buf); n > need {
		need = n
	}
	if cap(r.space) < need {
		r.space = make([]byte, need)
	}
	r.space = r.space[:cap(r.space)]
	have := copy(r.space, r.buf)
	from := r.at + int64(have)
	want := len(r.space) - have
	if size >= 0 {
		want = int(min(int64(want), size-from))
	}
	n, err := r.file.ReadAt(r.space[have:have+want], from)
	r.buf = r.space[:have+n]
	if errors.Is(err, io.EOF) && (size < 0 || n == want) {
		err = nil
	}
	if err != nil {
		return n, corrupt(r.path(), err)
	}
	return n, nil
}
