package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// ReadArgs says what of a file is to be read: lines, or bytes when Byte, Bytes or Base64 is set.
type ReadArgs struct {
	Path   string `json:"path" jsonschema:"the file"`
	Line   int    `json:"line,omitempty" jsonschema:"the first line, from 1"`
	Lines  int    `json:"lines,omitempty" jsonschema:"how many lines at most, 2000 when left out"`
	Byte   int64  `json:"byte,omitempty" jsonschema:"in place of line: the first byte, from 0"`
	Bytes  int    `json:"bytes,omitempty" jsonschema:"in place of lines: how many bytes at most"`
	Base64 bool   `json:"base64,omitempty" jsonschema:"give the bytes in base64, for files that are not text"`
}

// ReadResult is a part of a file: Text, or Data when it was asked for in base64 or is an image.
type ReadResult struct {
	Path  string `json:"path"`
	Size  uint64 `json:"size"` // of the whole file, bytes
	Text  string `json:"text,omitempty"`
	Data  []byte `json:"data,omitempty"`
	MIME  string `json:"mime,omitempty"`  // of Data
	Image bool   `json:"image,omitempty"` // Data is a whole image
	Line  int    `json:"line,omitempty"`  // of the first line in Text, when lines were asked for
	Lines int    `json:"lines,omitempty"` // how many are in Text, in whole or in part
	BOM   bool   `json:"bom,omitempty"`   // the file begins with a byte order mark, which is not in Text
	Lossy bool   `json:"lossy,omitempty"` // what is not UTF-8 is shown as U+FFFD
	// NextLine and NextByte say where the rest begins; both are zero at the end, and NextLine also in the middle of a line.
	NextLine int    `json:"next_line,omitempty"`
	NextByte uint64 `json:"next_byte,omitempty"`
}

// Read reads a part of a file. Images are returned whole. ErrBinary for what is not text, unless asked for in base64.
func (s *Set) Read(ctx context.Context, a ReadArgs) (*ReadResult, error) {
	if a.Line < 0 || a.Lines < 0 || a.Byte < 0 || a.Bytes < 0 || a.Line > 0 && a.Byte > 0 {
		return nil, fmt.Errorf("read %q: a place in it that there is not: %w", a.Path, vfs.ErrInvalid)
	}
	f, err := s.FS.Open(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	r := &reading{ReadArgs: a, file: f}
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	return &r.result, nil
}

// reading is one call of Read.
type reading struct {
	ReadArgs
	file   *treepath.File
	head   []byte // the first bytes of the file
	result ReadResult
}

func (r *reading) open() error {
	attr, err := r.file.Stat()
	if err != nil {
		return err
	}
	if attr.Type == vfs.TypeDir {
		return fmt.Errorf("read %q: use ls: %w", r.Path, vfs.ErrIsDir)
	}
	r.result.Path, r.result.Size = clean(r.Path), attr.Size
	r.head, err = r.part(0, sniffed)
	return err
}

func (r *reading) read() error {
	mime, image := imageType(r.head)
	bytesWanted := r.Byte > 0 || r.Bytes > 0
	switch {
	case image && !r.Base64 && !bytesWanted && r.Line == 0 && r.Lines == 0:
		return r.image(mime)
	case r.Base64:
		return r.base64(mime)
	case isBinary(r.head):
		return fmt.Errorf("read %q: %s of %d bytes, which can be read with base64: %w", r.Path, mime, r.result.Size, ErrBinary)
	case bytesWanted:
		return r.bytes()
	}
	return r.lines()
}

// part reads n bytes at an offset, or fewer at the end.
func (r *reading) part(off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	n, err := r.file.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

func (r *reading) image(mime string) (err error) {
	if r.result.Size > MaxImage {
		return fmt.Errorf("read %q: %s of %d bytes: %w", r.Path, mime, r.result.Size, vfs.ErrTooBig)
	}
	r.result.MIME, r.result.Image = mime, true
	r.result.Data, err = r.part(0, int(r.result.Size))
	return err
}

func (r *reading) base64(mime string) (err error) {
	n, err := within(r.Bytes, MaxRead, MaxRead)
	if err != nil {
		return err
	}
	r.result.MIME = mime
	r.result.Data, err = r.part(r.Byte, n)
	r.next(uint64(r.Byte) + uint64(len(r.result.Data)))
	return err
}

// next says where the rest begins.
func (r *reading) next(at uint64) {
	if at < r.result.Size {
		r.result.NextByte = at
	}
}

func (r *reading) bytes() error {
	n, err := within(r.Bytes, MaxRead, MaxRead)
	if err != nil {
		return err
	}
	b, err := r.part(r.Byte, max(n, 4)) // a character at least
	if err != nil {
		return err
	}
	r.text(uint64(r.Byte), wholeRunes(b))
	return nil
}

// lines skips to the first line and returns as many as fit. A line that does not fit alone is cut.
func (r *reading) lines() error {
	count, err := within(r.Lines, MaxReadLines, MaxReadLines)
	if err != nil {
		return err
	}
	first := max(r.Line, 1)
	off, err := r.lineAt(first)
	if err != nil {
		return err
	}
	b, err := r.part(int64(off), MaxRead)
	if err != nil {
		return err
	}
	b, whole := firstLines(b, count, off+uint64(len(b)) >= r.result.Size)
	r.text(off, b)
	r.result.Line = first
	if r.result.NextByte > 0 && whole {
		r.result.NextLine = first + r.result.Lines
	}
	return nil
}

// firstLines cuts b to whole lines, so many at most, or to whole characters when not one line is whole. atEnd says that
// the file ends with b.
func firstLines(b []byte, count int, atEnd bool) (lines []byte, whole bool) {
	end := 0
	for ; count > 0; count-- {
		i := bytes.IndexByte(b[end:], '\n')
		if i < 0 {
			break
		}
		end += i + 1
	}
	switch {
	case count > 0 && atEnd:
		return b, true
	case end == 0:
		return wholeRunes(b), false
	}
	return b[:end], true
}

// lineAt returns the offset of a line, by reading all that is before it.
func (r *reading) lineAt(line int) (uint64, error) {
	off, seen := uint64(0), 1
	buf := make([]byte, scanBuffer)
	for seen < line {
		n, err := r.file.ReadAt(buf, int64(off))
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == 0 {
			return 0, fmt.Errorf("read %q: it has no line %d, only %d: %w", r.Path, line, seen, vfs.ErrInvalid)
		}
		at, found := skipLines(buf[:n], line-seen)
		off, seen = off+uint64(at), seen+found
	}
	if off == r.result.Size && off > 0 {
		return 0, fmt.Errorf("read %q: it has no line %d, only %d: %w", r.Path, line, line-1, vfs.ErrInvalid)
	}
	return off, nil
}

// skipLines returns where b goes on after so many line feeds, or after all of it, and how many there were.
func skipLines(b []byte, count int) (at, found int) {
	for at < len(b) && found < count {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return len(b), found
		}
		at, found = at+i+1, found+1
	}
	return at, found
}

// text puts the bytes at an offset into the result.
func (r *reading) text(off uint64, b []byte) {
	r.next(off + uint64(len(b)))
	r.result.Lines = countLines(b)
	if rest, ok := bytes.CutPrefix(b, []byte(bom)); ok && off == 0 {
		r.result.BOM, b = true, rest
	}
	r.result.Text = readable(string(b))
	r.result.Lossy = r.result.Text != string(b)
}
