package mirror

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/renameio/v2"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// What Config.Prefetch says beside a pattern.
const (
	PrefetchLearned = ""     // what was read first in the run before
	PrefetchNone    = "none" // nothing
	PrefetchAll     = "all"
)

// CheckPrefetch returns ErrInvalid for what Config.Prefetch cannot be.
func CheckPrefetch(s string) error {
	if !doublestar.ValidatePattern(s) {
		return fmt.Errorf("prefetch %q: %w", s, vfs.ErrInvalid)
	}
	return nil
}

// prefetcher fetches the bytes of files that nobody reads yet, and learns which are read first. What somebody waits for goes
// before all that it does.
type prefetcher struct {
	m    *Mirror
	how  string // Config.Prefetch
	left int64  // how many bytes may still be fetched

	learning atomic.Bool
	mu       sync.Mutex
	reads    []firstRead
	index    map[vfs.Ino]int // into reads
}

// firstRead is a file that was read, and up to where.
type firstRead struct {
	ino vfs.Ino
	end uint64
}

// newPrefetcher returns one that may fill three quarters of the cache: with more it would take away what it has fetched.
func newPrefetcher(m *Mirror) *prefetcher {
	p := &prefetcher{m: m, how: m.config.Prefetch, index: make(map[vfs.Ino]int), left: defaultCache / 4 * 3}
	if m.config.CacheBytes > 0 {
		p.left = m.config.CacheBytes / 4 * 3
	}
	p.learning.Store(p.how != PrefetchNone)
	return p
}

// note notes a read. After the first seconds it costs nothing.
func (p *prefetcher) note(ino vfs.Ino, end uint64) {
	if !p.learning.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, known := p.index[ino]
	if !known {
		if len(p.reads) == maxLearned {
			return
		}
		i = len(p.reads)
		p.index[ino] = i
		p.reads = append(p.reads, firstRead{ino: ino})
	}
	p.reads[i].end = max(p.reads[i].end, end)
}

// learn notes what is read in the first seconds, and keeps it for the next run.
func (p *prefetcher) learn() {
	p.m.pause(learnFor)
	if err := p.keep(); err != nil {
		p.m.log.Error("what was read first is not kept", "err", err)
	}
}

func (p *prefetcher) file() string { return filepath.Join(p.m.config.Dir, "reads") }

// keep writes down what was read first, a line for each file, in the order in which they were read. What the run before has
// learned stays when this one has read nothing.
func (p *prefetcher) keep() error {
	p.learning.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.reads) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, r := range p.reads {
		fmt.Fprintf(&b, "%d %d\n", r.ino, r.end)
	}
	return renameio.WriteFile(p.file(), b.Bytes(), 0o600, renameio.WithTempDir(p.m.config.Dir))
}

// learned is what the run before has kept.
func (p *prefetcher) learned() (reads []firstRead, err error) {
	b, err := os.ReadFile(p.file())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); err == nil && lines.Scan() && len(reads) < maxLearned; {
		var r firstRead
		if _, err = fmt.Sscanf(lines.Text(), "%d %d", &r.ino, &r.end); err == nil {
			reads = append(reads, r)
		}
	}
	return reads, err
}

// run fetches what is to be fetched ahead of everybody.
func (p *prefetcher) run() {
	var err error
	switch p.how {
	case PrefetchNone:
	case PrefetchLearned:
		var reads []firstRead
		reads, err = p.learned()
		for _, r := range reads {
			if err == nil {
				err = p.fetch(r.ino, r.end)
			}
		}
	default:
		if err = p.m.AwaitWhole(p.m.ctx); err == nil {
			err = p.walk(vfs.RootIno, "")
		}
	}
	if err != nil && !errors.Is(err, errFull) && p.m.ctx.Err() == nil {
		p.m.log.Warn("prefetch", "err", err)
	}
}

// errFull is for a prefetch that has got as much as it may.
var errFull = errors.New("enough is fetched")

// walk fetches the files below a directory that are to be fetched. path is the directory's, without a slash before it.
func (p *prefetcher) walk(dir vfs.Ino, path string) error {
	var dirs []vfs.Dirent
	var files []vfs.Ino
	err := p.m.ws.ReadDir(p.m.ctx, dir, 0, func(d vfs.Dirent) bool {
		switch {
		case d.Type == vfs.TypeDir:
			dirs = append(dirs, d)
		case d.Type == vfs.TypeRegular && p.wants(path+d.Name):
			files = append(files, d.Ino)
		}
		return true
	})
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNotExist) {
		return nil // it has just been removed
	}
	for _, ino := range files {
		if err == nil {
			err = p.fetch(ino, vfs.MaxFileSize)
		}
	}
	for _, d := range dirs {
		if err == nil {
			err = p.walk(d.Ino, path+d.Name+"/")
		}
	}
	return err
}

func (p *prefetcher) wants(path string) bool {
	return p.how == PrefetchAll || doublestar.MatchUnvalidated(p.how, path)
}

// fetch fetches what is not here of the first bytes of a file, piece by piece, whenever nobody else waits for something. What cannot
// be had now is waited for; a file that is gone is left out.
func (p *prefetcher) fetch(ino vfs.Ino, n uint64) error {
	ids, err := p.m.replica.Absent(p.m.ctx, ino, 0, n)
	if err != nil {
		return p.m.closed()
	}
	for len(ids) > 0 {
		some := ids[:min(len(ids), prefetchBatch)]
		if p.left -= int64(len(some)) * chunk.AvgSize; p.left < 0 {
			return errFull
		}
		if err := p.m.fetcher.fetchIdly(p.m.ctx, some); errors.Is(err, vfs.ErrInterrupted) {
			p.left += int64(len(some)) * chunk.AvgSize
			if err := p.m.closed(); err != nil {
				return err
			}
			p.m.pause(retryLast)
			continue
		}
		ids = ids[len(some):] // with another error they are not to be had
	}
	return nil
}

// closed returns an error when the mirror is closed.
func (m *Mirror) closed() error {
	if m.ctx.Err() != nil {
		return vfs.ErrClosed
	}
	return nil
}

// prefetchAlways is both that a prefetcher does.
func (m *Mirror) prefetchAlways() {
	if m.prefetch.how == PrefetchNone {
		return
	}
	m.group.Go(m.prefetch.learn)
	m.prefetch.run()
}
