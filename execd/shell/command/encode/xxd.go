package encode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var xxdOptions = getopt.New("abc:eg:il:o:pPrs:uC", "autoskip=a", "bits=b", "cols:=c", "groupsize:=g", "include=i", "len:=l",
	"plain=p", "postscript=p", "revert=r", "seek:=s", "ps=p")

// dumper is what one xxd shows.
type dumper struct {
	*tool.Call
	plain, bits, include, upper, little bool
	columns, group                      int
	given                               bool // the columns were, and 0 of them is a line without end
	limit, seek, offset                 int64
}

func xxd(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(xxdOptions, 1)
	if err != nil {
		return err
	}
	d := &dumper{Call: c, limit: -1, group: -1}
	revert := false
	for _, o := range options {
		switch o.Name {
		case "p", "P":
			d.plain = true
		case "b":
			d.bits = true
		case "e":
			d.little = true
		case "i":
			d.include = true
		case "r":
			revert = true
		case "u":
			d.upper = true
		case "c", "g", "l", "o", "s":
			d.number(o.Name, leading(o.Value))
		}
	}
	if !revert {
		if err := d.check(); err != nil {
			return err
		}
	}
	name := append(operands, "-")[0]
	in, err := c.Open(ctx, name)
	if err != nil {
		return c.Die(2, "%s: %s", name, command.Reason(err))
	}
	defer in.Close()
	if len(operands) > 1 {
		f, err := c.FS.CreateFile(ctx, operands[1])
		if err != nil {
			return c.Die(3, "%s: %s", operands[1], command.Reason(err))
		}
		defer f.Close()
		c.Out.Reset(f)
	}
	if revert {
		err = d.revert(in)
	} else {
		err = d.dump(name, in)
	}
	return errors.Join(err, c.Out.Flush())
}

func (d *dumper) number(option string, n int64) {
	switch option {
	case "c":
		d.given = true
		d.columns = int(max(min(n, math.MaxInt32), math.MinInt32))
	case "g":
		d.group = int(max(min(n, math.MaxInt32), -1))
	case "l":
		d.limit = n
	case "o":
		d.offset = n
	case "s":
		d.seek = n
	}
}

// leading is the number that a text begins with, in C's notation, and 0 without one: xxd looks no further.
func leading(text string) int64 {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	sign := int64(1)
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = rest, -1
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	for end := len(text); end > 0; end-- {
		if n, err := tool.Count(text[:end], 0, ""); err == nil {
			return sign * n
		}
	}
	return 0
}

// maxColumns bounds a line that shows text, as xxd does.
const maxColumns = 256

// check gives what was not asked for its value, and refuses what has no meaning.
func (d *dumper) check() error {
	if d.columns < 0 || d.columns > maxColumns && !d.plain && !d.include {
		return d.Die(1, "invalid number of columns (max. %d).", maxColumns)
	}
	if d.columns == 0 {
		switch {
		case d.include:
			d.columns = 12
		case d.plain && d.given:
			d.columns = math.MaxInt
		case d.plain:
			d.columns = 30
		case d.bits:
			d.columns = 6
		default:
			d.columns = 16
		}
	}
	if d.group < 0 {
		d.group = 2
		if d.bits {
			d.group = 1
		}
		if d.little {
			d.group = 4
		}
	}
	if d.group == 0 || d.group > d.columns {
		d.group = d.columns
	}
	if d.little && d.group&(d.group-1) != 0 {
		return d.Die(1, "number of octets per group must be a power of 2 with -e.")
	}
	return nil
}

func (d *dumper) dump(name string, in io.Reader) error {
	r, err := d.position(in)
	if err != nil {
		return err
	}
	if d.limit >= 0 {
		r = io.LimitReader(r, d.limit)
	}
	switch {
	case d.include:
		return d.cArray(name, r)
	case d.plain:
		return d.hex(r)
	}
	buf := make([]byte, d.columns)
	for at := d.seek + d.offset; ; at += int64(d.columns) {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := d.row(at, buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
	}
}

// position goes to where the dump starts; a negative seek counts from the end.
func (d *dumper) position(in io.Reader) (io.Reader, error) {
	switch {
	case d.seek > 0:
		r := bufio.NewReaderSize(in, 64<<10)
		if _, err := io.CopyN(io.Discard, r, d.seek); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return r, nil
	case d.seek == 0:
		return bufio.NewReaderSize(in, 64<<10), nil
	}
	data, err := d.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if d.seek += int64(len(data)); d.seek < 0 {
		return nil, d.Die(4, "Sorry, cannot seek.")
	}
	return bytes.NewReader(data[d.seek:]), nil
}

// hex writes nothing but digits, in lines that may be longer than memory holds.
func (d *dumper) hex(r io.Reader) error {
	digits := "0123456789abcdef"
	if d.upper {
		digits = "0123456789ABCDEF"
	}
	in, column := bufio.NewReader(r), 0
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		_ = d.Out.WriteByte(digits[b>>4])
		if err := d.Out.WriteByte(digits[b&15]); err != nil {
			return err
		}
		if column++; column == d.columns {
			column = 0
			_ = d.Out.WriteByte('\n')
		}
	}
	if column > 0 {
		return d.Out.WriteByte('\n')
	}
	return nil
}

func (d *dumper) row(at int64, b []byte) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%08x: ", uint64(at))
	width := 2
	if d.bits {
		width = 8
	}
	for i := range d.columns {
		j := i
		if d.little {
			j = i/d.group*d.group + d.group - 1 - i%d.group
		}
		switch {
		case j >= len(b):
			line.WriteString(strings.Repeat(" ", width))
		case d.bits:
			fmt.Fprintf(&line, "%08b", b[j])
		case d.upper:
			fmt.Fprintf(&line, "%02X", b[j])
		default:
			fmt.Fprintf(&line, "%02x", b[j])
		}
		if (i+1)%d.group == 0 {
			line.WriteByte(' ')
		}
	}
	if d.columns%d.group != 0 {
		line.WriteByte(' ')
	}
	line.WriteByte(' ')
	line.WriteString(printable(b))
	_, err := d.Out.WriteString(line.String() + "\n")
	return err
}

func printable(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = c
		if c < ' ' || c > '~' {
			out[i] = '.'
		}
	}
	return string(out)
}

// cArray writes a definition in C.
func (d *dumper) cArray(name string, r io.Reader) error {
	id := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, name)
	if id != "" && id[0] >= '0' && id[0] <= '9' {
		id = "__" + id
	}
	if name != "-" {
		fmt.Fprintf(d.Out, "unsigned char %s[] = {\n", id)
	}
	n, in := 0, bufio.NewReader(r)
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		separator := ", "
		switch {
		case n == 0:
			separator = "  "
		case n%d.columns == 0:
			separator = ",\n  "
		}
		fmt.Fprintf(d.Out, "%s0x%02x", separator, b)
		n++
	}
	if n > 0 {
		fmt.Fprintln(d.Out)
	}
	if name == "-" {
		return nil
	}
	_, err := fmt.Fprintf(d.Out, "};\nunsigned int %s_len = %d;\n", id, n)
	return err
}

// revert turns a dump back into bytes.
func (d *dumper) revert(in io.Reader) error {
	lines, at := d.Lines(in), int64(0)
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		text := string(line)
		if !d.plain {
			head, rest, ok := strings.Cut(text, ":")
			offset, err := strconv.ParseInt(strings.TrimSpace(head), 16, 64)
			if !ok || err != nil {
				continue
			}
			if i := strings.Index(strings.TrimLeft(rest, " "), "  "); i >= 0 {
				rest = strings.TrimLeft(rest, " ")[:i]
			}
			text = rest
			if gap := offset - at; gap > 0 {
				if gap > 1<<30 {
					return d.Die(1, "cannot seek that far")
				}
				if _, err := io.CopyN(d.Out, zeros{}, gap); err != nil {
					return err
				}
				at += gap
			}
		}
		digits := strings.Join(strings.Fields(text), "")
		b, err := hex.DecodeString(digits[:len(digits)/2*2])
		if err != nil {
			var bad hex.InvalidByteError
			if !errors.As(err, &bad) {
				return err
			}
		}
		if _, err := d.Out.Write(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return lines.Err()
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
