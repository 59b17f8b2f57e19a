package mirror

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// library is a workspace of files whose bytes are in chunks.
func library(l *lab) (texts map[string]string) {
	w := on(l.t, l.ws)
	texts = make(map[string]string)
	w.mkdir("/src")
	for i, path := range []string{"/src/a.go", "/src/b.py", "/c.go", "/d.bin"} {
		texts[path] = text(uint64(20+i), 1_500_000)
		w.write(path, texts[path])
	}
	l.commit()
	return texts
}

// holds reports whether all bytes of a file are here.
func (n *node) holds(path string) bool {
	ids, err := n.replica.Absent(context.Background(), on(n.lab.t, n.Tree()).ino(path), 0, vfs.MaxFileSize)
	return err == nil && len(ids) == 0
}

func (n *node) awaitBytes(paths ...string) {
	for _, path := range paths {
		for !n.holds(path) {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestPrefetch(t *testing.T) {
	for how, want := range map[string][]string{
		PrefetchAll: {"/src/a.go", "/src/b.py", "/c.go", "/d.bin"}, "**/*.go": {"/src/a.go", "/c.go"}, "src/*": {"/src/a.go", "/src/b.py"},
		PrefetchNone: nil, PrefetchLearned: nil,
	} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, 0)
			texts := library(l)
			n := l.join(func(c *Config) { c.Prefetch = how })
			n.awaitBytes(want...)
			n.sync()
			n.wire.cut()
			for path := range texts {
				wanted := false
				for _, w := range want {
					wanted = wanted || w == path
				}
				if n.holds(path) != wanted {
					t.Errorf("%s is here: %t", path, !wanted)
				}
			}
		})
	}
	if _, err := Open(t.Context(), Config{Dir: t.TempDir(), Peer: &spy{}, Prefetch: "["}); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// What a run has read first the next one fetches before it is read, as far as it was read.
func TestPrefetchOfWhatWasReadFirst(t *testing.T) {
	l := newLab(t, 0)
	texts := library(l)
	n := l.join()
	on(t, n.Tree()).want("/src/b.py", texts["/src/b.py"])
	if _, err := n.Tree().ReadAt(t.Context(), on(t, n.Tree()).ino("/c.go"), make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	reads := filepath.Join(n.config.Dir, "reads")
	n.leave()
	n.config.Dir = filepath.Join(l.dir, "anew")
	run(t, "mkdir %[2]s && cp %[1]s %[2]s/", reads, n.config.Dir)
	n.start()
	n.awaitBytes("/src/b.py")
	n.sync()
	if n.holds("/d.bin") || n.holds("/c.go") {
		t.Error("more was fetched than had been read")
	}
}

// Nothing is prefetched while somebody waits for bytes.
func TestPrefetchComesLast(t *testing.T) {
	l := newLab(t, 0)
	library(l)
	n := l.join()
	n.sync()
	done := n.fetcher.idle.busy()
	again := n.fetcher.idle.busy()
	fetched := make(chan error, 1)
	p := newPrefetcher(n.Mirror)
	ino := on(t, n.Tree()).ino("/d.bin")
	go func() { fetched <- p.fetch(ino, vfs.MaxFileSize) }()
	again()
	select {
	case err := <-fetched:
		t.Errorf("it was fetched: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if n.holds("/d.bin") {
		t.Error("it is here")
	}
	done()
	if err := <-fetched; err != nil || !n.holds("/d.bin") {
		t.Errorf("it is not here: %v", err)
	}
}

// A prefetch leaves room in the cache for what is read.
func TestPrefetchIsBounded(t *testing.T) {
	l := newLab(t, 0)
	library(l)
	n := l.join(func(c *Config) { c.CacheBytes, c.Prefetch = 4<<20, PrefetchNone })
	n.sync()
	p := newPrefetcher(n.Mirror)
	p.how = PrefetchAll
	if err := p.walk(vfs.RootIno, ""); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	if st, err := n.Status(t.Context()); err != nil || st.FetchedB == 0 || st.FetchedB > 4<<20 {
		t.Errorf("%d bytes, %v", st.FetchedB, err)
	}
}
