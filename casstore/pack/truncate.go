package pack

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// TruncateTo takes the packs back to the ends that were committed last, from [Set.Ends]: what lies behind an end goes,
// and so do packs that have none. It comes right after Open, before anything else is done with the Set. Appends then go
// on in the last pack if it is not full.
//
// A pack that is missing, or shorter than its end, or not a pack, is a [CorruptError], and nothing has been changed.
func (s *Set) TruncateTo(ends map[uint32]uint32) error {
	for id, end := range ends {
		if err := s.checkEnd(id, int64(end)); err != nil {
			return fmt.Errorf("truncate packs: %w", err)
		}
	}
	var last *pack
	for _, info := range s.Packs() {
		end, committed := ends[info.ID]
		if !committed {
			if err := s.Remove(info.ID); err != nil {
				return fmt.Errorf("truncate packs: %w", err)
			}
			continue
		}
		p, err := s.cut(info.ID, int64(end))
		if err != nil {
			return fmt.Errorf("truncate packs: %w", err)
		}
		last = p
	}
	return s.resume(last)
}

// checkEnd checks that a pack is there and reaches to its end.
func (s *Set) checkEnd(id uint32, end int64) error {
	s.mu.Lock()
	p, err := s.findLocked(id)
	var size int64
	if err == nil {
		size = p.end
	}
	s.mu.Unlock()
	corrupt := func(what string) error { return &CorruptError{Pack: id, Off: uint32(end), What: what} }
	switch {
	case errors.Is(err, ErrNoPack):
		return corrupt("the pack is missing")
	case err != nil:
		return err
	case end < fileHeader:
		return corrupt("an end before the first frame")
	case size < end:
		return corrupt(fmt.Sprintf("the file ends at %d", size))
	}
	return s.checkFile(id)
}

// checkFile checks the header of a pack that is at least as long.
func (s *Set) checkFile(id uint32) error {
	file, err := os.Open(s.path(id))
	if err != nil {
		return err
	}
	defer file.Close()
	var head [fileHeader]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return fmt.Errorf("pack %s: %w", name(id), err)
	}
	return checkFileHeader(head[:], s.version(), id)
}

// cut cuts a pack at end. It does so even where the file ends there: space that was reserved may lie behind.
func (s *Set) cut(id uint32, end int64) (*pack, error) {
	if err := s.opts.hook(OpTruncate); err != nil {
		return nil, err
	}
	if err := os.Truncate(s.path(id), end); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.packs[id]
	p.end, p.alloc, p.synced, p.flushed = end, end, end, end
	return p, nil
}

// resume makes p, which may be nil, the active pack if there is room in it.
func (s *Set) resume(p *pack) error {
	if p == nil || p.end >= s.opts.PackSize {
		return nil
	}
	file, err := os.OpenFile(s.path(p.id), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("truncate packs: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.holdLocked(s, file)
	s.active = p
	return nil
}
