package archive

import (
	"errors"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// errDictionary says that a stream wants more memory than it gets.
var errDictionary = errors.New("memory usage limit reached")

// xzGuard passes a stream of xz through, and ends it before the header of a block whose dictionary is larger than a bound:
// the decoder takes what a header says, up to 4 GiB. It follows the structure of the stream, as section 2 of the .xz file
// format has it, and needs no memory but that of a block's header:
//
//	stream  header, blocks, index, footer; padding in fours of zeros
//	block   header, chunks of LZMA2, padding to four, check
//	index   0, number of records, records of two numbers, padding to four, CRC32
//
// From where a stream breaks these rules the decoder reports it, and the guard looks no further.
type xzGuard struct {
	r     io.Reader
	max   int64
	take  func(int64) error
	taken int64
	err   error // what ended the stream, when it was not the stream

	skip   int64                // bytes to pass before the next part
	part   []byte               // what there is of it
	want   int                  // its length
	next   func(*xzGuard) error // what looks at it
	check  int64                // length of the checks in this stream
	size   int64                // of the chunks of this block, of the index
	count  uint64               // numbers still to come in the index
	inside bool                 // a stream has begun and not ended
}

func newXZGuard(r io.Reader, limit int64, take func(int64) error) *xzGuard {
	g := &xzGuard{r: r, max: limit, take: take}
	g.expect(4, (*xzGuard).streamOrPadding)
	return g
}

// expect makes the next n bytes a part, which f looks at.
func (g *xzGuard) expect(n int, f func(*xzGuard) error) { g.part, g.want, g.next = g.part[:0], n, f }

// Read implements io.Reader.
func (g *xzGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	for rest := p[:n]; len(rest) > 0 && g.next != nil; {
		if skipped := min(g.skip, int64(len(rest))); skipped > 0 {
			g.skip -= skipped
			rest = rest[skipped:]
			continue
		}
		taken := min(g.want-len(g.part), len(rest))
		g.part = append(g.part, rest[:taken]...)
		rest = rest[taken:]
		if len(g.part) < g.want {
			continue
		}
		if g.err = g.next(g); g.err != nil {
			return 0, g.err
		}
	}
	switch {
	case errors.Is(err, io.EOF) && (g.inside || g.skip > 0 || len(g.part) > 0):
		err = io.ErrUnexpectedEOF // which the decoder does not notice where a block could begin
	case err != nil && !errors.Is(err, io.EOF):
		g.err = err
	}
	return n, err
}

// blame says what an error of the decoder is about: where nothing else went wrong, the stream breaks the rules.
func (g *xzGuard) blame(err error) error {
	switch {
	case g.err != nil:
		return g.err
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return errXZ
}

func (g *xzGuard) streamOrPadding() error {
	if string(g.part) != "\x00\x00\x00\x00" {
		g.inside = true
		g.expect(8, (*xzGuard).streamHeader)
	} else {
		g.expect(4, (*xzGuard).streamOrPadding)
	}
	return nil
}

// streamHeader looks at the second part of a stream's header: two bytes of magic, two of flags, CRC32.
func (g *xzGuard) streamHeader() error {
	if kind := g.part[3] & 0xf; kind == 0 {
		g.check = 0
	} else {
		g.check = 4 << ((kind - 1) / 3) // 4, 8, 16, 32, 64 for three kinds each
	}
	g.expect(1, (*xzGuard).blockOrIndex)
	return nil
}

func (g *xzGuard) blockOrIndex() error {
	if g.part[0] != 0 {
		g.expect(int(g.part[0])*4+3, (*xzGuard).blockHeader)
		return nil
	}
	g.size, g.count = 1, 0
	g.expect(1, (*xzGuard).indexCount)
	return nil
}

// blockHeader looks at a block's header but for its first byte: flags, sizes that may be there, filters.
func (g *xzGuard) blockHeader() error {
	h := g.part
	flags := h[0]
	h = h[1:]
	for _, has := range []byte{0x40, 0x80} {
		if flags&has != 0 {
			_, h = xzNumber(h)
		}
	}
	for range flags&3 + 1 {
		var id, length uint64
		id, h = xzNumber(h)
		length, h = xzNumber(h)
		if length > uint64(len(h)) {
			g.next = nil // the decoder sees it too
			return nil
		}
		const lzma2 = 0x21
		if id == lzma2 && length == 1 {
			if err := g.dictionary(h[0]); err != nil {
				return err
			}
		}
		h = h[length:]
	}
	g.size = 0
	g.expect(1, (*xzGuard).chunk)
	return nil
}

func (g *xzGuard) dictionary(code byte) error {
	n, err := lzma.DecodeDictCap(code)
	switch {
	case err != nil:
		return nil // the decoder sees it too
	case n > g.max:
		return errDictionary
	case n > g.taken:
		more := n - g.taken
		g.taken = n
		return g.take(more)
	}
	return nil
}

// xzNumber reads a number of seven bits a byte, the low ones first, and returns what follows.
func xzNumber(b []byte) (n uint64, rest []byte) {
	for i, c := range b {
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 || i == 8 {
			return n, b[i+1:]
		}
	}
	return n, nil
}

// chunk looks at the first byte of a chunk of LZMA2.
func (g *xzGuard) chunk() error {
	g.size++
	switch control := g.part[0]; {
	case control == 0: // the end of the block
		g.skip = -g.size&3 + g.check
		g.expect(1, (*xzGuard).blockOrIndex)
	case control <= 2:
		g.expect(2, (*xzGuard).plainChunk)
	case control >= 0xc0: // with a byte of properties
		g.expect(5, (*xzGuard).packedChunk)
	case control >= 0x80:
		g.expect(4, (*xzGuard).packedChunk)
	default:
		g.next = nil
	}
	return nil
}

func (g *xzGuard) plainChunk() error { return g.chunkOf(g.part) }

// packedChunk looks at the lengths of a chunk before and after packing.
func (g *xzGuard) packedChunk() error { return g.chunkOf(g.part[2:]) }

// chunkOf passes a chunk whose length, less one, is in the two bytes.
func (g *xzGuard) chunkOf(length []byte) error {
	g.skip = int64(length[0])<<8 + int64(length[1]) + 1
	g.size += int64(len(g.part)) + g.skip
	g.expect(1, (*xzGuard).chunk)
	return nil
}

func (g *xzGuard) indexCount() error {
	if g.number(); g.part[0] >= 0x80 {
		g.expect(1, (*xzGuard).indexCount)
		return nil
	}
	g.count *= 2
	return g.index()
}

// number adds a byte to the count.
func (g *xzGuard) number() {
	g.count |= uint64(g.part[0]&0x7f) << min(7*(g.size-1), 63)
	g.size++
}

// index passes the records, each of two numbers, and all that follows to the end of the stream.
func (g *xzGuard) index() error {
	if g.count > 0 {
		g.expect(1, (*xzGuard).indexNumber)
		return nil
	}
	const crc, footer = 4, 12
	g.inside = false
	g.skip = -g.size&3 + crc + footer
	g.expect(4, (*xzGuard).streamOrPadding)
	return nil
}

func (g *xzGuard) indexNumber() error {
	if g.size++; g.part[0] < 0x80 {
		g.count--
	}
	return g.index()
}
