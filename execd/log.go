package execd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Log is the events of one exec, on disk: segments of equal size, of which the first few and the last are kept.
//
//	seq 1          40            900        1200
//	[seg 1][seg 12][seg 31]  ...  [seg 900][seg 1050]
//	 head, kept for ever     gone  tail, moves on
//
// One writer at a time, any number of readers. It implements [Output].
type Log struct {
	dir     string
	segment int64 // size from which another one begins
	seal    seal

	writing sync.Mutex // held while an event is written; before mu
	file    *os.File   // the last segment, while it is being written
	buf     []byte

	mu      sync.Mutex
	segs    []segment
	next    uint64 // number of the next event
	offset  uint64 // bytes of output so far
	lost    uint64 // bytes of output that could not be written
	ending  bool   // the last event is being written, and nothing falls out any more
	ended   bool
	free    bool          // nobody waits for readers any more
	changed chan struct{} // closed and replaced when there is more to read
	moved   chan struct{} // closed when a reader that holds has moved; nil while nobody waits for that
	holders map[*Reader]struct{}
}

// segment is a file of a log.
type segment struct {
	first uint64 // number of its first event, which is its name
	size  int64  // of whole events
}

func (s segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", s.first, segmentSuffix))
}

const segmentSuffix = ".log"

// newLog returns an empty log in a directory that is there and has no log.
func newLog(dir string, size int64, seal seal) *Log {
	return &Log{
		dir: dir, seal: seal, segment: max(size/logSegments, 1), next: 1,
		changed: make(chan struct{}), holders: map[*Reader]struct{}{},
	}
}

// Write implements [Output].
func (l *Log) Write(s Stream, p []byte) {
	for len(p) > 0 {
		n := min(len(p), maxChunk)
		l.add(s, p[:n])
		p = p[n:]
	}
}

// end adds the last event. It has room however full the log is, and waits for no reader.
func (l *Log) end(result []byte) error {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.add(Exited, result)
	return l.finish()
}

// finish says that no more events come.
func (l *Log) finish() error {
	l.mu.Lock()
	l.ended, l.free = true, true
	l.wakeLocked()
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// add writes one event. One that cannot be written has its number all the same, so that readers see that it is missing.
func (l *Log) add(s Stream, p []byte) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	e := Event{Seq: l.next, Time: time.Now(), Stream: s, Data: p, Offset: l.offset}
	l.mu.Unlock()
	l.buf = appendFrame(l.buf[:0], e)
	n, err := l.put(e.Seq, l.seal.hideFrame(l.buf))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.segs[len(l.segs)-1].size += n
	}
	l.next++
	if s == Stdout || s == Stderr {
		l.offset += uint64(len(p))
		if err != nil {
			l.lost += uint64(len(p))
		}
	}
	l.wakeLocked()
}

// put appends a frame to the last segment, or begins another with it.
func (l *Log) put(seq uint64, frame []byte) (int64, error) {
	var last segment
	l.mu.Lock()
	if n := len(l.segs); n > 0 {
		last = l.segs[n-1]
	}
	l.mu.Unlock()
	if l.file == nil || last.size > 0 && last.size+int64(len(frame)) > l.segment {
		if err := l.begin(seq); err != nil {
			return 0, err
		}
		last.size = 0
	}
	if _, err := l.file.WriteAt(frame, last.size); err != nil {
		return 0, err // the next event is written over what there is of this one
	}
	return int64(len(frame)), nil
}

// prepare makes the first segment, so that the first event need not wait for that, which takes up to a millisecond.
func (l *Log) prepare() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	first := l.next
	needed := len(l.segs) == 0 && !l.ended
	l.mu.Unlock()
	if needed {
		_ = l.begin(first) // else the event tries again, and is missing
	}
}

// begin makes another segment, when there is room for it.
func (l *Log) begin(seq uint64) error {
	if err := l.makeRoom(); err != nil {
		return err
	}
	s := segment{first: seq}
	f, err := os.OpenFile(s.path(l.dir), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		err = l.file.Close()
	}
	l.file = f
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs = append(l.segs, s)
	return err
}

// makeRoom drops the oldest segments behind the head, but waits for readers that hold.
func (l *Log) makeRoom() error {
	for {
		s, drop, wait := l.victim()
		switch {
		case wait != nil:
			<-wait
		case !drop:
			return nil
		default:
			if err := os.Remove(s.path(l.dir)); err != nil {
				return err
			}
		}
	}
}

// victim takes a segment off the list that must go, or returns what to wait for first.
func (l *Log) victim() (s segment, drop bool, wait <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segs) < logSegments || l.ending {
		return segment{}, false, nil
	}
	s = l.segs[headSegments]
	last := l.segs[headSegments+1].first - 1
	for r := range l.holders {
		if r.pos < last && !l.free {
			if l.moved == nil {
				l.moved = make(chan struct{})
			}
			return segment{}, false, l.moved
		}
	}
	l.segs = append(l.segs[:headSegments:headSegments], l.segs[headSegments+1:]...)
	return s, true, nil
}

// release lets the writer go on whatever readers hold.
func (l *Log) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = true
	l.movedLocked()
}

func (l *Log) movedLocked() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

func (l *Log) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// sizes returns the number of the last event, the bytes of output so far, and how many of these were lost.
func (l *Log) sizes() (last, offset, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1, l.offset, l.lost
}

// corrupt is the error of a log that is not what was written.
func corrupt(path string, err error) error {
	if errors.Is(err, vfs.ErrCorrupt) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w: %w", path, vfs.ErrCorrupt, err)
}
