package pack

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// grow makes room for n more bytes in the active pack, or begins a new one with that room. Space is reserved well
// ahead of the appends, for two reasons. A full disk is then found here, before a place in the pack is given away, and
// never by a write in the middle of others. And the blocks that bulk appends go to exist already: in ext4's ordered
// mode an fsync of any other file waits for the bytes that lie in newly allocated ones.
func (s *Set) grow(n int64) error {
	s.growMu.Lock()
	defer s.growMu.Unlock()
	if err := s.ready(n); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.active
	if p == nil || p.end+n <= p.alloc {
		s.mu.Unlock()
		return nil // a write to it failed, or another caller has grown it: the caller looks again
	}
	p.users++
	end, alloc := p.end, p.alloc
	s.mu.Unlock()
	defer s.done(p)
	return s.allocate(p, alloc, end+n)
}

// ready sees to it that there is an active pack that takes a frame of n bytes, apart from space. growMu must be
// held. A write that fails may give up the pack at once again.
func (s *Set) ready(n int64) error {
	s.mu.Lock()
	p, closed := s.active, s.closed
	fits := p != nil && p.fits(n, s.opts.PackSize)
	s.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case fits:
		return nil
	}
	s.sealActive()
	return s.begin()
}

// begin makes a new pack the active one. growMu must be held, and there must be no active one.
func (s *Set) begin() error {
	s.mu.Lock()
	id := s.next
	s.mu.Unlock()
	if err := s.opts.hook(OpCreate); err != nil {
		return err
	}
	file, err := os.OpenFile(s.path(id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	p := &pack{id: id, file: file, end: fileHeader, alloc: fileHeader}
	if err := s.write(p, 0, appendFileHeader(nil, s.version(), id)); err != nil {
		file.Close()
		// Should it stay behind, TruncateTo removes it; until then its number must not be used again.
		if os.Remove(file.Name()) != nil {
			s.skipNumber(id)
		}
		return err
	}
	s.mu.Lock()
	s.next = id + 1
	s.packs[id], s.active = p, p
	s.dirDirty = true
	s.dirty[p] = struct{}{}
	p.holdLocked(s, file)
	idle := s.idleLocked()
	s.mu.Unlock()
	closeFiles(idle...)
	return nil
}

func (s *Set) skipNumber(id uint32) {
	s.mu.Lock()
	s.next = max(s.next, id+1)
	s.mu.Unlock()
}

// allocate reserves space from the end of what is reserved up to need or further. growMu must be held.
func (s *Set) allocate(p *pack, from, need int64) error {
	to := max(need, min(from+s.step(p.file), s.opts.PackSize))
	err := s.fallocate(p.file, from, to-from)
	if isFull(err) && to > need {
		to = need
		err = s.fallocate(p.file, from, to-from)
	}
	unable := errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
	if err != nil && !unable {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if unable {
		s.noAlloc = true
	} else {
		p.alloc = to
	}
	return nil
}

// step returns how much to reserve ahead: less on a disk that has little.
func (s *Set) step(file *os.File) int64 {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &fs); err != nil {
		return 0
	}
	return min(s.opts.Prealloc, int64(fs.Bavail)*fs.Bsize/preallocPart)
}

// fallocate reserves n bytes from off on, without changing the size of the file.
func (s *Set) fallocate(file *os.File, off, n int64) error {
	if err := s.opts.hook(OpAllocate); err != nil {
		return err
	}
	for {
		err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &os.PathError{Op: "fallocate", Path: file.Name(), Err: err}
		}
	}
}

// startWriteback has the kernel start writing a range. It only saves time later, so errors do not matter; those of the
// writing itself are not told here but to fdatasync.
func startWriteback(file *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(file.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// Seal makes the next Append begin a new pack.
func (s *Set) Seal() error {
	s.growMu.Lock()
	defer s.growMu.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	s.sealActive()
	return nil
}

// sealActive makes the active pack, if there is one, take no more frames. growMu must be held.
func (s *Set) sealActive() {
	s.mu.Lock()
	p := s.active
	s.active = nil
	if p != nil {
		p.users++
	}
	s.mu.Unlock()
	if p != nil {
		s.trim(p)
		s.done(p)
	}
}

// trim gives back what is reserved behind the end of a pack that takes no more frames. Writes that are still under way
// lie before the end, and are not touched. The caller must be a user of p.
func (s *Set) trim(p *pack) {
	s.mu.Lock()
	end := p.end
	s.mu.Unlock()
	s.truncate(p.file, end)
}

// truncate cuts a file at its end: only space that is reserved behind it goes, or what was written of a frame that
// failed. When it cannot be done that space stays taken until the next TruncateTo; nothing else depends on it.
func (s *Set) truncate(file *os.File, end int64) {
	if s.opts.hook(OpTruncate) == nil {
		_ = file.Truncate(end)
	}
}
