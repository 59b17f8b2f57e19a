package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// PutStream makes a regular file of all bytes of r, of which nobody knows before how many there are. e.Size is not
// read. What is there under the name is replaced when r has ended without an error.
func (s *TreeSink) PutStream(ctx context.Context, e *Entry, r io.Reader) error {
	dirPath, name := parent(e.Path)
	dir, err := s.dir(ctx, dirPath)
	if err == nil {
		err = s.place(ctx, dir, name, func(name string) error { return s.stream(ctx, e, r, dir, name) })
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", e.Path, err)
	}
	return nil
}

func (s *TreeSink) stream(ctx context.Context, e *Entry, r io.Reader, dir vfs.Ino, name string) error {
	a, err := s.tree.Create(ctx, dir, name, vfs.NewNode{Mode: e.Mode, UID: e.UID, GID: e.GID})
	if err != nil {
		return err
	}
	if err := s.pour(ctx, r, a.Ino); err != nil {
		return errors.Join(err, s.remove(dir, name))
	}
	return nil
}

func (s *TreeSink) pour(ctx context.Context, r io.Reader, ino vfs.Ino) error {
	for off := uint64(0); ; {
		n, err := io.ReadFull(r, s.buf)
		if n > 0 {
			if err := s.tree.WriteAt(ctx, ino, s.buf[:n], off, false); err != nil {
				return err
			}
			off += uint64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
