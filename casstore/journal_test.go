package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// mortal is a store that can die: then nothing reaches the disk any more.
type mortal struct {
	t    *testing.T
	dir  string
	dead *atomic.Bool
	s    *Store
	w    *Workspace
}

func newMortal(t *testing.T) *mortal {
	m := &mortal{t: t, dir: t.TempDir()}
	m.open()
	return m
}

func (m *mortal) open() {
	m.t.Helper()
	dead := new(atomic.Bool)
	m.dead = dead
	var err error
	m.s, err = Open(m.dir, Options{Create: true, CommitEvery: time.Hour, packSize: 8 << 20, hook: func(string) error {
		if dead.Load() {
			return errCrash
		}
		return nil
	}})
	if err != nil {
		m.t.Fatal(err)
	}
	m.w = openWorkspace(m.t, m.s, "ws")
}

// crash dies, and opens the store again.
func (m *mortal) crash() {
	m.t.Helper()
	m.dead.Store(true)
	_ = m.s.Close() // it cannot commit
	m.open()
}

// end checks the store and closes it.
func (m *mortal) end() {
	m.t.Helper()
	checkStore(m.t, m.s)
	m.must(m.s.Close())
}

func (m *mortal) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *mortal) create(name string) vfs.Ino {
	m.t.Helper()
	a, err := m.w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	m.must(err)
	return a.Ino
}

func (m *mortal) write(ino vfs.Ino, off int, p []byte) {
	m.t.Helper()
	m.must(m.w.WriteAt(bg, ino, p, uint64(off), false))
}

func (m *mortal) read(ino vfs.Ino) []byte {
	m.t.Helper()
	a, err := m.w.Stat(bg, ino)
	m.must(err)
	p := make([]byte, a.Size)
	n, err := m.w.ReadAt(bg, ino, p, 0)
	m.must(err)
	return p[:n]
}

func (m *mortal) fsync(ino vfs.Ino) { m.t.Helper(); m.must(m.w.Fsync(bg, ino)) }

func (m *mortal) chunkBytes() uint64 {
	m.t.Helper()
	s, err := m.s.Stats(bg)
	m.must(err)
	return s.ChunkBytes
}

// entries counts the records of the journal.
func (m *mortal) entries() (n int) {
	m.t.Helper()
	r := m.s.reader()
	defer r.Close()
	m.must(r.scan([]byte{keyJournal}, nil, true, func(_, value []byte) (bool, error) {
		n++
		_, err := decodeEntry(value)
		return true, err
	}))
	return n
}

func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// TestJournal: small fsyncs write no chunks, and are there after a crash, with size and time.
func TestJournal(t *testing.T) {
	m := newMortal(t)
	ino := m.create("f")
	want := noise(1, 300<<10)
	m.write(ino, 0, want)
	_, err := m.w.Commit(bg)
	m.must(err)
	stored := m.chunkBytes()
	for i := range 50 {
		p := noise(uint64(i), 100)
		m.write(ino, len(want), p)
		want = append(want, p...)
		m.write(ino, 1000*i, p)
		copy(want[1000*i:], p)
		m.fsync(ino)
	}
	if now := m.chunkBytes(); now != stored {
		t.Errorf("small fsyncs have stored %d bytes of chunks", now-stored)
	}
	if n := m.entries(); n != 150 {
		t.Errorf("%d entries, want a layer and two extents for each fsync", n)
	}
	before, err := m.w.Stat(bg, ino)
	m.must(err)
	for range 2 { // the second time from what was replayed, and not committed
		m.crash()
		after, err := m.w.Stat(bg, ino)
		m.must(err)
		if after.Blocks = before.Blocks; !reflect.DeepEqual(before, after) {
			t.Errorf("before the crash %+v, after it %+v", before, after)
		}
		if !bytes.Equal(m.read(ino), want) {
			t.Fatal("the bytes are others")
		}
	}
	m.write(ino, 5, []byte("new"))
	copy(want[5:], "new")
	m.fsync(ino)
	m.crash()
	if !bytes.Equal(m.read(ino), want) {
		t.Fatal("after a replay and another fsync the bytes are others")
	}
	_, err = m.w.Commit(bg)
	m.must(err)
	if n := m.entries(); n > 0 {
		t.Errorf("%d entries are left after a commit", n)
	}
	m.crash()
	if !bytes.Equal(m.read(ino), want) {
		t.Error("after a commit the bytes are others")
	}
	m.end()
}

// TestJournalIsPruned by whatever brings the bytes into chunks, or makes them useless.
func TestJournalIsPruned(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(m *mortal, ino vfs.Ino)
		gone bool
	}{
		"commit":          {func(m *mortal, _ vfs.Ino) { _, err := m.w.Commit(bg); m.must(err) }, false},
		"large fsync":     {func(m *mortal, ino vfs.Ino) { m.write(ino, 0, noise(3, journalMost+1)); m.fsync(ino) }, false},
		"many fsyncs":     {fillJournal, false},
		"flush, fsync":    {func(m *mortal, _ vfs.Ino) { m.s.flusher.flushDirty(); m.fsync(vfs.RootIno) }, false},
		"rename over":     {renameOver, false},
		"tiny fsyncs":     {fillLayers, false},
		"truncate, fsync": {truncateSmall, false},
		"unlink": {func(m *mortal, _ vfs.Ino) {
			m.must(m.w.Unlink(bg, vfs.RootIno, "f"))
			m.fsync(vfs.RootIno)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMortal(t)
			ino := m.create("f")
			m.write(ino, 0, noise(1, 10<<10))
			m.fsync(ino)
			if m.entries() == 0 {
				t.Fatal("no entries")
			}
			c.do(m, ino)
			if n := m.entries(); n > 0 {
				t.Errorf("%d entries are left", n)
			}
			if c.gone {
				m.end()
				return
			}
			want := m.read(ino)
			m.crash()
			if !bytes.Equal(m.read(ino), want) {
				t.Error("the bytes are others")
			}
			m.end()
		})
	}
}

// fillJournal ends with the fsync that finds the journal full.
func fillJournal(m *mortal, ino vfs.Ino) {
	for i := 0; m.entries() > 0; i++ {
		m.write(ino, i*journalMost/2, noise(uint64(i), journalMost/2))
		m.fsync(ino)
		if i > 4*journalTotal/journalMost {
			m.t.Fatal("the journal has no end")
		}
	}
}

// fillLayers ends with the fsync that finds as many layers as there may be.
func fillLayers(m *mortal, ino vfs.Ino) {
	for i := range journalLayers {
		m.write(ino, i, []byte{byte(i)})
		m.fsync(ino)
	}
}

func renameOver(m *mortal, _ vfs.Ino) {
	m.create("old")
	m.must(m.w.Rename(bg, vfs.RootIno, "f", vfs.RootIno, "old", 0))
	m.fsync(vfs.RootIno)
}

func truncateSmall(m *mortal, ino vfs.Ino) {
	_, err := m.w.SetAttr(bg, ino, vfs.AttrSet{Mask: vfs.SetSize, Size: 100})
	m.must(err)
	m.fsync(ino)
}

// TestJournalUnderLaterBytes: what was written after an fsync, and has come into chunks by itself, is not undone by it.
func TestJournalUnderLaterBytes(t *testing.T) {
	m := newMortal(t)
	ino := m.create("f")
	m.write(ino, 0, noise(1, 50<<10))
	m.fsync(ino)
	want := noise(2, 50<<10)
	m.write(ino, 0, want)
	m.s.flusher.flushDirty()
	m.fsync(m.create("other"))
	m.crash()
	if got := m.read(ino); !bytes.Equal(got, want) {
		t.Error("an older fsync has come back")
	}
	m.end()
}

// TestJournalTorn ends an fsync before each of its steps: then the one before counts.
func TestJournalTorn(t *testing.T) {
	for n := 0; ; n++ {
		dir := t.TempDir()
		m := &mortal{t: t, dir: dir}
		m.open()
		ino := m.create("f")
		first := noise(1, 20<<10)
		m.write(ino, 0, first)
		m.fsync(ino)
		m.dead.Store(true)
		_ = m.s.Close()
		hook, crashed := crashAt(n)
		s, err := Open(dir, Options{CommitEvery: time.Hour, hook: hook})
		m.must(err)
		w := openWorkspace(t, s, "ws")
		second := noise(2, 20<<10)
		m.must(w.WriteAt(bg, ino, second, 0, false))
		err = w.Fsync(bg, ino)
		if (err != nil) != crashed() || err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", n, err)
		}
		want := second
		if crashed() {
			want = first
		}
		survived := !crashed()
		_ = s.Close()
		m.open()
		if !bytes.Equal(m.read(ino), want) {
			t.Fatalf("step %d: the bytes are others", n)
		}
		m.end()
		if survived {
			return
		}
	}
}

// TestJournalUnderRandomWork compares files with what was last fsynced, over many crashes.
func TestJournalUnderRandomWork(t *testing.T) {
	seed := vfstest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	m := newMortal(t)
	type state struct {
		ino      vfs.Ino
		now      []byte
		unsynced bool // since the last fsync
	}
	files := make([]*state, 4)
	for i := range files {
		files[i] = &state{ino: m.create(fmt.Sprint("f", i))}
		m.fsync(files[i].ino)
	}
	for step := range 3000 {
		f := files[r.IntN(len(files))]
		switch r.IntN(20) {
		case 0:
			size := r.IntN(len(f.now) + 20<<10)
			_, err := m.w.SetAttr(bg, f.ino, vfs.AttrSet{Mask: vfs.SetSize, Size: uint64(size)})
			m.must(err)
			f.now = append(f.now[:min(size, len(f.now)):min(size, len(f.now))], make([]byte, max(0, size-len(f.now)))...)
			f.unsynced = true
		case 1:
			if len(f.now) == 0 {
				continue
			}
			off := r.IntN(len(f.now))
			n := 1 + r.IntN(len(f.now)-off)
			m.must(m.w.Allocate(bg, f.ino, vfs.AllocPunchHole|vfs.AllocKeepSize, uint64(off), uint64(n)))
			clear(f.now[off : off+n])
			f.unsynced = true
		case 2:
			m.s.flusher.flushDirty()
		case 3:
			if r.IntN(4) == 0 {
				_, err := m.w.Commit(bg)
				m.must(err)
				for _, f := range files {
					f.unsynced = false
				}
			}
		case 4:
			if r.IntN(4) > 0 {
				continue
			}
			m.crash()
			for i, f := range files {
				got := m.read(f.ino)
				if !f.unsynced && !bytes.Equal(got, f.now) {
					t.Fatalf("seed %d, step %d: file %d is not as it was fsynced", seed, step, i)
				}
				f.now = got
			}
		case 5, 6, 7, 8, 9, 10:
			m.fsync(f.ino)
			f.unsynced = false
		default:
			off := r.IntN(len(f.now) + 1<<10)
			p := noise(uint64(step), 1+r.IntN(int(math.Pow(2, float64(r.IntN(17))))))
			m.write(f.ino, off, p)
			if grow := off + len(p) - len(f.now); grow > 0 {
				f.now = append(f.now, make([]byte, grow)...)
			}
			copy(f.now[off:], p)
			f.unsynced = true
		}
		if step%100 == 0 {
			for i, f := range files {
				if !bytes.Equal(m.read(f.ino), f.now) {
					t.Fatalf("seed %d, step %d: file %d reads wrong", seed, step, i)
				}
			}
		}
	}
	m.end()
}

func TestJournalEntries(t *testing.T) {
	for _, e := range []journalEntry{
		{kind: entryLayer, cut: math.MaxUint64, size: 5, mtime: -1},
		{kind: entryLayer, cut: 0, size: vfs.MaxFileSize, mtime: math.MaxInt64},
		{kind: entryData, off: 300, n: 2, data: []byte{1, 2}},
		{kind: entryZeros, off: 1, n: vfs.MaxFileSize - 1},
	} {
		got, err := decodeEntry(e.encode())
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v is decoded as %+v, %v", e, got, err)
		}
	}
	for _, b := range [][]byte{
		{}, {0}, {9, 1}, {1, 1, 1}, {1, 0x80, 0x00, 1, 1}, {2}, {2, 5}, {2, 0x80}, {3, 1, 0}, {3, 1, 1, 1},
		journalEntry{kind: entryZeros, off: 1, n: vfs.MaxFileSize}.encode(),
		journalEntry{kind: entryData, off: vfs.MaxFileSize, data: []byte{1}}.encode(),
	} {
		if e, err := decodeEntry(b); !errors.Is(err, vfs.ErrCorrupt) {
			t.Errorf("%x is decoded as %+v, %v", b, e, err)
		}
	}
}

// TestJournalFlush: what many small fsyncs have put into the journal is stored once, not once for each.
func TestJournalFlush(t *testing.T) {
	m := newMortal(t)
	ino := m.create("log")
	want := noise(1, 1<<20)
	m.write(ino, 0, want)
	_, err := m.w.Commit(bg)
	m.must(err)
	before := m.chunkBytes()
	for i := range uint64(journalLayers - 1) {
		line := noise(2+i, 100)
		m.write(ino, len(want), line)
		want = append(want, line...)
		m.fsync(ino)
	}
	if m.entries() == 0 {
		t.Fatal("the journal has nothing")
	}
	_, err = m.w.Commit(bg)
	m.must(err)
	if more := m.chunkBytes() - before; more > chunk.AvgSize {
		t.Errorf("%d bytes of chunks for %d of a file", more, len(want)-1<<20)
	}
	if n := m.entries(); n != 0 {
		t.Errorf("%d records of the journal are left", n)
	}
	m.crash()
	if !bytes.Equal(m.read(ino), want) {
		t.Error("the file reads otherwise")
	}
	m.end()
}
