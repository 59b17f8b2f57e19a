package pack

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncRound is one run of syncing, for all callers that came before it began.
type syncRound struct {
	done chan struct{} // closed when err is set
	err  error
}

// Sync returns when every Append that returned before the call is durable. Concurrent calls share the work. When
// syncing has failed once, the kernel may have dropped what it could not write, and no later success would mean
// anything: every Sync from then on fails with the same error.
func (s *Set) Sync() error {
	s.mu.Lock()
	r, before := s.waiting, s.running
	if r != nil {
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r = &syncRound{done: make(chan struct{})}
	s.waiting = r
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.waiting, s.running = nil, r // whoever comes now came too late for this round
	s.mu.Unlock()
	r.err = s.syncAll()
	close(r.done)
	return r.err
}

// syncTarget is how far a pack is to be synced.
type syncTarget struct {
	*pack
	end int64
}

// syncAll syncs all packs and the directory. One runs at a time.
func (s *Set) syncAll() error {
	s.mu.Lock()
	if s.closed || s.syncErr != nil {
		defer s.mu.Unlock()
		if s.closed {
			return fmt.Errorf("sync packs: %w", ErrClosed)
		}
		return s.syncErr
	}
	targets := make([]syncTarget, 0, len(s.dirty))
	for p := range s.dirty {
		p.users++
		targets = append(targets, syncTarget{p, p.end})
	}
	// Frames before the ends may still be under way. What lies before a synced end must be whole, so wait for them. The
	// last of them may fail and the end go back, so only now is it known how far all is whole.
	for i, t := range targets {
		s.waitLocked(t.pack, t.end)
		targets[i].end = t.whole()
	}
	dir := s.dirDirty
	s.dirDirty = false
	s.mu.Unlock()

	err := s.syncFiles(targets, dir)
	if err != nil {
		err = fmt.Errorf("sync packs: %w", err)
	}
	s.finish(targets, err)
	return err
}

// waitLocked waits until no write is under way before end. mu is given up meanwhile.
func (s *Set) waitLocked(p *pack, end int64) {
	for len(p.writing) > 0 && p.whole() < end {
		s.settled.Wait()
	}
}

func (s *Set) syncFiles(targets []syncTarget, dir bool) error {
	for _, t := range targets {
		if err := s.opts.hook(OpSync); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(t.file.Fd())); err != nil {
			return &os.PathError{Op: "fdatasync", Path: t.file.Name(), Err: err}
		}
	}
	if !dir {
		return nil
	}
	if err := s.opts.hook(OpSyncDir); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// finish records what a round has done, and ends the use of the packs.
func (s *Set) finish(targets []syncTarget, err error) {
	s.mu.Lock()
	if err != nil {
		s.failSyncLocked(err)
	}
	var files []*os.File
	for _, t := range targets {
		if err == nil {
			t.synced = t.end
		}
		if t.synced == t.pack.end {
			delete(s.dirty, t.pack)
		}
		files = append(files, t.doneLocked(s))
	}
	files = append(files, s.idleLocked()...)
	s.mu.Unlock()
	closeFiles(files...)
}

// failSyncLocked makes every Sync fail from now on.
func (s *Set) failSyncLocked(err error) {
	if s.syncErr == nil {
		s.syncErr = err
	}
}
