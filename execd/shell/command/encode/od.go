package encode

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var odOptions = getopt.New("A:abcdDfFhHij:lN:oOst:vw::xX", "address-radix:=A", "skip-bytes:=j", "read-bytes:=N", "format:=t",
	"output-duplicates=v", "width::=w", "strings::", "endian:")

// odType is one way in which a line of od is shown.
type odType struct {
	kind  byte // a, c, d, u, o, x, f
	size  int
	chars bool // with the printable characters at the end of the line
}

// width is how many columns one item takes, a space before it included.
func (t odType) width() int {
	switch t.kind {
	case 'a', 'c':
		return 4
	case 'o':
		return map[int]int{1: 4, 2: 7, 4: 12, 8: 23}[t.size]
	case 'x':
		return 2*t.size + 1
	case 'd':
		return map[int]int{1: 5, 2: 7, 4: 12, 8: 21}[t.size]
	case 'u':
		return map[int]int{1: 4, 2: 6, 4: 11, 8: 21}[t.size]
	}
	return map[int]int{4: 16, 8: 25}[t.size]
}

// octal is what one od does.
type octal struct {
	*tool.Call
	types       []odType
	radix       byte
	skip, limit int64
	all         bool
	line        int
	order       binary.ByteOrder
}

var odShort = map[string]odType{
	"a": {'a', 1, false}, "b": {'o', 1, false}, "c": {'c', 1, false}, "d": {'u', 2, false}, "D": {'u', 4, false},
	"f": {'f', 4, false}, "F": {'f', 8, false}, "h": {'x', 2, false}, "H": {'x', 4, false}, "i": {'d', 4, false},
	"l": {'d', 8, false}, "o": {'o', 2, false}, "O": {'o', 4, false}, "s": {'d', 2, false}, "x": {'x', 2, false},
	"X": {'x', 4, false},
}

func od(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(odOptions, 1)
	if err != nil {
		return err
	}
	o := &octal{Call: c, radix: 'o', limit: -1, line: 16, order: binary.LittleEndian}
	for _, option := range options {
		if err := o.set(option); err != nil {
			return err
		}
	}
	if o.types == nil {
		o.types = []odType{{'o', 2, false}}
	}
	return o.dump(c.Concat(ctx, names))
}

func (o *octal) set(option getopt.Option) error {
	if t, ok := odShort[option.Name]; ok {
		o.types = append(o.types, t)
		return nil
	}
	var err error
	switch option.Name {
	case "A":
		if option.Value == "" || strings.IndexByte("doxn", option.Value[0]) < 0 {
			return o.Die(1, "invalid output address radix '%s'; it must be one character from [doxn]", option.Value)
		}
		o.radix = option.Value[0]
	case "j":
		if o.skip, err = odNumber(option.Value); err != nil {
			return o.Die(1, "invalid -j argument '%s'", option.Value)
		}
	case "N":
		if o.limit, err = odNumber(option.Value); err != nil {
			return o.Die(1, "invalid -N argument '%s'", option.Value)
		}
	case "v":
		o.all = true
	case "w":
		if o.line = 32; option.Given {
			n, err := odNumber(option.Value)
			if err != nil || n < 1 || n > 1<<12 {
				return o.Die(1, "invalid -w argument '%s'", option.Value)
			}
			o.line = int(n)
		}
	case "endian":
		if option.Value == "big" {
			o.order = binary.BigEndian
		}
	case "t":
		return o.setTypes(option.Value)
	}
	return nil
}

func odNumber(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && n >= 0 {
		return n, nil
	}
	return tool.Size(text)
}

// setTypes reads -t: letters with sizes, and z for the characters.
func (o *octal) setTypes(text string) error {
	whole := text
	for text != "" {
		t := odType{kind: text[0], size: 4}
		text = text[1:]
		switch t.kind {
		case 'a', 'c':
			t.size = 1
		case 'd', 'u', 'o', 'x', 'f':
			if t.kind == 'f' {
				t.size = 8
			}
			digits := strings.TrimLeft(text, "0123456789")
			if n, err := strconv.Atoi(text[:len(text)-len(digits)]); err == nil {
				t.size, text = n, digits
			} else if text != "" {
				if n := map[byte]int{'C': 1, 'S': 2, 'I': 4, 'L': 8, 'F': 4, 'D': 8}[text[0]]; n > 0 {
					t.size, text = n, text[1:]
				}
			}
		default:
			return o.Die(1, "invalid character '%c' in type string '%s'", t.kind, whole)
		}
		if t.width() == 0 {
			return o.Die(1, "invalid type string '%s';\nthis system doesn't provide a %d-byte integral type", whole, t.size)
		}
		if strings.HasPrefix(text, "z") {
			t.chars, text = true, text[1:]
		}
		o.types = append(o.types, t)
	}
	return nil
}

func (o *octal) dump(in io.Reader) error {
	if _, err := io.CopyN(io.Discard, in, o.skip); err != nil {
		if errors.Is(err, io.EOF) {
			return o.Die(1, "cannot skip past end of combined input")
		}
		return err
	}
	if o.limit >= 0 {
		in = io.LimitReader(in, o.limit)
	}
	var last []byte
	starred := false
	buf := make([]byte, o.line)
	at := o.skip
	for {
		n, err := io.ReadFull(in, buf)
		if n == len(buf) && !o.all && bytes.Equal(buf, last) {
			if !starred {
				_, _ = o.Out.WriteString("*\n")
			}
			starred = true
		} else if n > 0 {
			starred = false
			last = append(last[:0], buf[:n]...)
			if err := o.row(at, buf[:n]); err != nil {
				return err
			}
		}
		at += int64(n)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
			if text := o.address(at); text != "" && (at > o.skip || o.Status == 0) {
				_, _ = o.Out.WriteString(text + "\n")
			}
			return nil
		}
	}
}

func (o *octal) address(at int64) string {
	switch o.radix {
	case 'd':
		return fmt.Sprintf("%07d", at)
	case 'x':
		return fmt.Sprintf("%06x", at)
	case 'n':
		return ""
	}
	return fmt.Sprintf("%07o", at)
}

// row prints a line for each type; items of several types stand under each other by their bytes.
func (o *octal) row(at int64, b []byte) error {
	perByte := 0.0
	for _, t := range o.types {
		perByte = max(perByte, float64(t.width())/float64(t.size))
	}
	address := o.address(at)
	for i, t := range o.types {
		var line strings.Builder
		if i == 0 {
			line.WriteString(address)
		} else {
			line.WriteString(strings.Repeat(" ", len(address)))
		}
		width := int(math.Ceil(perByte * float64(t.size)))
		items := (len(b) + t.size - 1) / t.size
		for j := range items {
			item := make([]byte, t.size)
			copy(item, b[j*t.size:])
			fmt.Fprintf(&line, "%*s", width, o.item(t, item))
		}
		if t.chars {
			line.WriteString(strings.Repeat(" ", width*(o.line/t.size-items)))
			line.WriteString("  >" + printable(b) + "<")
		}
		if _, err := o.Out.WriteString(line.String() + "\n"); err != nil {
			return err
		}
	}
	return nil
}

var odNames = strings.Fields("nul soh stx etx eot enq ack bel bs ht nl vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub " +
	"esc fs gs rs us sp")

func (o *octal) item(t odType, b []byte) string {
	switch t.kind {
	case 'a':
		c := b[0] & 0x7f
		if int(c) < len(odNames) {
			return odNames[c]
		}
		if c == 0x7f {
			return "del"
		}
		return string(rune(c))
	case 'c':
		if i := strings.IndexByte("\x00\a\b\t\n\v\f\r", b[0]); i >= 0 {
			return []string{`\0`, `\a`, `\b`, `\t`, `\n`, `\v`, `\f`, `\r`}[i]
		}
		if b[0] < ' ' || b[0] > '~' {
			return fmt.Sprintf("%03o", b[0])
		}
		return string(rune(b[0]))
	case 'f':
		if t.size == 4 {
			return strconv.FormatFloat(float64(math.Float32frombits(o.order.Uint32(b))), 'g', 8, 32)
		}
		return strconv.FormatFloat(math.Float64frombits(o.order.Uint64(b)), 'g', 17, 64)
	}
	n, signed := uint64(b[0]), int64(int8(b[0]))
	switch t.size {
	case 2:
		n, signed = uint64(o.order.Uint16(b)), int64(int16(o.order.Uint16(b)))
	case 4:
		n, signed = uint64(o.order.Uint32(b)), int64(int32(o.order.Uint32(b)))
	case 8:
		n, signed = o.order.Uint64(b), int64(o.order.Uint64(b))
	}
	switch t.kind {
	case 'd':
		return strconv.FormatInt(signed, 10)
	case 'u':
		return strconv.FormatUint(n, 10)
	case 'x':
		return fmt.Sprintf("%0*x", 2*t.size, n)
	}
	return fmt.Sprintf("%0*o", t.width()-1, n)
}
