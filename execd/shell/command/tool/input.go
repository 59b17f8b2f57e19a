package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// blockSize is how much is read at once.
const blockSize = 64 << 10

// Input is something that a command reads, with its bytes counted.
type Input struct {
	ctx  context.Context
	call *Call
	r    io.Reader
	c    io.Closer // nil for what is not ours to close
}

// Open opens a file for reading; "-" is Stdin.
func (c *Call) Open(ctx context.Context, name string) (*Input, error) {
	if name == "-" {
		return c.Standard(ctx), nil
	}
	f, err := c.FS.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Input{ctx, c, f, f}, nil
}

// Standard returns Stdin as an Input.
func (c *Call) Standard(ctx context.Context) *Input { return &Input{ctx: ctx, call: c, r: c.Stdin} }

// Count makes an Input of any reader.
func (c *Call) Count(ctx context.Context, r io.Reader) *Input { return &Input{ctx: ctx, call: c, r: r} }

// Read implements io.Reader.
func (in *Input) Read(p []byte) (int, error) {
	if in.r == nil {
		return 0, io.EOF
	}
	n, err := in.r.Read(p)
	if stop := in.call.Step(in.ctx, 1+n>>10); stop != nil {
		return 0, stop
	}
	return n, err
}

// Close closes what Open opened.
func (in *Input) Close() error {
	if in.c == nil {
		return nil
	}
	return in.c.Close()
}

// Each opens the files in turn, Stdin when there are none, and calls f. What goes wrong with one file is said, and the
// next one follows.
func (c *Call) Each(ctx context.Context, names []string, f func(name string, in *Input) error) error {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		in, err := c.Open(ctx, name)
		about := name
		if err == nil {
			err = f(name, in)
			_ = in.Close() // it was only read
		} else if c.Opening != "" {
			about = fmt.Sprintf(c.Opening, name)
		}
		if err != nil {
			if err = c.FaultAt(ctx, about, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadAll reads the rest of in, counting the memory.
func (c *Call) ReadAll(in io.Reader) ([]byte, error) {
	var b bytes.Buffer
	for {
		if err := c.Take(blockSize); err != nil {
			return nil, err
		}
		n, err := io.CopyN(&b, in, blockSize)
		if errors.Is(err, io.EOF) || err == nil && n < blockSize {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// ReadFile reads a whole file, counting the memory; "-" is Stdin.
func (c *Call) ReadFile(ctx context.Context, name string) ([]byte, error) {
	in, err := c.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return c.ReadAll(in)
}

// IsDir says whether an error is that a file is a directory.
func IsDir(err error) bool { return errors.Is(err, vfs.ErrIsDir) }

// Concat returns the files one after another as one stream, Stdin when there are none. Faults are said as it meets them.
func (c *Call) Concat(ctx context.Context, names []string) io.Reader {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return &concat{ctx: ctx, call: c, names: names}
}

type concat struct {
	ctx   context.Context
	call  *Call
	names []string
	open  *Input
}

// Read implements io.Reader.
func (r *concat) Read(p []byte) (int, error) {
	for {
		if r.open == nil {
			if len(r.names) == 0 {
				return 0, io.EOF
			}
			in, err := r.call.Open(r.ctx, r.names[0])
			if err != nil {
				if err = r.next(err); err != nil {
					return 0, err
				}
				continue
			}
			r.open = in
		}
		n, err := r.open.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			err = r.next(err)
		} else if err != nil {
			err = r.next(nil)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next goes on to the following file, saying what ended the present one.
func (r *concat) next(err error) error {
	if err != nil {
		err = r.call.FaultAt(r.ctx, r.names[0], err)
	}
	if r.open != nil {
		_ = r.open.Close()
		r.open = nil
	}
	r.names = r.names[1:]
	return err
}
