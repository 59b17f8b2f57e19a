package shell

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// fdRdev is the device number of /dev/fd/0; those of the others follow.
const fdRdev uint32 = 250 << 20

// openDevice is a device that a file of this shell leads to.
type openDevice struct {
	stream
	ctx context.Context
}

func (d *openDevice) Read(b []byte) (int, error) {
	if d.read == nil {
		return 0, treepath.ErrBadFile
	}
	return d.read(d.ctx, b)
}

func (d *openDevice) Write(b []byte) (int, error) {
	if d.write == nil {
		return 0, treepath.ErrBadFile
	}
	return d.write(d.ctx, b)
}

func (d *openDevice) Close() error {
	if d.close == nil {
		return nil
	}
	return d.close()
}

// device opens what is no file for treepath.FS.
func (sh *shell) device(ctx context.Context, _ string, a vfs.Attr, flag treepath.Flag) (treepath.Device, error) {
	switch {
	case a.Type == vfs.TypeFIFO:
		s, err := sh.openFIFO(ctx, a.Ino, flag)
		return &openDevice{s, ctx}, err
	case a.Type == vfs.TypeCharDev && a.Rdev >= fdRdev:
		d := sh.fds.get(int(a.Rdev - fdRdev))
		if d == nil {
			return nil, vfs.ErrNotExist
		}
		d.retain()
		s := d.stream
		s.close = d.release
		return &openDevice{s, ctx}, nil
	case a.Type == vfs.TypeCharDev:
		s, ok := sh.charDevice(a.Rdev)
		if ok {
			return &openDevice{s, ctx}, nil
		}
	}
	return nil, vfs.ErrNotSupported
}

func nothing(context.Context, []byte) (int, error)     { return 0, io.EOF }
func swallow(_ context.Context, b []byte) (int, error) { return len(b), nil }

func (sh *shell) charDevice(rdev uint32) (stream, bool) {
	zeros := func(ctx context.Context, b []byte) (int, error) {
		clear(b)
		return len(b), ctx.Err()
	}
	switch rdev {
	case 1<<8 | 3:
		return stream{read: nothing, write: swallow}, true
	case 1<<8 | 5:
		return stream{read: zeros, write: swallow}, true
	case 1<<8 | 7:
		return stream{read: zeros, write: func(context.Context, []byte) (int, error) { return 0, vfs.ErrNoSpace }}, true
	case 1<<8 | 8, 1<<8 | 9:
		rng := rand.New(rand.NewPCG(sh.randomUint64(), 3))
		return stream{write: swallow, read: func(ctx context.Context, b []byte) (int, error) {
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			return len(b), ctx.Err()
		}}, true
	}
	return stream{}, false
}

// fifos are the named pipes that are open, by inode.
type fifos struct {
	mu   sync.Mutex // guards open
	open map[vfs.Ino]*fifo
}

// fifo is a named pipe while somebody has it open. An open waits for one of the other end.
type fifo struct {
	p       *pipe
	users   int
	readers chan struct{} // closed when there has been one
	writers chan struct{}
	hadR    bool
	hadW    bool
}

func (sh *shell) openFIFO(ctx context.Context, ino vfs.Ino, flag treepath.Flag) (stream, error) {
	t := &sh.view.fifos
	t.mu.Lock()
	if t.open == nil {
		t.open = make(map[vfs.Ino]*fifo)
	}
	f := t.open[ino]
	if f == nil {
		f = &fifo{p: newPipe(), readers: make(chan struct{}), writers: make(chan struct{})}
		f.p.addEnds(-1, -1)
		t.open[ino] = f
	}
	f.users++
	reads, writes := truthInt(flag&treepath.Read != 0), truthInt(flag&treepath.Write != 0)
	f.p.addEnds(reads, writes)
	if reads > 0 && !f.hadR {
		f.hadR = true
		close(f.readers)
	}
	if writes > 0 && !f.hadW {
		f.hadW = true
		close(f.writers)
	}
	t.mu.Unlock()
	closeEnd := func() error {
		f.p.addEnds(-reads, -writes)
		t.mu.Lock()
		defer t.mu.Unlock()
		if f.users--; f.users == 0 {
			delete(t.open, ino)
		}
		return nil
	}
	other := f.writers
	if writes > 0 {
		other = f.readers
	}
	if reads == 0 || writes == 0 {
		select {
		case <-other:
		case <-sh.ctx.Done():
			_ = closeEnd()
			return stream{}, vfs.ErrInterrupted
		}
	}
	s := stream{close: closeEnd, ready: f.p.ready}
	if reads > 0 {
		s.read = f.p.read
	}
	if writes > 0 {
		s.write = f.p.write
	}
	return s, nil
}

func truthInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
