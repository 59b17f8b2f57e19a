package pack

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Append adds a frame with a chunk in stored form, and returns where it is. It is durable after the next Sync. A full
// disk gives an error that wraps ENOSPC (or EDQUOT); after any other error of a write the next Append begins a new
// pack. Lengths or a codec that no chunk has wrap [chunk.ErrCorrupt]. stored is not kept. Whether the bytes are those
// that id names is not checked.
func (s *Set) Append(id chunk.ID, codec chunk.Codec, plainLen int, stored []byte) (Loc, error) {
	if plainLen < 0 || plainLen > chunk.MaxSize || len(stored) > chunk.MaxSize {
		return Loc{}, fmt.Errorf("append %s: %d bytes in %d: %w", id, plainLen, len(stored), chunk.ErrCorrupt)
	}
	h := Header{ID: id, Codec: codec, PlainLen: uint32(plainLen), StoredLen: uint32(len(stored))}
	if what := h.check(); what != "" {
		return Loc{}, fmt.Errorf("append %s: %s: %w", id, what, chunk.ErrCorrupt)
	}
	loc, err := s.append(h, stored)
	if err != nil {
		return Loc{}, fmt.Errorf("append %s: %w", id, err)
	}
	return loc, nil
}

func (s *Set) append(h Header, stored []byte) (Loc, error) {
	p, off, err := s.reserve(s.taken(h))
	if errors.Is(err, errNoAlloc) {
		return s.appendAlone(h, stored)
	}
	if err != nil {
		return Loc{}, err
	}
	defer s.done(p)
	if err = s.writeFrame(p, off, h, stored); err != nil {
		s.fail(p, off, h, err)
		return Loc{}, err
	}
	s.settle(p, off)
	return s.loc(p, off, h), nil
}

// errNoAlloc tells append that space cannot be reserved.
var errNoAlloc = errors.New("cannot reserve space")

// reserve gives the caller n bytes of the active pack that are sure to have space on the disk. The caller is now a user
// of the pack, and must end the write with settle or fail.
func (s *Set) reserve(n int64) (p *pack, off int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch p = s.active; {
		case s.closed:
			return nil, 0, ErrClosed
		case s.noAlloc:
			return nil, 0, errNoAlloc
		case p != nil && p.fits(n, s.opts.PackSize) && p.end+n <= p.alloc:
			off = p.end
			p.end += n
			p.users++
			p.writing = append(p.writing, off)
			s.dirty[p] = struct{}{}
			return p, off, nil
		}
		s.mu.Unlock()
		err := s.grow(n)
		s.mu.Lock()
		if err != nil {
			return nil, 0, err
		}
	}
}

// fits reports whether a frame of n bytes still belongs into p. An empty pack takes any.
func (p *pack) fits(n, packSize int64) bool { return p.end+n <= packSize || p.end == fileHeader }

// settle ends the write of the frame at off, and has the kernel start writing when enough has come together.
func (s *Set) settle(p *pack, off int64) {
	s.mu.Lock()
	p.writing = slices.DeleteFunc(p.writing, func(o int64) bool { return o == off })
	s.settled.Broadcast()
	from, to := p.flushed, p.whole()
	if to-from >= writebackStep {
		p.flushed = to
	}
	s.mu.Unlock()
	if to-from >= writebackStep {
		startWriteback(p.file, from, to-from)
	}
}

// whole returns the end up to which no frame of p is being written.
func (p *pack) whole() int64 {
	if len(p.writing) == 0 {
		return p.end
	}
	return slices.Min(p.writing)
}

// fail ends a write of the frame at off that failed with cause. When no place behind it has been given away, the end of
// the pack goes back to it. Otherwise frames may have been written behind it, and its place is marked dead, for Scan to
// step over. Should even that fail, what is whole can no longer be told from what is not, and every Sync fails from now
// on; after a restart the pack ends where it was last synced.
//
// A disk that is full although the space was reserved is not to be trusted again. After any other error the pack takes
// no more frames.
func (s *Set) fail(p *pack, off int64, h Header, cause error) {
	full := isFull(cause)
	s.mu.Lock()
	last := p.end == off+s.taken(h)
	if last {
		p.end = off
	}
	if full {
		s.noAlloc = true
	} else if s.active == p {
		s.active = nil
	}
	s.mu.Unlock()
	if !last {
		s.markDead(p, off, h.StoredLen)
	}
	s.settle(p, off)
	if !full {
		s.trim(p)
	}
}

// markDead makes the place of a failed write a dead frame. The last byte is written too, so that the file is not
// shorter than the frame.
func (s *Set) markDead(p *pack, off int64, storedLen uint32) {
	h := Header{dead: true, StoredLen: storedLen}
	err := s.write(p, off+s.lead(), h.append(nil, nil))
	if err == nil && storedLen > 0 {
		err = s.write(p, off+s.taken(h)-1, []byte{0})
	}
	if err != nil {
		s.mu.Lock()
		s.failSyncLocked(fmt.Errorf("mark a failed write: %w", err))
		s.mu.Unlock()
	}
}

// appendAlone appends where space cannot be reserved. Such appends wait for each other, so that one which finds the
// disk full can put the end back, and no frame lies behind it.
func (s *Set) appendAlone(h Header, stored []byte) (Loc, error) {
	s.growMu.Lock()
	defer s.growMu.Unlock()
	n := s.taken(h)
	p, off, err := s.takeEnd(n)
	if err != nil {
		return Loc{}, err
	}
	defer s.done(p)
	if err := s.writeFrame(p, off, h, stored); err != nil {
		s.truncate(p.file, off)
		if !isFull(err) {
			s.sealActive()
		}
		return Loc{}, err
	}
	s.mu.Lock()
	p.end, p.alloc = off+n, off+n
	s.dirty[p] = struct{}{}
	s.mu.Unlock()
	s.settle(p, off)
	return s.loc(p, off, h), nil
}

// takeEnd makes the caller a user of an active pack that takes a frame of n bytes, and returns the pack's end, when no
// write to it is under way. None can begin: growMu must be held, and noAlloc set.
func (s *Set) takeEnd(n int64) (*pack, int64, error) {
	for {
		if err := s.ready(n); err != nil {
			return nil, 0, err
		}
		s.mu.Lock()
		if p := s.active; p != nil {
			s.waitLocked(p, p.end)
			if s.active == p { // else a write to it failed
				p.users++
				off := p.end
				s.mu.Unlock()
				return p, off, nil
			}
		}
		s.mu.Unlock()
	}
}

// write writes the parts of a frame at off.
func (s *Set) write(p *pack, off int64, parts ...[]byte) error {
	if err := s.opts.hook(OpWrite); err != nil {
		return err
	}
	return writeParts(p.file, off, parts)
}

// writeParts writes all parts with one system call as a rule. POSIX lets it write less, so the rest follows singly.
func writeParts(file *os.File, off int64, parts [][]byte) error {
	n, err := unix.Pwritev(int(file.Fd()), parts, off)
	if err != nil && err != unix.EINTR {
		return &os.PathError{Op: "write", Path: file.Name(), Err: err}
	}
	done := int64(max(n, 0))
	for _, part := range parts {
		skip := min(done, int64(len(part)))
		done -= skip
		if skip < int64(len(part)) {
			if _, err := file.WriteAt(part[skip:], off+skip); err != nil {
				return err
			}
		}
		off += int64(len(part))
	}
	return nil
}

// isFull reports whether err says that there is no more space.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
