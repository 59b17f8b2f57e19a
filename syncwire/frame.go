package syncwire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// A frame is type:1 length:3 body. Every stream is a sequence of frames in each direction.
const headerLen = 4

// frameType says what is in a frame. The values are part of the protocol.
type frameType uint8

// message is the body of a frame.
type message interface {
	frame() frameType
	// fields names each field to the coder, in the order of the protocol.
	fields(c *coder)
}

// numbered is the beginning of every request and every answer: the number of the request.
type numbered struct{ Req uint64 }

func (n *numbered) number() *uint64 { return &n.Req }

// request is a message that begins with the number of a request.
type request interface {
	message
	number() *uint64
}

// appendFrame appends m as a frame to dst. It fails for a message that breaks a limit, and appends nothing.
func appendFrame(dst []byte, m message) ([]byte, error) {
	head, tail, err := appendHead(dst, m)
	return append(head, tail...), err
}

// appendHead is appendFrame without the bytes of a last field that may be long. They are returned, as they are in m.
func appendHead(dst []byte, m message) (head, tail []byte, err error) {
	start := len(dst)
	c := coder{mode: writing, b: append(dst, byte(m.frame()), 0, 0, 0)}
	m.fields(&c)
	n := len(c.b) - start - headerLen + len(c.tail)
	if n > maxFrame {
		c.fail("body", "%d bytes", n)
	}
	if c.err != nil {
		return dst, nil, fmt.Errorf("%v: %w", m.frame(), c.err)
	}
	putHeader(c.b[start:], m.frame(), n)
	return c.b, c.tail, nil
}

func putHeader(b []byte, t frameType, n int) {
	binary.BigEndian.PutUint32(b, uint32(t)<<24|uint32(n))
}

// decodeBody reads a message from the body of a frame. What follows its fields is skipped: a later version may say more.
// The message's blocks alias body.
func decodeBody(body []byte, m message) error {
	c := coder{mode: reading, b: body}
	m.fields(&c)
	if c.err != nil {
		return fmt.Errorf("%v: %w", m.frame(), c.err)
	}
	return nil
}

// frameReader takes the frames off a stream. It is used by one goroutine.
type frameReader struct {
	r   *bufio.Reader
	buf []byte
}

// readBuffer is enough for the control frames that come together; bulk is read past the buffer.
const readBuffer = 4 << 10

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBuffer)}
}

// newUnbufferedReader reads no byte behind the frame that it returns.
func newUnbufferedReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(oneByteReader{r}, 16)}
}

// oneByteReader reads a byte at a time, so that a buffer on top of it holds none that nobody asked for.
type oneByteReader struct{ r io.Reader }

func (o oneByteReader) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// next returns the next frame; its body is good until the next call. It fails before it reads a body of more than max
// bytes. The error is io.EOF only when the stream ends between frames.
func (f *frameReader) next(max int) (frameType, []byte, error) {
	head, err := f.r.Peek(headerLen)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	word := binary.BigEndian.Uint32(head)
	f.r.Discard(headerLen)
	t, n := frameType(word>>24), int(word&(1<<24-1))
	if n > max {
		return t, nil, fmt.Errorf("%v of %d bytes, at most %d: %w", t, n, max, ErrProtocol)
	}
	err = f.fill(n)
	return t, f.buf, err
}

// growStep is how much memory is taken for a body before its bytes have come.
const growStep = 64 << 10

// fill reads n bytes into buf. Memory grows as they arrive: who only says that much will come gets little.
func (f *frameReader) fill(n int) error {
	if cap(f.buf) > growStep && n <= growStep {
		f.buf = nil // one large frame must not be paid for ever
	}
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		have := len(f.buf)
		step := min(n-have, max(have, growStep))
		if cap(f.buf) < have+step {
			f.buf = append(make([]byte, 0, have+step), f.buf...)
		}
		f.buf = f.buf[:have+step]
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}
