package text

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var splitOptions = getopt.New("a:b:C:del:n:t:x", "suffix-length:=a", "additional-suffix:", "bytes:=b", "line-bytes:=C",
	"numeric-suffixes::", "hex-suffixes::", "elide-empty-files=e", "lines:=l", "number:=n", "separator:=t", "verbose")

// splitter is what one split does.
type splitter struct {
	*tool.Call
	ctx      context.Context
	kind     byte // l lines, b bytes, C bytes of whole lines, n number of files
	size     int64
	byLine   bool // -n l/N
	only     int64
	digits   string // of the suffixes
	length   int
	fixed    bool
	first    int
	tail     string // after the suffix
	prefix   string
	delim    byte
	verbose  bool
	elide    bool
	file     *treepath.File
	produced int
}

func split(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(splitOptions, 1)
	if err != nil {
		return err
	}
	s := &splitter{
		Call: c, ctx: ctx, kind: 'l', size: 1000, digits: "abcdefghijklmnopqrstuvwxyz", length: 2, prefix: "x", delim: '\n',
	}
	for _, o := range options {
		if err := s.set(o); err != nil {
			return err
		}
	}
	if len(operands) > 2 {
		return c.Usage(1, "extra operand '%s'", operands[2])
	}
	name := "-"
	if len(operands) > 0 {
		name = operands[0]
	}
	if len(operands) > 1 {
		s.prefix = operands[1]
	}
	in, err := c.Open(ctx, name)
	if err != nil {
		return c.Die(1, "cannot open '%s' for reading: %s", name, command.Reason(err))
	}
	defer in.Close()
	return s.run(in)
}

func (s *splitter) set(o getopt.Option) error {
	var err error
	switch o.Name {
	case "a":
		if s.length, err = strconv.Atoi(o.Value); err != nil || s.length < 1 {
			return s.Die(1, "invalid suffix length: '%s'", o.Value)
		}
		s.fixed = true
	case "additional-suffix":
		s.tail = o.Value
	case "l", "b", "C":
		s.kind = o.Name[0]
		if s.size, err = tool.Size(o.Value); err != nil || s.size < 1 {
			what := map[string]string{"l": "lines", "b": "bytes", "C": "bytes"}[o.Name]
			return s.Die(1, "invalid number of %s: '%s'%s", what, o.Value, outOfRange(err))
		}
	case "d", "numeric-suffixes", "x", "hex-suffixes":
		s.digits = "0123456789"
		if o.Name == "x" || o.Name == "hex-suffixes" {
			s.digits = "0123456789abcdef"
		}
		s.first, _ = strconv.Atoi(o.Value)
	case "e":
		s.elide = true
	case "n":
		return s.setNumber(o.Value)
	case "t":
		s.delim = o.Value[0]
		if o.Value == `\0` {
			s.delim = 0
		}
	case "verbose":
		s.verbose = true
	}
	return nil
}

// setNumber reads N, K/N, l/N and l/K/N.
func (s *splitter) setNumber(text string) error {
	s.kind = 'n'
	rest, byLine := strings.CutPrefix(text, "l/")
	s.byLine = byLine
	var err error
	if k, n, ok := strings.Cut(rest, "/"); ok {
		s.only, err = strconv.ParseInt(k, 10, 64)
		rest = n
	}
	if err == nil {
		s.size, err = strconv.ParseInt(rest, 10, 64)
	}
	if err != nil || s.size < 1 || s.only > s.size {
		return s.Die(1, "invalid number of chunks: '%s'", text)
	}
	return nil
}

func (s *splitter) run(in io.Reader) (err error) {
	defer func() {
		if s.file != nil {
			_ = s.file.Close()
		}
	}()
	switch s.kind {
	case 'b':
		return s.bytes(in)
	case 'n':
		return s.number(in)
	}
	lines := s.Records(in, s.delim)
	used := int64(0)
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		size := int64(1)
		if s.kind == 'C' {
			size = int64(len(line)) + 1
		}
		if s.file == nil || used+size > s.size {
			if err := s.next(); err != nil {
				return err
			}
			used = 0
		}
		used += size
		_, _ = s.Out.Write(line)
		if lines.Whole() {
			_ = s.Out.WriteByte(s.delim)
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return s.Out.Flush()
}

func (s *splitter) bytes(in io.Reader) error {
	for {
		var one [1]byte
		if n, err := io.ReadFull(in, one[:]); n == 0 {
			return notEOF(err)
		}
		if err := s.next(); err != nil {
			return err
		}
		_ = s.Out.WriteByte(one[0])
		if _, err := io.CopyN(s.Out, in, s.size-1); err != nil {
			if err = notEOF(err); err != nil {
				return err
			}
			return s.Out.Flush()
		}
		if err := s.Out.Flush(); err != nil {
			return err
		}
	}
}

// number makes a number of files of about the same size.
func (s *splitter) number(in io.Reader) error {
	data, err := s.ReadAll(in)
	if err != nil {
		return err
	}
	size := int64(len(data))
	at := int64(0)
	for i := int64(1); i <= s.size; i++ {
		end := size / s.size * i
		if s.byLine {
			end = max(at, s.lineEnd(data, end))
		}
		if i == s.size {
			end = size
		}
		part := data[at:end]
		at = end
		if s.only != 0 {
			if s.only == i {
				_, err := s.Stdout.Write(part)
				return err
			}
			continue
		}
		if len(part) == 0 && s.elide {
			continue
		}
		if err := s.next(); err != nil {
			return err
		}
		_, _ = s.Out.Write(part)
		if err := s.Out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// lineEnd returns the end of the line that the byte before at belongs to.
func (s *splitter) lineEnd(data []byte, at int64) int64 {
	if at == 0 {
		return 0
	}
	i := bytes.IndexByte(data[at-1:], s.delim)
	if i < 0 {
		return int64(len(data))
	}
	return at + int64(i)
}

// next goes on to the following file.
func (s *splitter) next() error {
	if s.file != nil {
		if err := s.Out.Flush(); err != nil {
			return err
		}
		_ = s.file.Close()
		s.file = nil
	}
	suffix, ok := s.suffix(s.first + s.produced)
	if !ok {
		return s.Die(1, "output file suffixes exhausted")
	}
	s.produced++
	name := s.prefix + suffix + s.tail
	f, err := s.FS.CreateFile(s.ctx, name)
	if err != nil {
		return s.Die(1, "%s: %s", name, command.Reason(err))
	}
	if s.verbose {
		fmt.Fprintf(s.Stdout, "creating file '%s'\n", name)
	}
	s.file = f
	s.Out.Reset(f)
	return nil
}

// suffix spells n. Without a length that was asked for, the last digit of a place leads to longer suffixes, so that they
// stay in order.
func (s *splitter) suffix(n int) (string, bool) {
	base, length, lead := len(s.digits), s.length, ""
	if !s.fixed {
		for limit := (base - 1) * power(base, length-1); n >= limit; limit = (base - 1) * power(base, length-1) {
			n -= limit
			lead += s.digits[base-1:]
			length++
		}
	}
	out := make([]byte, length)
	for i := length - 1; i >= 0; i-- {
		out[i] = s.digits[n%base]
		n /= base
	}
	return lead + string(out), n == 0
}

func power(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}
