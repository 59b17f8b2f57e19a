package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// use returns a pack with its file open, which stays so until done is called with it.
func (s *Set) use(id uint32) (*pack, error) {
	s.mu.Lock()
	p, err := s.findLocked(id)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	p.users++
	if p.file != nil {
		s.opened.MoveToFront(p.element)
		s.mu.Unlock()
		return p, nil
	}
	s.mu.Unlock()

	file, err := os.Open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("pack %s: %w", name(id), ErrNoPack)
	}
	s.mu.Lock()
	if err == nil && p.file == nil {
		p.holdLocked(s, file)
		file = nil
	}
	idle := s.idleLocked()
	s.mu.Unlock()
	closeFiles(append(idle, file)...)
	if err != nil {
		s.done(p)
		return nil, err
	}
	return p, nil
}

func (s *Set) findLocked(id uint32) (*pack, error) {
	if s.closed {
		return nil, ErrClosed
	}
	p := s.packs[id]
	if p == nil {
		return nil, fmt.Errorf("pack %s: %w", name(id), ErrNoPack)
	}
	return p, nil
}

// done ends the use of a pack.
func (s *Set) done(p *pack) {
	s.mu.Lock()
	file := p.doneLocked(s)
	s.mu.Unlock()
	closeFiles(file)
}

// doneLocked is done, but leaves it to the caller to close what it returns.
func (p *pack) doneLocked(s *Set) *os.File {
	p.users--
	if !p.gone {
		return nil
	}
	return p.dropLocked(s)
}

// holdLocked gives p its file.
func (p *pack) holdLocked(s *Set, file *os.File) {
	p.file, p.element = file, s.opened.PushFront(p)
}

// dropLocked takes p's file from it, to be closed by the caller; nil when it is in use or not open.
func (p *pack) dropLocked(s *Set) *os.File {
	if p.users > 0 || p.file == nil {
		return nil
	}
	file := p.file
	s.opened.Remove(p.element)
	p.file, p.element = nil, nil
	return file
}

// retireLocked makes p's file close with its last user, or returns it to be closed now when it has none.
func (p *pack) retireLocked(s *Set) *os.File {
	p.gone = true
	return p.dropLocked(s)
}

// idleLocked drops the files that are over the limit, the longest unused first. The pack that is being written keeps
// its file, and so do packs with bytes that are not yet synced: an error in writing them back is told to this file.
func (s *Set) idleLocked() (files []*os.File) {
	for e := s.opened.Back(); e != nil && s.opened.Len() > maxOpen; {
		p := e.Value.(*pack)
		e = e.Prev()
		if _, dirty := s.dirty[p]; dirty || p == s.active {
			continue
		}
		if file := p.dropLocked(s); file != nil {
			files = append(files, file)
		}
	}
	return files
}

// closeFiles closes those that are not nil. Nothing is learnt from an error: what matters was synced.
func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
