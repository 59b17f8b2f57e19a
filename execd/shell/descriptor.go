package shell

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// stream is what a description moves its bytes with. Either function may be nil.
type stream struct {
	read  func(ctx context.Context, b []byte) (int, error)
	write func(ctx context.Context, b []byte) (int, error)
	seek  func(offset int64, whence int) (int64, error)
	ready func() bool // whether a read would not wait; nil for always
	close func() error
}

// description is an open file description: what descriptors of one or several shells lead to. It is safe for concurrent
// use as far as its stream is, and closed when the last descriptor is.
type description struct {
	stream
	refs atomic.Int32
	name string // what was opened, for messages and /proc-like listings
}

func newDescription(name string, s stream) *description {
	d := &description{stream: s, name: name}
	d.refs.Store(1)
	return d
}

func (d *description) retain() *description {
	d.refs.Add(1)
	return d
}

func (d *description) release() error {
	if d.refs.Add(-1) > 0 || d.stream.close == nil {
		return nil
	}
	return d.stream.close()
}

func pipeEnds() (r, w *description, p *pipe) {
	p = newPipe()
	r = newDescription("pipe:", stream{
		read: p.read, ready: p.ready,
		close: func() error { p.addEnds(-1, 0); return nil },
	})
	w = newDescription("pipe:", stream{
		write: p.write,
		close: func() error { p.addEnds(0, -1); return nil },
	})
	return r, w, p
}

func fileDescription(f *treepath.File, flag treepath.Flag) *description {
	s := stream{close: f.Close, seek: f.Seek}
	if dev, ok := f.Device().(*openDevice); ok {
		s = dev.stream
		s.close = f.Close
	}
	if flag&treepath.Read == 0 {
		s.read = nil
	} else if s.read == nil {
		s.read = func(_ context.Context, b []byte) (int, error) { return f.Read(b) }
	}
	if flag&treepath.Write == 0 {
		s.write = nil
	} else if s.write == nil {
		s.write = func(_ context.Context, b []byte) (int, error) { return f.Write(b) }
	}
	return newDescription(f.Name(), s)
}

// stringDescription is a here-document: it reads text, from one offset whoever reads.
func stringDescription(text string) *description {
	var mu sync.Mutex
	r := bytes.NewReader([]byte(text))
	return newDescription("here-document", stream{
		read: func(_ context.Context, b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return r.Read(b)
		},
		seek: func(offset int64, whence int) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			return r.Seek(offset, whence)
		},
	})
}

// descriptors is the table of one shell, by number. Nil entries are closed.
type descriptors struct {
	open []*description
}

func (t *descriptors) get(n int) *description {
	if n < 0 || n >= len(t.open) {
		return nil
	}
	return t.open[n]
}

// put makes n lead to d, which may be nil, and returns what was there. It takes over the caller's reference and gives
// away the one of the old.
func (t *descriptors) put(n int, d *description) *description {
	for n >= len(t.open) {
		t.open = append(t.open, nil)
	}
	old := t.open[n]
	t.open[n] = d
	return old
}

// free returns the lowest closed number from min up.
func (t *descriptors) free(min int) int {
	for n := min; ; n++ {
		if t.get(n) == nil {
			return n
		}
	}
}

func (t *descriptors) clone() descriptors {
	open := make([]*description, len(t.open), len(t.open)+2)
	for i, d := range t.open {
		if d != nil {
			open[i] = d.retain()
		}
	}
	return descriptors{open}
}

func (t *descriptors) closeAll() {
	for i, d := range t.open {
		if d != nil {
			d.release()
			t.open[i] = nil
		}
	}
}

// end is a descriptor as a process has it: io.Reader, io.Writer and, for files, io.Seeker, under the context of the
// process. Without one that is open it gives ErrBadFile.
type end struct {
	ctx context.Context
	d   *description
}

func (e end) Read(b []byte) (int, error) {
	if e.d == nil || e.d.read == nil {
		return 0, treepath.ErrBadFile
	}
	return e.d.read(e.ctx, b)
}

func (e end) Write(b []byte) (int, error) {
	if e.d == nil || e.d.write == nil {
		return 0, treepath.ErrBadFile
	}
	return e.d.write(e.ctx, b)
}

func (e end) Seek(offset int64, whence int) (int64, error) {
	if e.d == nil || e.d.seek == nil {
		return 0, treepath.ErrSeek
	}
	return e.d.seek(offset, whence)
}

// IsPipe says whether the descriptor leads to a pipe of the script: rg reads one, and nothing else, without being told.
func (e end) IsPipe() bool { return e.d != nil && e.d.name == "pipe:" }

// outer is a stream of the Config's owner as a description: writes are counted and never interleave.
func outer(name string, r io.Reader, w io.Writer, meter *command.Meter) *description {
	var s stream
	if r != nil {
		s.read = func(ctx context.Context, b []byte) (int, error) {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			return r.Read(b)
		}
	}
	if w != nil {
		var mu sync.Mutex
		s.write = func(_ context.Context, b []byte) (int, error) {
			if err := meter.Output(len(b)); err != nil {
				return 0, err
			}
			mu.Lock()
			defer mu.Unlock()
			return w.Write(b)
		}
	}
	return newDescription(name, s)
}
