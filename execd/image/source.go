package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// source has the files of an image.
type source interface {
	// Open opens one by its slash-separated name: vfs.ErrNotExist when there is none.
	Open(name string) (io.ReadCloser, error)
	Close() error
}

// open opens a layout directory or a tarball.
func open(name string) (source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, missing(err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, missing(err)
		}
		return directory{root}, nil
	}
	f, err := openRegular(os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0))
	if err != nil {
		return nil, err
	}
	t := &tarball{file: f, blobs: map[string]span{}, links: map[string]string{}}
	if err := t.index(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// openRegular is for what os.OpenFile returns. A FIFO must not have been waited for.
func openRegular(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file: %w", f.Name(), vfs.ErrInvalid)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", vfs.ErrNotExist, err)
	}
	return err
}

// directory is a layout. A symlink in it leads nowhere else.
type directory struct{ *os.Root }

func (d directory) Open(name string) (io.ReadCloser, error) {
	f, err := openRegular(d.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0))
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return f, nil
}

// tarball is an archive that is not compressed, whose files are read where they lie.
type tarball struct {
	file  *os.File
	blobs map[string]span
	links map[string]string // other names of blobs: docker save writes a layer that two images share once
}

type span struct{ offset, size int64 }

// index finds the files. Of those of one name the last counts, as for tar(1).
func (t *tarball) index() error {
	r := tar.NewReader(t.file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a tarball, which may not be compressed: %w: %w", vfs.ErrInvalid, err)
		}
		if len(h.Name) > maxBlobName || len(h.Linkname) > maxBlobName {
			continue
		}
		if len(t.blobs)+len(t.links) >= maxBlobs {
			return fmt.Errorf("a tarball of more than %d files: %w", maxBlobs, vfs.ErrTooBig)
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
		case tar.TypeSymlink:
			t.links[name] = path.Join(path.Dir(name), h.Linkname)
			continue
		case tar.TypeLink:
			t.links[name] = path.Clean(h.Linkname)
			continue
		default:
			continue
		}
		offset, err := t.file.Seek(0, io.SeekCurrent) // the reader reads headers whole and no further
		if err != nil {
			return err
		}
		delete(t.links, name)
		t.blobs[name] = span{offset, h.Size}
	}
}

func (t *tarball) Open(name string) (io.ReadCloser, error) {
	at := path.Clean(name)
	for range maxLinks {
		target, ok := t.links[at]
		if !ok {
			break
		}
		at = target
	}
	s, ok := t.blobs[at]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, vfs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.file, s.offset, s.size)), nil
}

func (t *tarball) Close() error { return t.file.Close() }

// readDocument reads a small file.
func readDocument(from source, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, maxDocument+1))
	if err == nil && n > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes: %w", name, maxDocument, vfs.ErrTooBig)
	}
	return b.Bytes(), errors.Join(err, f.Close())
}
