package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ErrTruncated says that a tar stream ends before its end mark: what came after is missing, and nobody knows what it
// was.
var ErrTruncated = errors.New("the tar stream ends too early")

// ErrNotTar says that a stream is no tar stream.
var ErrNotTar = errors.New("not a tar stream")

// TarSource reads a tar stream in any of the formats of archive/tar: PAX, GNU, USTAR, V7. Owners are taken by number.
type TarSource struct {
	Reader io.Reader
	Warn   func(text string) // hears of what cannot be kept; may be nil
}

const tarXattr = "SCHILY.xattr." // the PAX key of an extended attribute, as GNU tar and star write it

// Walk implements [Source]. ErrTruncated and ErrNotTar tell what is wrong with the stream as a whole.
func (s *TarSource) Walk(ctx context.Context, visit func(*Entry, Content) error) error {
	tap := &tarTap{r: s.Reader}
	r := tar.NewReader(tap)
	last := ""
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tap.end()
		}
		if err != nil {
			return tap.explain(err, last)
		}
		last = h.Name
		if err := s.entry(h, r, visit); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return tap.explain(io.ErrUnexpectedEOF, last)
			}
			return err
		}
	}
}

func (s *TarSource) entry(h *tar.Header, r *tar.Reader, visit func(*Entry, Content) error) error {
	e, err := entryOfHeader(h)
	if err != nil {
		return fmt.Errorf("tar entry %q: %w", h.Name, err)
	}
	if e == nil {
		if h.Typeflag != tar.TypeXGlobalHeader && s.Warn != nil {
			s.Warn(fmt.Sprintf("%q: entries of type %q are not known and left out", h.Name, h.Typeflag))
		}
		return nil
	}
	if e.Type != vfs.TypeRegular || e.Link != "" {
		return visit(e, nil)
	}
	return visit(e, &tarContent{Reader: r, size: e.Size, sparse: isSparse(h)})
}

// entryOfHeader returns nil for what is no node.
func entryOfHeader(h *tar.Header) (*Entry, error) {
	path, err := clean(h.Name)
	if err != nil {
		return nil, err
	}
	e := &Entry{Path: path, Mode: uint32(h.Mode) & vfs.ModeMask, Mtime: vfs.TimeOf(h.ModTime),
		Atime: vfs.TimeOf(h.ModTime)}
	if !h.AccessTime.IsZero() {
		e.Atime = vfs.TimeOf(h.AccessTime)
	}
	if h.Uid < 0 || h.Uid > math.MaxUint32 || h.Gid < 0 || h.Gid > math.MaxUint32 {
		return nil, fmt.Errorf("owner %d:%d: %w", h.Uid, h.Gid, vfs.ErrInvalid)
	}
	e.UID, e.GID = uint32(h.Uid), uint32(h.Gid)
	switch h.Typeflag {
	case tar.TypeReg, '\x00', tar.TypeCont, tar.TypeGNUSparse:
		e.Type, e.Size = vfs.TypeRegular, uint64(h.Size)
	case tar.TypeLink:
		e.Type = vfs.TypeRegular
		if e.Link, err = clean(h.Linkname); err == nil && e.Link == "" {
			err = vfs.ErrInvalid
		}
	case tar.TypeDir:
		e.Type = vfs.TypeDir
	case tar.TypeSymlink:
		e.Type, e.Target = vfs.TypeSymlink, h.Linkname
	case tar.TypeFifo:
		e.Type = vfs.TypeFIFO
	case tar.TypeChar, tar.TypeBlock:
		err = device(e, h)
	default:
		return nil, nil
	}
	if err == nil && path == "" && e.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	if err == nil {
		err = tarXattrs(e, h)
	}
	return e, err
}

// device takes a device's numbers, of which the kernel has 12 and 20 bits.
func device(e *Entry, h *tar.Header) error {
	e.Type = vfs.TypeCharDev
	if h.Typeflag == tar.TypeBlock {
		e.Type = vfs.TypeBlockDev
	}
	if h.Devmajor < 0 || h.Devmajor >= 1<<12 || h.Devminor < 0 || h.Devminor >= 1<<20 {
		return fmt.Errorf("device %d:%d: %w", h.Devmajor, h.Devminor, vfs.ErrInvalid)
	}
	e.Rdev = uint32(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor)))
	return nil
}

// GNU tar's way to put what PAX keys cannot hold into them.
var (
	xattrKeyEncoder = strings.NewReplacer("%", "%25", "=", "%3D")
	xattrKeyDecoder = strings.NewReplacer("%25", "%", "%3D", "=")
)

func tarXattrs(e *Entry, h *tar.Header) error {
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, tarXattr)
		if name = xattrKeyDecoder.Replace(name); !ok || !keptXattr(name) {
			continue
		}
		if len(name) > vfs.MaxXattrName || len(value) > vfs.MaxXattrSize {
			return fmt.Errorf("attribute %q of %d bytes: %w", name, len(value), vfs.ErrXattrTooBig)
		}
		e.Xattrs = append(e.Xattrs, Xattr{name, []byte(value)})
	}
	return nil
}

func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// tarContent is a file of a stream. archive/tar gives the holes of a sparse one as zeros.
type tarContent struct {
	io.Reader
	size   uint64
	sparse bool
}

func (c *tarContent) Runs(context.Context) ([]Run, bool, error) {
	if c.size == 0 {
		return nil, true, nil
	}
	return []Run{{0, c.size}}, !c.sparse, nil
}

const tarBlock = 512

// tarTap sees what archive/tar reads. That package takes the end of the input after any entry for the end of the
// archive; the tap knows whether the end mark, a block of zeros, was there.
type tarTap struct {
	r     io.Reader
	first [6]byte
	n     uint64 // bytes read
	tail  [tarBlock]byte
}

func (t *tarTap) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if t.n < uint64(len(t.first)) {
		copy(t.first[t.n:], p[:n])
	}
	t.n += uint64(n)
	if n >= tarBlock {
		copy(t.tail[:], p[n-tarBlock:n])
	} else if n > 0 {
		copy(t.tail[:], t.tail[n:])
		copy(t.tail[tarBlock-n:], p[:n])
	}
	return n, err
}

// end checks the end mark and reads the padding after it, so that the writer of a pipe is not killed.
func (t *tarTap) end() error {
	if t.n == 0 {
		return fmt.Errorf("%w: it is empty", ErrTruncated)
	}
	if !bytes.Equal(t.tail[:], zeros[:tarBlock]) {
		return fmt.Errorf("%w: its end mark is missing after %d bytes", ErrTruncated, t.n)
	}
	_, err := io.Copy(io.Discard, t.r)
	return err
}

func (t *tarTap) explain(err error, last string) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && last == "" && t.n < tarBlock:
		return fmt.Errorf("%w: it has %d bytes", ErrNotTar, t.n)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: after %d bytes, at or after %q: %w", ErrTruncated, t.n, last, err)
	case last == "" && errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("%w%s", ErrNotTar, t.compressed())
	}
	return fmt.Errorf("read the tar stream after %q: %w", last, err)
}

// compressed says what to do about a stream that is compressed.
func (t *tarTap) compressed() string {
	for _, c := range []struct{ magic, program string }{
		{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"},
	} {
		if bytes.HasPrefix(t.first[:], []byte(c.magic)) {
			return fmt.Sprintf(": it is compressed; unpack it on the way: %s -dc FILE | carrel import - WORKSPACE", c.program)
		}
	}
	return ""
}
