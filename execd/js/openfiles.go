package js

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// maxOpen is how many files a module may have open: what a login has.
const maxOpen = 1024

// firstFD is the first descriptor that is none of the standard streams.
const firstFD = 3

// errTooManyOpen is for a module that opens more than maxOpen files.
var errTooManyOpen = fmt.Errorf("more than %d open files: %w", maxOpen, vfs.ErrBusy)

// openFiles are the files that a module has open, by their descriptors. They are for the goroutine that serves it.
type openFiles map[int64]*treepath.File

// openOps are what a module can do with them, by its names for that. The descriptor is in Number; an Offset below zero means
// the file's own.
var openOps = map[string]func(context.Context, *session, worker.Call) ([]byte, error){
	"open": openFile, "close": closeFile, "pread": readOpen, "pwrite": writeOpen, "fstat": statOpen, "ftruncate": truncateOpen,
	"fsync": syncOpen,
}

// add gives a file the lowest descriptor that is free (POSIX, 2.6).
func (o openFiles) add(f *treepath.File) int64 {
	fd := int64(firstFD)
	for ; o[fd] != nil; fd++ {
	}
	o[fd] = f
	return fd
}

func (o openFiles) file(fd int64) (*treepath.File, error) {
	if f := o[fd]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("descriptor %d: %w", fd, treepath.ErrBadFile)
}

// closeAll closes what the module has not. It has ended: nobody hears of errors.
func (o openFiles) closeAll() {
	for fd, f := range o {
		_ = f.Close()
		delete(o, fd)
	}
}

func openFile(ctx context.Context, s *session, c worker.Call) ([]byte, error) {
	if len(s.open) >= maxOpen {
		return nil, errTooManyOpen
	}
	f, err := open(ctx, s.fs, c, 0)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, s.open.add(f), 10), nil
}

func closeFile(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	if err != nil {
		return nil, err
	}
	delete(s.open, c.Number)
	return nil, f.Close()
}

func readOpen(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	if err != nil {
		return nil, err
	}
	if c.Size < 0 || c.Size > worker.MaxFile {
		return nil, vfs.ErrInvalid
	}
	b, n := make([]byte, c.Size), 0
	if c.Offset < 0 {
		n, err = f.Read(b)
	} else {
		n, err = f.ReadAt(b, c.Offset)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

func writeOpen(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	switch {
	case err != nil:
	case c.Offset < 0:
		_, err = f.Write(c.Data)
	default:
		_, err = f.WriteAt(c.Data, c.Offset)
	}
	return nil, err
}

func statOpen(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	if err != nil {
		return nil, err
	}
	return attr(f.Stat())
}

func truncateOpen(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	switch {
	case err != nil:
	case c.Offset < 0:
		err = vfs.ErrInvalid
	default:
		err = f.Truncate(uint64(c.Offset))
	}
	return nil, err
}

func syncOpen(_ context.Context, s *session, c worker.Call) ([]byte, error) {
	f, err := s.open.file(c.Number)
	if err == nil {
		err = f.Sync()
	}
	return nil, err
}
