package execd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// inbox is the standard input of what runs in this process: a pipe of which each end can be left. Its reader is for one
// goroutine at a time.
type inbox struct {
	rest []byte // the reader's
	more chan []byte
	gone <-chan struct{} // closed when nothing is read any more

	closing sync.Once
	eof     chan struct{}
}

func newInbox(first []byte, open bool, gone <-chan struct{}) *inbox {
	b := &inbox{rest: first, more: make(chan []byte), gone: gone, eof: make(chan struct{})}
	if !open {
		b.end()
	}
	return b
}

// Read implements io.Reader: ErrInterrupted when the run is being ended.
func (b *inbox) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		select {
		case b.rest = <-b.more:
		case <-b.eof:
			return 0, io.EOF
		case <-b.gone:
			return 0, fmt.Errorf("read standard input: %w", vfs.ErrInterrupted)
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// give waits until the reader has taken p, all of it or nothing.
func (b *inbox) give(ctx context.Context, p []byte) (n int, err error) {
	select {
	case <-b.eof:
	case <-b.gone:
	case b.more <- bytes.Clone(p):
		return len(p), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	return 0, fmt.Errorf("input: %w", vfs.ErrClosed)
}

func (b *inbox) end() { b.closing.Do(func() { close(b.eof) }) }
