package text

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var splitOptions = getopt.New("a:b:C:del:n:t:ux", "suffix-length:=a", "additional-suffix:", "bytes:=b", "line-bytes:=C",
	"numeric-suffixes::", "hex-suffixes::", "elide-empty-files=e", "lines:=l", "number:=n", "separator:=t", "unbuffered=u", "verbose")

// maxSuffix and maxHands bound how long a suffix and how many the files of a round robin are: a name of a file ends at 255
// bytes, and a hand costs memory before it has a line.
const (
	maxSuffix = 255
	maxHands  = 1 << 20
)

// splitter is what one split does.
type splitter struct {
	*tool.Call
	ctx      context.Context
	kind     byte // l lines, b bytes, C bytes of whole lines, n number of files
	chosen   bool // one of -l, -b, -C and -n was given
	size     int64
	byLine   bool // -n l/N
	robin    bool // -n r/N
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
		n, err := s.Number("invalid suffix length", o.Value, tool.Bounds{High: maxSuffix})
		if err != nil {
			return err
		}
		if s.fixed = n > 0; s.fixed {
			s.length = int(n)
		}
	case "additional-suffix":
		if s.tail = o.Value; strings.Contains(o.Value, "/") {
			return s.Usage(1, "invalid suffix '%s', contains directory separator", o.Value)
		}
	case "l", "b", "C":
		if s.chosen {
			return s.Usage(1, "cannot split in more than one way")
		}
		s.chosen = true
		s.kind = o.Name[0]
		what, suffixes := "bytes", tool.Sizes
		if o.Name == "l" {
			what, suffixes = "lines", ""
		}
		s.size, err = s.Number("invalid number of "+what, o.Value, tool.Bounds{Low: 1, High: math.MaxInt64, Suffixes: suffixes})
		return err
	case "d", "numeric-suffixes", "x", "hex-suffixes":
		s.digits = "0123456789"
		if o.Name == "x" || o.Name == "hex-suffixes" {
			s.digits = "0123456789abcdef"
		}
		if o.Given {
			return s.setFirst(o.Value)
		}
		s.first = 0
	case "e":
		s.elide = true
	case "n":
		if s.chosen {
			return s.Usage(1, "cannot split in more than one way")
		}
		s.chosen = true
		return s.setNumber(o.Value)
	case "t":
		switch {
		case o.Value == "":
			return s.Die(1, "empty record separator")
		case o.Value == `\0`:
			s.delim = 0
		case len(o.Value) > 1:
			return s.Die(1, "multi-character separator '%s'", o.Value)
		default:
			s.delim = o.Value[0]
		}
	case "verbose":
		s.verbose = true
	}
	return nil
}

// setFirst reads the number of the first file, which is spelled in the digits of the suffixes.
func (s *splitter) setFirst(text string) error {
	kind := map[int]string{10: "numerical", 16: "hexadecimal"}[len(s.digits)]
	n, err := strconv.ParseInt(text, len(s.digits), 32)
	if err != nil || strings.Trim(text, s.digits) != "" {
		return s.Usage(1, "'%s': invalid start value for %s suffix", text, kind)
	}
	s.first = int(n)
	return nil
}

// setNumber reads N, K/N, l/N, l/K/N, r/N and r/K/N.
func (s *splitter) setNumber(text string) (err error) {
	s.kind, s.only = 'n', 0
	rest, byLine := strings.CutPrefix(text, "l/")
	s.byLine = byLine
	if !byLine {
		rest, s.robin = strings.CutPrefix(text, "r/")
	}
	chunk, count, both := strings.Cut(rest, "/")
	if !both {
		count = rest
	}
	s.size, err = s.Number("invalid number of chunks", count, tool.Bounds{Low: 1, High: math.MaxInt64})
	if err == nil && both {
		s.only, err = s.Number("invalid chunk number", chunk, tool.Bounds{Low: 1, High: s.size})
	}
	return err
}

// fit makes the suffixes as long as a known number of files needs.
func (s *splitter) fit() error {
	need, last := 1, s.size-1+int64(s.first)
	for base := int64(len(s.digits)); last >= base; last /= base {
		need++
	}
	if s.fixed && s.length < need {
		return s.Die(1, "the suffix length needs to be at least %d", need)
	}
	s.length, s.fixed = max(s.length, need), true
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
		if s.only == 0 {
			if err := s.fit(); err != nil {
				return err
			}
		}
		if s.robin {
			return s.deal(in)
		}
		return s.number(in)
	}
	if s.kind == 'C' {
		return s.lineBytes(in)
	}
	lines := s.Records(in, s.delim)
	used := int64(0)
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if s.file == nil || used == s.size {
			if err := s.next(); err != nil {
				return err
			}
			used = 0
		}
		used++
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

// lineBytes puts as many lines into a file as fit; one that fits in no file fills as many as it takes.
func (s *splitter) lineBytes(in io.Reader) error {
	lines := s.Records(in, s.delim)
	used := int64(0)
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if lines.Whole() {
			line = append(line[:len(line):len(line)], s.delim)
		}
		if used > 0 && used+int64(len(line)) > s.size {
			used = s.size
		}
		for len(line) > 0 {
			if s.file == nil || used == s.size {
				if err := s.next(); err != nil {
					return err
				}
				used = 0
			}
			n := min(int64(len(line)), s.size-used)
			if _, err := s.Out.Write(line[:n]); err != nil {
				return err
			}
			used, line = used+n, line[n:]
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
		if err := s.Step(s.ctx, 1); err != nil {
			return err
		}
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

// deal gives each line in turn to one of the files.
func (s *splitter) deal(in io.Reader) error {
	lines := s.Records(in, s.delim)
	var hands []bytes.Buffer
	if s.only == 0 {
		if err := s.Take(64 * min(s.size, maxHands)); err != nil {
			return err
		}
		if s.size > maxHands {
			return command.ErrMemory
		}
		hands = make([]bytes.Buffer, s.size)
	}
	for i := int64(0); ; i = (i + 1) % s.size {
		line, ok := lines.Next()
		if !ok {
			break
		}
		to := io.Writer(s.Out)
		switch {
		case s.only == 0:
			to = &hands[i]
			if err := s.Take(2 * int64(len(line)+1)); err != nil {
				return err
			}
		case s.only != i+1:
			continue
		}
		if lines.Whole() {
			line = append(line[:len(line):len(line)], s.delim)
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	for i := range hands {
		if hands[i].Len() == 0 && s.elide {
			continue
		}
		if err := s.next(); err != nil {
			return err
		}
		_, _ = s.Out.Write(hands[i].Bytes())
	}
	return s.Out.Flush()
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
