package syncwire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Frame is a frame that was taken apart, for tools that show traffic, and for tests that hold another implementation
// against this one.
type Frame struct {
	message message
	size    int
}

// DecodeFrame takes the first frame of b apart as a receiver does. The error wraps io.ErrUnexpectedEOF when b ends before
// the frame does, vfs.ErrNotSupported for a type that version 1 does not have, and ErrProtocol for what breaks the
// protocol. The frame holds nothing of b.
func DecodeFrame(b []byte) (Frame, error) {
	typ, body, err := newFrameReader(bytes.NewReader(b)).next(maxFrame)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return Frame{}, fmt.Errorf("decode frame: %w", err)
	}
	empty, ok := messages[typ]
	if !ok {
		return Frame{}, fmt.Errorf("decode frame: %v: %w", typ, vfs.ErrNotSupported)
	}
	f := Frame{message: empty(), size: headerLen + len(body)}
	if err := decodeBody(body, f.message); err != nil {
		return Frame{}, fmt.Errorf("decode frame: %w", err)
	}
	return f, nil
}

// Type returns what PROTOCOL.md calls the frame.
func (f Frame) Type() string { return f.message.frame().String() }

// Size returns how many bytes the frame has taken, header and fields of later versions among them.
func (f Frame) Size() int { return f.size }

// Fields returns the fields in words, one in a line, as the examples of PROTOCOL.md have them.
func (f Frame) Fields() string { return inWords(f.message) }

// Append appends the frame to dst as this package sends it. It is what was decoded, but for fields of later versions.
func (f Frame) Append(dst []byte) ([]byte, error) { return appendFrame(dst, f.message) }

func inWords(m message) string {
	c := coder{mode: wording}
	m.fields(&c)
	return string(c.b)
}
