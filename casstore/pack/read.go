package pack

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Read returns the chunk at loc in stored form: in dst's memory when that has room for loc.Len bytes, otherwise new.
// Everything is checked but the SHA-256: what is not a whole frame with the chunk that id names wraps
// [chunk.ErrCorrupt] in a [CorruptError]. A pack that has been removed gives ErrNoPack.
func (s *Set) Read(dst []byte, loc Loc, id chunk.ID) (codec chunk.Codec, plainLen int, stored []byte, err error) {
	h, stored, err := s.read(dst, loc, id)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read %s: %w", id, err)
	}
	return h.Codec, int(h.PlainLen), stored, nil
}

func (s *Set) read(dst []byte, loc Loc, id chunk.ID) (Header, []byte, error) {
	if !loc.valid() {
		return Header{}, nil, loc.corrupt("no frame has %d bytes there", loc.Len)
	}
	p, err := s.use(loc.Pack)
	if err != nil {
		return Header{}, nil, err
	}
	defer s.done(p)
	if err := s.opts.hook(OpRead); err != nil {
		return Header{}, nil, err
	}
	frame := slices.Grow(dst[:0], int(loc.Len))[:loc.Len]
	if _, err := p.file.ReadAt(frame, int64(loc.Off)); err != nil {
		if errors.Is(err, io.EOF) {
			return Header{}, nil, loc.corrupt("the file ends within %d bytes", loc.Len)
		}
		return Header{}, nil, err
	}
	h, payload, what := decodeFrame(frame)
	switch {
	case what != "":
		return Header{}, nil, loc.corrupt("%s", what)
	case h.dead:
		return Header{}, nil, loc.corrupt("a dead frame")
	case h.ID != id:
		return Header{}, nil, loc.corrupt("chunk %s", h.ID)
	}
	return h, payload, nil
}

// frames holds memory for reading a frame, whatever its length.
var frames = sync.Pool{New: func() any { return new([maxFrame]byte) }}

// ReadChunk returns the plain bytes of the chunk at loc, verified against id: in dst's memory when that has room,
// otherwise new. The errors are those of Read.
func (s *Set) ReadChunk(dst []byte, loc Loc, id chunk.ID) ([]byte, error) {
	buf := frames.Get().(*[maxFrame]byte)
	defer frames.Put(buf)
	h, stored, err := s.read(buf[:], loc, id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	plain, err := chunk.Decode(dst, h.Codec, stored, int(h.PlainLen))
	if err == nil {
		err = chunk.Verify(id, plain)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id, loc.corrupt("%v", err))
	}
	return plain, nil
}
