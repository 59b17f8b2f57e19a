package execd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// readAll reads from after to the end, without waiting for anything.
func readAll(t *testing.T, l *Log, after uint64) []Event {
	t.Helper()
	r := l.Attach(after, false)
	defer r.Close()
	var all []Event
	for {
		e, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("after %d events: %v", len(all), err)
		}
		e.Data = bytes.Clone(e.Data)
		all = append(all, e)
	}
}

// A reader that begins anywhere sees every number once, as an event or in a gap, and the bytes that were written.
func TestResumeFromAnySeq(t *testing.T) {
	const events = 500
	l := newLog(t.TempDir(), 16<<10, seal{})
	text := func(i uint64) []byte { return fmt.Appendf(nil, "%d: %s", i, bytes.Repeat([]byte{'x'}, int(i*7%200))) }
	for i := range uint64(events - 1) {
		l.Write(Stream(1+i%2), text(i+1))
	}
	if err := l.end([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	for after := range uint64(events + 3) {
		want := after + 1
		for _, e := range readAll(t, l, after) {
			switch {
			case e.Stream == Gap && (e.First != want || e.Seq < e.First || e.Lost == 0):
				t.Fatalf("after %d: gap from %d to %d of %d bytes, want one from %d", after, e.First, e.Seq, e.Lost, want)
			case e.Stream != Gap && e.Seq != want:
				t.Fatalf("after %d: event %d, want %d", after, e.Seq, want)
			case e.Stream == Exited && e.Seq != events, e.Stream == Stdout && !bytes.Equal(e.Data, text(e.Seq)):
				t.Fatalf("after %d: event %d is %s %q", after, e.Seq, e.Stream, e.Data)
			}
			want = e.Seq + 1
		}
		if want != max(after, events)+1 {
			t.Fatalf("after %d: ended before %d, want %d", after, want, events+1)
		}
	}
}

// The beginning and the end are kept, within the size, and what is missing is told to the byte.
func TestLogKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	l := newLog(dir, 64<<10, seal{})
	const n, size = 3000, 100
	for range n {
		l.Write(Stdout, make([]byte, size))
	}
	if err := l.end([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, l, 0)
	if first, last := all[0], all[len(all)-1]; first.Seq != 1 || last.Stream != Exited || last.Offset != n*size {
		t.Errorf("from %d to %s at %d", first.Seq, last.Stream, last.Offset)
	}
	var gaps int
	var total uint64
	for _, e := range all {
		switch e.Stream {
		case Gap:
			gaps++
			total += e.Lost
		case Stdout:
			total += uint64(len(e.Data))
		}
	}
	if gaps != 1 || total != n*size {
		t.Errorf("%d gaps, %d bytes are told of, want 1 and %d", gaps, total, n*size)
	}
	var disk int64
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		disk += info.Size()
	}
	if disk > 65<<10 || disk < 48<<10 {
		t.Errorf("%d bytes on disk, want up to %d", disk, 64<<10)
	}
}

// A reader that holds loses nothing: the writer waits for it, and no longer than it is there.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t.TempDir(), 16<<10, seal{})
		held, fell := l.Attach(0, true), l.Attach(0, false)
		written := make(chan struct{})
		go func() {
			for range 1000 {
				l.Write(Stdout, make([]byte, 100))
			}
			close(written)
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Fatal("the writer did not wait for a reader that holds")
		default:
		}
		for seq := range uint64(500) {
			if e, err := held.Next(t.Context()); err != nil || e.Seq != seq+1 || e.Stream != Stdout {
				t.Fatalf("event %d is %s %d, %v", seq+1, e.Stream, e.Seq, err)
			}
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		<-written
		if err := errors.Join(l.end(nil), fell.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

// Many readers, which begin and end at any time, beside a writer: each sees what comes after where it began, in order.
func TestReadersBesideWriter(t *testing.T) {
	l := newLog(t.TempDir(), 32<<10, seal{})
	const readers = 8
	errs := make(chan error, readers)
	for i := range readers {
		r := l.Attach(0, i%2 == 0)
		go func() { errs <- follow(t.Context(), r, i%2 == 0) }()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		l.Write(Stdout, make([]byte, 1+rng.IntN(300)))
	}
	if err := l.end([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	for range readers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func follow(ctx context.Context, r *Reader, whole bool) error {
	var last uint64
	var end uint64
	for {
		e, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r.Close()
		}
		first := e.Seq
		if e.Stream == Gap {
			first = e.First
		}
		switch {
		case err != nil:
			return errors.Join(err, r.Close())
		case first != last+1, e.Offset != end, whole && e.Stream == Gap:
			return errors.Join(fmt.Errorf("%s %d to %d at %d after event %d at %d", e.Stream, first, e.Seq, e.Offset, last, end),
				r.Close())
		}
		last, end = e.Seq, e.end()
	}
}

// What cannot be written is missing, and said to be.
func TestLogOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	l := newLog(dir, 16<<10, seal{})
	l.Write(Stdout, []byte("before"))
	if err := l.file.Close(); err != nil { // every write fails from here on
		t.Fatal(err)
	}
	l.Write(Stdout, []byte("lost"))
	f, err := os.OpenFile(l.segs[0].path(dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.file = f
	l.Write(Stdout, []byte("after"))
	if err := l.end(nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range readAll(t, l, 0) {
		got = append(got, fmt.Sprintf("%d %s %q %d", e.Seq, e.Stream, e.Data, e.Lost))
	}
	want := `[1 stdout "before" 0 2 gap "" 4 3 stdout "after" 0 4 exit "" 0]`
	if fmt.Sprint(got) != want {
		t.Errorf("%v\nwant %s", got, want)
	}
	if _, _, lost := l.sizes(); lost != 4 {
		t.Errorf("lost %d", lost)
	}
}

// A log whose daemon died in the middle of an event is whole up to it, wherever that was.
func TestResumeLogTorn(t *testing.T) {
	dir := t.TempDir()
	l := newLog(dir, 1<<20, seal{})
	ends := []int64{0}
	for i := range 20 {
		l.Write(Stderr, bytes.Repeat([]byte{byte(i)}, i*3+1))
		ends = append(ends, l.segs[0].size)
	}
	path := l.segs[0].path(dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again, result, err := resumeLog(dir, 1<<20, seal{})
		if err != nil || result != nil {
			t.Fatal(result, err)
		}
		want := uint64(0)
		for want+1 < uint64(len(ends)) && ends[want+1] <= int64(cut) {
			want++
		}
		if last, _, _ := again.sizes(); last != want {
			t.Errorf("cut to %d bytes: %d events, want %d", cut, last, want)
		}
		if err := again.end([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		if all := readAll(t, again, want); len(all) != 1 || all[0].Stream != Exited {
			t.Errorf("cut to %d bytes: %v", cut, all)
		}
	}
}

// What is on disk and is not what was written is an error, not output.
func TestReadDamage(t *testing.T) {
	dir := t.TempDir()
	l := newLog(dir, 1<<20, seal{})
	l.Write(Stdout, []byte("hello"))
	if err := l.end(nil); err != nil {
		t.Fatal(err)
	}
	path := l.segs[0].path(dir)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 0x55
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		b[i] ^= 0x55
		r := l.Attach(0, false)
		var err error
		for err == nil {
			_, err = r.Next(t.Context())
		}
		if !errors.Is(err, vfs.ErrCorrupt) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
