package pack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Read returns the chunk at loc in stored form: in dst's memory when that has room for loc.Len bytes, otherwise new. It
// is for whoever hands the chunk on, so the plain bytes are verified against id. What is not a whole frame with that
// chunk wraps [chunk.ErrCorrupt] in a [CorruptError]. A pack that has been removed gives ErrNoPack.
func (s *Set) Read(dst []byte, loc Loc, id chunk.ID) (codec chunk.Codec, plainLen int, stored []byte, err error) {
	h, stored, err := s.read(dst, loc, id, nil)
	if err == nil {
		buf := frames.Get().(*[maxFrame]byte)
		defer frames.Put(buf)
		_, err = decode(buf[:0], h, stored, loc, true)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read %s: %w", id, err)
	}
	return h.Codec, int(h.PlainLen), stored, nil
}

// ReadChunk returns the plain bytes of the chunk at loc, verified against id: in dst's memory when that has room,
// otherwise new. The errors are those of Read.
func (s *Set) ReadChunk(dst []byte, loc Loc, id chunk.ID) ([]byte, error) {
	return s.readPlain(dst, loc, id, true, nil)
}

// ReadPlain is ReadChunk for reading a file: the frame's checksum is verified, and the plain bytes are not hashed.
// wait, if not nil, is called before the read waits for the disk, and not at all when it need not.
func (s *Set) ReadPlain(dst []byte, loc Loc, id chunk.ID, wait func()) ([]byte, error) {
	return s.readPlain(dst, loc, id, false, wait)
}

func (s *Set) readPlain(dst []byte, loc Loc, id chunk.ID, hash bool, wait func()) ([]byte, error) {
	buf := frames.Get().(*[maxFrame]byte)
	defer frames.Put(buf)
	h, stored, err := s.read(buf[:], loc, id, wait)
	if err == nil {
		dst, err = decode(dst, h, stored, loc, hash)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return dst, nil
}

// frames holds memory for a frame, whatever its length.
var frames = sync.Pool{New: func() any { return new([maxFrame]byte) }}

// read returns a frame whose checksum is right, in dst's memory when that has room.
func (s *Set) read(dst []byte, loc Loc, id chunk.ID, wait func()) (Header, []byte, error) {
	if !loc.valid() {
		return Header{}, nil, loc.corrupt("no frame has %d bytes there", loc.Len)
	}
	frame := slices.Grow(dst[:0], int(loc.Len))[:loc.Len]
	nonce, err := s.fillFrame(loc, wait, frame)
	if err != nil {
		return Header{}, nil, err
	}
	h, payload, what := s.decodeFrame(nonce, frame)
	if what == "" {
		what = h.isChunk(id)
	}
	if what != "" {
		return Header{}, nil, loc.corrupt("%s", what)
	}
	return h, payload, nil
}

// decode returns the plain bytes of a frame that was read from loc.
func decode(dst []byte, h Header, stored []byte, loc Loc, hash bool) ([]byte, error) {
	plain, err := chunk.Decode(dst, h.Codec, stored, int(h.PlainLen))
	if err == nil && hash {
		err = chunk.Verify(h.ID, plain)
	}
	if err != nil {
		return nil, loc.corrupt("%v", err)
	}
	return plain, nil
}

// ReadRaw fills p with the bytes from off on of the chunk at loc, whose frame must be raw by its length ([Loc.Raw]) and
// have so many. They are read to where they belong, with one system call. Unless known says that this has been done
// before, the whole frame is read and its checksum verified. wait and the errors are those of ReadPlain; after an error
// p may hold anything.
func (s *Set) ReadRaw(p []byte, off int, loc Loc, id chunk.ID, known bool, wait func()) error {
	if !loc.valid() || off < 0 || off+len(p) > int(loc.Len)-frameHeader {
		return fmt.Errorf("read %s: %w", id, loc.corrupt("no raw chunk with bytes %d to %d", off, off+len(p)))
	}
	var err error
	if known {
		err = s.readPart(p, off, loc, wait)
	} else {
		err = s.readRaw(p, off, loc, id, wait)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", id, err)
	}
	return nil
}

// readRaw reads a whole frame, with p in the place of its bytes.
func (s *Set) readRaw(p []byte, off int, loc Loc, id chunk.ID, wait func()) error {
	buf := frames.Get().(*[maxFrame]byte)
	defer frames.Put(buf)
	before, after := buf[:frameHeader+off], buf[frameHeader+off+len(p):loc.Len]
	nonce, err := s.fillFrame(loc, wait, before, p, after)
	if err != nil {
		return err
	}
	h, what := s.decodeParts(nonce, before[:frameHeader], before[frameHeader:], p, after)
	switch {
	case what != "":
	case h.Codec != chunk.Raw:
		what = h.Codec.String()
	default:
		what = h.isChunk(id)
	}
	if what != "" {
		return loc.corrupt("%s", what)
	}
	s.reveal(nonce, off, p)
	return nil
}

// fill fills parts with the bytes of the frame at loc, from skip on.
func (s *Set) fill(loc Loc, skip int, wait func(), parts ...[]byte) error {
	p, err := s.use(loc.Pack)
	if err != nil {
		return err
	}
	defer s.done(p)
	if err := s.opts.hook(OpRead); err != nil {
		return err
	}
	err = readParts(p.file, int64(loc.Off)+int64(skip), parts, wait)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return loc.corrupt("the file ends within %d bytes", loc.Len)
	}
	return err
}

// readParts fills parts with what is at off. What the operating system has in its cache it gives at once
// (RWF_NOWAIT); only before waiting for the rest is wait called, because handing a request over to another goroutine
// costs several times what such a read does. Where the filesystem cannot tell, every read counts as waiting.
func readParts(file *os.File, off int64, parts [][]byte, wait func()) error {
	fd, parts := int(file.Fd()), after(parts, 0)
	if wait != nil {
		n, _ := unix.Preadv2(fd, parts, off, unix.RWF_NOWAIT)
		n = max(n, 0)
		if parts, off = after(parts, n), off+int64(n); len(parts) == 0 {
			return nil
		}
		wait()
	}
	for len(parts) > 0 {
		n, err := unix.Preadv(fd, parts, off)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return &os.PathError{Op: "read", Path: file.Name(), Err: err}
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		parts, off = after(parts, n), off+int64(n)
	}
	return nil
}

// after returns what is left of parts when n bytes of them are done. It changes parts.
func after(parts [][]byte, n int) [][]byte {
	for len(parts) > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts = parts[1:]
	}
	if len(parts) > 0 {
		parts[0] = parts[0][n:]
	}
	return parts
}
