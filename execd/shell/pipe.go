package shell

import (
	"context"
	"io"
	"sync"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// pipeSize is how many bytes a pipe holds before a writer waits: that of Linux (pipe(7)).
const pipeSize = 64 << 10

// pipe is a pipe(7) in memory: a ring of bytes between any number of readers and writers. Both block, and both return
// when the context of whoever waits ends.
type pipe struct {
	mu      sync.Mutex // guards what follows
	changed sync.Cond
	buf     []byte // grows to pipeSize as it is needed
	start   int
	length  int
	readers int // open read ends
	writers int
}

func newPipe() *pipe {
	p := &pipe{readers: 1, writers: 1}
	p.changed.L = &p.mu
	return p
}

// waitLocked waits for a change, or returns the context's error.
func (p *pipe) waitLocked(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})
	p.changed.Wait()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (p *pipe) read(ctx context.Context, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	for p.length == 0 {
		if p.writers == 0 {
			return 0, io.EOF
		}
		if err := p.waitLocked(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.buf[p.start:min(p.start+p.length, len(p.buf))])
	p.start, p.length = (p.start+n)%len(p.buf), p.length-n
	p.changed.Broadcast()
	return n, nil
}

func (p *pipe) write(ctx context.Context, b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		if p.readers == 0 {
			return n, command.ErrPipe
		}
		if p.length == pipeSize {
			if err := p.waitLocked(ctx); err != nil {
				return n, err
			}
			continue
		}
		k := p.putLocked(b)
		n, b = n+k, b[k:]
		p.changed.Broadcast()
	}
	return n, nil
}

// putLocked copies what fits.
func (p *pipe) putLocked(b []byte) int {
	if free := len(p.buf) - p.length; free < len(b) && len(p.buf) < pipeSize {
		p.growLocked(p.length + len(b))
	}
	n := 0
	for n < len(b) && p.length < len(p.buf) {
		end := (p.start + p.length) % len(p.buf)
		to := p.buf[end:]
		if end < p.start {
			to = p.buf[end:p.start]
		}
		k := copy(to, b[n:])
		n, p.length = n+k, p.length+k
	}
	return n
}

func (p *pipe) growLocked(want int) {
	size := max(512, len(p.buf))
	for size < want && size < pipeSize {
		size *= 2
	}
	buf := make([]byte, size)
	n := copy(buf, p.buf[p.start:min(p.start+p.length, len(p.buf))])
	copy(buf[n:], p.buf[:p.length-n])
	p.buf, p.start = buf, 0
}

// ready reports whether a read would not wait.
func (p *pipe) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.length > 0 || p.writers == 0
}

func (p *pipe) addEnds(readers, writers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers += readers
	p.writers += writers
	p.changed.Broadcast()
}
