package pack

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Set is the packs of one directory. One process may have it open. All methods are safe for concurrent use, but
// TruncateTo comes before all others.
type Set struct {
	dir  string
	opts Options
	enc  *encryption // nil when the packs have no key

	growMu sync.Mutex

	mu       sync.Mutex
	settled  sync.Cond // on mu: a write has ended, well or not
	packs    map[uint32]*pack
	active   *pack              // takes the appends; nil before the first
	next     uint32             // the number of the next pack
	dirty    map[*pack]struct{} // packs with frames past their synced end
	dirDirty bool               // a pack was made since the directory was synced
	opened   *list.List         // of *pack: those with a file, the last used first
	noAlloc  bool               // the disk cannot reserve space
	running  *syncRound         // the last Sync that began
	waiting  *syncRound         // the one that begins when that has ended
	syncErr  error              // of the first sync that failed: all later ones fail with it
	closed   bool
}

// pack is one file. Its fields are guarded by the Set's mu.
type pack struct {
	id      uint32
	file    *os.File      // nil when not open
	element *list.Element // in Set.opened, while file is set
	users   int           // of file; it is not closed while there are any
	gone    bool          // removed, or the Set closed: file is closed with the last user

	end     int64   // of the last frame
	alloc   int64   // space is reserved up to here
	synced  int64   // frames that end here or before are durable
	flushed int64   // writing was started up to here
	writing []int64 // offsets of frames that are being written
}

// name returns the name of a pack's file.
func name(id uint32) string { return fmt.Sprintf("%08d.pack", id) }

func (s *Set) path(id uint32) string { return filepath.Join(s.dir, name(id)) }

// Open opens the packs in dir, which is made when it is not there. It reads none of them. Files with other names are
// left alone. Appends go to a new pack, unless TruncateTo finds that the last one can be continued.
func Open(dir string, opts Options) (*Set, error) {
	if opts.PackSize == 0 {
		opts.PackSize = DefaultPackSize
	}
	if opts.Prealloc == 0 {
		opts.Prealloc = DefaultPrealloc
	}
	if opts.PackSize < 0 || opts.PackSize > MaxPackSize {
		return nil, fmt.Errorf("open packs: size %d: %w", opts.PackSize, os.ErrInvalid)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	s := &Set{
		dir: dir, opts: opts, packs: map[uint32]*pack{}, next: 1, dirty: map[*pack]struct{}{},
		opened: list.New(), noAlloc: opts.Prealloc < 0,
	}
	s.settled.L = &s.mu
	if len(opts.Key) > 0 {
		var err error
		if s.enc, err = newEncryption(opts.Key); err != nil {
			return nil, fmt.Errorf("open packs: %w", err)
		}
	}
	if err := s.list(); err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	return s, nil
}

// list finds the packs in the directory.
func (s *Set) list() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, ok := parseName(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Size() > MaxPackSize+nonceLen+maxFrame {
			return &CorruptError{Pack: id, What: fmt.Sprintf("a file of %d bytes", info.Size())}
		}
		s.packs[id] = &pack{id: id, end: info.Size(), alloc: info.Size(), synced: info.Size(), flushed: info.Size()}
		s.next = max(s.next, id+1)
	}
	return nil
}

// parseName is the inverse of name.
func parseName(file string) (id uint32, ok bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(file, ".pack"), 10, 32)
	return uint32(n), err == nil && n > 0 && n < 1<<32-1 && name(uint32(n)) == file
}

// Info says how large a pack is.
type Info struct {
	ID   uint32
	Size int64 // bytes, up to the end of the last frame
}

// Packs returns all packs by number.
func (s *Set) Packs() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]Info, 0, len(s.packs))
	for id, p := range s.packs {
		infos = append(infos, Info{ID: id, Size: p.end})
	}
	slices.SortFunc(infos, func(a, b Info) int { return int(int64(a.ID) - int64(b.ID)) })
	return infos
}

// Ends returns the durable end of every pack, in bytes: what a commit records so that TruncateTo can go back to it. It
// covers at least every Append that had returned before the last Sync began. Packs with nothing durable are left out.
func (s *Set) Ends() map[uint32]uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := make(map[uint32]uint32, len(s.packs))
	for id, p := range s.packs {
		if p.synced > 0 {
			ends[id] = uint32(p.synced)
		}
	}
	return ends
}

// Remove deletes a pack. Reads of it that have begun still succeed, later ones fail with ErrNoPack. The deletion need
// not survive a crash: a pack that is back then is behind no committed end, and TruncateTo removes it. The pack that is
// being written is not removed: ErrActive.
func (s *Set) Remove(id uint32) error {
	s.mu.Lock()
	p, err := s.findLocked(id)
	if err == nil && p == s.active {
		err = fmt.Errorf("pack %s: %w", name(id), ErrActive)
	}
	s.mu.Unlock()
	if err == nil {
		err = s.unlink(id)
	}
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	s.mu.Lock()
	delete(s.packs, id)
	delete(s.dirty, p)
	file := p.retireLocked(s)
	s.mu.Unlock()
	closeFiles(file)
	return nil
}

func (s *Set) unlink(id uint32) error {
	if err := s.opts.hook(OpRemove); err != nil {
		return err
	}
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close gives back the space that was reserved ahead and closes the files, once the calls that are under way have
// ended; those that come later fail with ErrClosed. It does not sync. Closing twice is harmless.
func (s *Set) Close() error {
	s.growMu.Lock()
	defer s.growMu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for p := range s.dirty {
		s.waitLocked(p, p.end)
	}
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running.done
	}
	s.sealActive()

	s.mu.Lock()
	var files []*os.File
	for _, p := range s.packs {
		files = append(files, p.retireLocked(s))
	}
	s.mu.Unlock()
	closeFiles(files...)
	return nil
}
