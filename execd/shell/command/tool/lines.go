package tool

import (
	"bytes"
	"errors"
	"io"
)

// Lines cuts a stream into lines. It holds one block, or one line when that is longer.
type Lines struct {
	call  *Call
	in    io.Reader
	delim byte
	buf   []byte
	start int // of what has not been returned
	end   int // of what has been read
	eof   bool
	err   error
	whole bool // the line that Next returned had its delimiter
}

// Lines returns the lines of in, which end with a newline.
func (c *Call) Lines(in io.Reader) *Lines { return c.Records(in, '\n') }

// Records returns the parts of in that end with delim.
func (c *Call) Records(in io.Reader, delim byte) *Lines {
	return &Lines{call: c, in: in, delim: delim, buf: make([]byte, blockSize)}
}

// Reset makes l cut another stream, with the buffer it has.
func (l *Lines) Reset(in io.Reader) {
	*l = Lines{call: l.call, in: in, delim: l.delim, buf: l.buf}
}

// Next returns the next line without its delimiter; it is good until the next call. False at the end and after an error.
func (l *Lines) Next() ([]byte, bool) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+searched:l.end], l.delim); i >= 0 {
			line := l.buf[l.start : l.start+searched+i]
			l.start += searched + i + 1
			l.whole = true
			return line, true
		}
		searched = l.end - l.start
		if l.eof || l.err != nil {
			return l.last()
		}
		l.fill()
	}
}

// last returns what follows the last delimiter.
func (l *Lines) last() ([]byte, bool) {
	line := l.buf[l.start:l.end]
	l.start, l.whole = l.end, false
	return line, len(line) > 0 && l.err == nil
}

// Block returns all whole lines that have been read, the last one of the stream even without its delimiter. It is good
// until the next call; nil at the end and after an error.
func (l *Lines) Block() []byte {
	searched := 0
	for {
		if i := bytes.LastIndexByte(l.buf[l.start+searched:l.end], l.delim); i >= 0 {
			block := l.buf[l.start : l.start+searched+i+1]
			l.start += searched + i + 1
			return block
		}
		searched = l.end - l.start
		if l.eof || l.err != nil {
			block, _ := l.last()
			if l.err != nil || len(block) == 0 {
				return nil
			}
			return block
		}
		l.fill()
	}
}

// fill reads more, making room first.
func (l *Lines) fill() {
	switch {
	case l.start > 0:
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	case l.end == len(l.buf):
		if l.err = l.call.Take(int64(len(l.buf))); l.err != nil {
			return
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n, err := l.in.Read(l.buf[l.end:])
	l.end += n
	if errors.Is(err, io.EOF) {
		l.eof = true
	} else {
		l.err = err
	}
}

// Whole says whether the line that Next returned last had its delimiter.
func (l *Lines) Whole() bool { return l.whole }

// Err returns what ended the lines other than the end of the stream.
func (l *Lines) Err() error { return l.err }

// Buffered returns what has been read from the stream and not been returned.
func (l *Lines) Buffered() []byte { return l.buf[l.start:l.end] }

// More says whether Next will return a line. It may make the line that Next returned last invalid.
func (l *Lines) More() bool {
	for l.start == l.end && !l.eof && l.err == nil {
		l.fill()
	}
	return l.start < l.end && l.err == nil
}
