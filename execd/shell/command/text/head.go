package text

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var headOptions = getopt.New("c:n:qvz", "bytes:=c", "lines:=n", "quiet=q", "silent=q", "verbose=v", "zero-terminated=z")

// end is what head and tail are asked for.
type end struct {
	n      int64
	bytes  bool
	other  bool // head: all but the last n; tail: from the n-th on
	delim  byte
	header int // 1 always, -1 never, 0 with more files than one
	follow bool
}

// obsolete rewrites head -5 and tail -5c as options.
func obsolete(args []string) []string {
	if len(args) < 2 || len(args[1]) < 2 || args[1][0] != '-' || args[1][1] < '0' || args[1][1] > '9' {
		return args
	}
	digits := strings.TrimRight(args[1][1:], "bcklqvzf")
	out := []string{args[0], "-n", digits}
	for _, letter := range args[1][1+len(digits):] {
		if letter == 'c' {
			out[1] = "-c"
		} else {
			out = append(out, "-"+string(letter))
		}
	}
	return append(out, args[2:]...)
}

func head(ctx context.Context, c *tool.Call) error {
	c.Args = obsolete(c.Args)
	options, files, err := c.Options(headOptions, 1)
	if err != nil {
		return err
	}
	e := end{n: 10, delim: '\n'}
	for _, o := range options {
		switch o.Name {
		case "c", "n":
			e.bytes = o.Name == "c"
			digits, minus := strings.CutPrefix(o.Value, "-")
			e.other = minus
			if e.n, err = endCount(c, e.bytes, digits); err != nil {
				return err
			}
		default:
			e.set(o.Name)
		}
	}
	c.Opening = "cannot open '%s' for reading"
	headings := &headings{Call: c, on: e.header > 0 || e.header == 0 && len(files) > 1}
	return c.Each(ctx, files, func(name string, in *tool.Input) error {
		headings.print(name)
		switch {
		case e.bytes && e.other:
			return butLastBytes(c, in, e.n)
		case e.bytes:
			_, err := io.CopyN(c.Out, in, e.n)
			return notEOF(err)
		case e.other:
			return butLastLines(c, in, e)
		}
		return firstLines(c, in, e)
	})
}

// endCount reads how many lines or bytes are asked for.
func endCount(c *tool.Call, bytes bool, text string) (int64, error) {
	return c.Number("invalid number of "+unitOf(bytes), text, tool.Bounds{High: math.MaxInt64, Suffixes: "bkKmMGTPEZY0"})
}

func (e *end) set(name string) {
	switch name {
	case "q":
		e.header = -1
	case "v":
		e.header = 1
	case "z":
		e.delim = 0
	case "f":
		e.follow = true
	}
}

func unitOf(bytes bool) string {
	if bytes {
		return "bytes"
	}
	return "lines"
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// headings prints which file's turn it is.
type headings struct {
	*tool.Call
	on   bool
	some bool
}

func (h *headings) print(name string) {
	if !h.on {
		return
	}
	if name == "-" {
		name = "standard input"
	}
	if h.some {
		fmt.Fprintln(h.Out)
	}
	h.some = true
	fmt.Fprintf(h.Out, "==> %s <==\n", name)
}

func firstLines(c *tool.Call, in io.Reader, e end) error {
	lines := c.Records(in, e.delim)
	for n := e.n; n > 0; n-- {
		line, ok := lines.Next()
		if !ok {
			return lines.Err()
		}
		if err := writeLine(c, line, e.delim, lines.Whole()); err != nil {
			return err
		}
	}
	return nil
}

func writeLine(c *tool.Call, line []byte, delim byte, whole bool) error {
	_, err := c.Out.Write(line)
	if whole {
		err = c.Out.WriteByte(delim)
	}
	return err
}

// butLastBytes holds back the last n bytes.
func butLastBytes(c *tool.Call, in io.Reader, n int64) error {
	if err := c.Take(n); err != nil {
		return err
	}
	var held []byte
	buf := make([]byte, 64<<10)
	for {
		got, err := in.Read(buf)
		held = append(held, buf[:got]...)
		if extra := int64(len(held)) - n; extra > 0 {
			if _, err := c.Out.Write(held[:extra]); err != nil {
				return err
			}
			held = append(held[:0], held[extra:]...)
		}
		if err != nil {
			return notEOF(err)
		}
	}
}

// butLastLines holds back the last n lines.
func butLastLines(c *tool.Call, in io.Reader, e end) error {
	lines, held := c.Records(in, e.delim), &ring{call: c, size: e.n}
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		out, full, err := held.push(line, lines.Whole())
		if err != nil {
			return err
		}
		if full {
			if err := writeLine(c, out.text, e.delim, out.whole); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// ring is the last lines of a stream.
type ring struct {
	call  *tool.Call
	size  int64
	lines []ringLine
	next  int
}

type ringLine struct {
	text  []byte
	whole bool
}

// push adds a line, and returns the one that is no longer among the last.
func (r *ring) push(line []byte, whole bool) (out ringLine, full bool, err error) {
	if r.size == 0 {
		return ringLine{line, whole}, true, nil
	}
	if int64(len(r.lines)) < r.size {
		r.lines = append(r.lines, ringLine{append([]byte(nil), line...), whole})
		return out, false, r.call.Take(int64(len(line)) + 32)
	}
	old := &r.lines[r.next]
	out = *old
	if r.next++; int64(r.next) == r.size {
		r.next = 0
	}
	if grown := len(line) - cap(out.text); grown > 0 {
		err = r.call.Take(int64(grown))
	}
	out = ringLine{append([]byte(nil), old.text...), old.whole}
	old.text, old.whole = append(old.text[:0], line...), whole
	return out, true, err
}

// all returns the lines, the oldest first.
func (r *ring) all() []ringLine {
	return append(append([]ringLine(nil), r.lines[r.next:]...), r.lines[:r.next]...)
}
