package transfer

import (
	"archive/tar"
	"context"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TarSink writes a PAX stream (pax(1)), in which all metadata fits: nanoseconds, long names, large numbers, attributes.
// A file with holes is written in GNU's sparse format 1.0, which GNU tar, bsdtar and archive/tar read.
type TarSink struct {
	w    io.Writer
	tar  *tar.Writer
	warn func(string)
	buf  []byte
}

// NewTarSink returns a sink that writes to w. warn, which may be nil, hears of sockets: no tar can hold one.
func NewTarSink(w io.Writer, warn func(text string)) *TarSink {
	if warn == nil {
		warn = func(string) {}
	}
	return &TarSink{w: w, tar: tar.NewWriter(w), warn: warn, buf: make([]byte, pieceSize)}
}

// Put implements [Sink].
func (s *TarSink) Put(ctx context.Context, e *Entry, content Content) error {
	if e.Type == vfs.TypeSocket {
		s.warn(fmt.Sprintf("%q: a socket does not fit a tar stream and is left out", e.Path))
		return nil
	}
	if err := s.put(ctx, e, content); err != nil {
		return fmt.Errorf("write %q: %w", e.Path, err)
	}
	return nil
}

func (s *TarSink) put(ctx context.Context, e *Entry, content Content) error {
	if content == nil {
		return s.tar.WriteHeader(tarHeader(e))
	}
	runs, exact, err := content.Runs(ctx)
	if err != nil {
		return err
	}
	if exact && !whole(runs, e.Size) {
		return s.putSparse(ctx, e, runs, content)
	}
	if err := s.tar.WriteHeader(tarHeader(e)); err != nil {
		return err
	}
	return s.bytes(ctx, content, e.Size, s.tar)
}

// whole reports whether there are no holes.
func whole(runs []Run, size uint64) bool {
	off := uint64(0)
	for _, r := range runs {
		if r.Off != off {
			return false
		}
		off += r.N
	}
	return off == size
}

func (s *TarSink) bytes(ctx context.Context, content io.Reader, n uint64, to io.Writer) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := s.buf[:min(n, uint64(len(s.buf)))]
		if _, err := io.ReadFull(content, p); err != nil {
			return readError(err)
		}
		if _, err := to.Write(p); err != nil {
			return err
		}
		n -= uint64(len(p))
	}
	return nil
}

func tarHeader(e *Entry) *tar.Header {
	h := &tar.Header{
		Format: tar.FormatPAX, Name: e.Path, Mode: int64(e.Mode), Uid: int(e.UID), Gid: int(e.GID),
		ModTime: e.Mtime.Go(), AccessTime: e.Atime.Go(),
	}
	switch {
	case e.Link != "":
		return &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeLink, Name: e.Path, Linkname: e.Link}
	case e.Type == vfs.TypeRegular:
		h.Typeflag, h.Size = tar.TypeReg, int64(e.Size)
	case e.Type == vfs.TypeDir:
		h.Typeflag, h.Name = tar.TypeDir, e.Path+"/"
		if e.Path == "" {
			h.Name = "./"
		}
	case e.Type == vfs.TypeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
	case e.Type == vfs.TypeFIFO:
		h.Typeflag = tar.TypeFifo
	case e.Type == vfs.TypeCharDev, e.Type == vfs.TypeBlockDev:
		h.Typeflag = tar.TypeChar
		if e.Type == vfs.TypeBlockDev {
			h.Typeflag = tar.TypeBlock
		}
		h.Devmajor, h.Devminor = int64(unix.Major(uint64(e.Rdev))), int64(unix.Minor(uint64(e.Rdev)))
	}
	for _, x := range e.Xattrs {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords[tarXattr+xattrKeyEncoder.Replace(x.Name)] = string(x.Value)
	}
	return h
}

// Finish implements [Sink]: it writes the end mark. The caller closes what is below.
func (s *TarSink) Finish(context.Context) error { return s.tar.Close() }
