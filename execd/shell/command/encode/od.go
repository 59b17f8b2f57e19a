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

	"github.com/carrelfs/carrel/execd/shell/command"
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

// width is how many columns one item takes, a space before it included; 0 for a size that there is not.
func (t odType) width() int {
	switch t.kind {
	case 'a', 'c':
		return 4
	case 'o':
		return map[int]int{1: 4, 2: 7, 4: 12, 8: 23}[t.size]
	case 'x':
		return map[int]int{1: 3, 2: 5, 4: 9, 8: 17}[t.size]
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
	line        int64
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
	if err := o.setWidth(); err != nil {
		return err
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
		letter := append([]byte(option.Value), 0)[0]
		if strings.IndexByte("doxn", letter) < 0 {
			return o.Die(1, "invalid output address radix '%c'; it must be one character from [doxn]", letter)
		}
		o.radix = letter
	case "j":
		if o.skip, err = tool.Count(option.Value, 0, tool.Sizes); err != nil {
			return o.Refuse(option, err)
		}
	case "N":
		if o.limit, err = tool.Count(option.Value, 0, tool.Sizes); err != nil {
			return o.Refuse(option, err)
		}
	case "v":
		o.all = true
	case "w":
		if o.line = 32; option.Given {
			if o.line, err = tool.Count(option.Value, 10, ""); err != nil {
				return o.Refuse(option, err)
			}
		}
	case "endian":
		switch {
		case option.Value != "" && strings.HasPrefix("big", option.Value):
			o.order = binary.BigEndian
		case option.Value != "" && strings.HasPrefix("little", option.Value):
			o.order = binary.LittleEndian
		default:
			kind := "invalid"
			if option.Value == "" {
				kind = "ambiguous"
			}
			o.Say("%s argument '%s' for '--endian'", kind, option.Value)
			fmt.Fprintf(o.Stderr, "Valid arguments are:\n  - 'little'\n  - 'big'\nTry '%s --help' for more information.\n", o.Args[0])
			return tool.Exit(1)
		}
	case "t":
		return o.setTypes(option.Value)
	}
	return nil
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
			left, err := o.size(&t, text, whole)
			if err != nil {
				return err
			}
			text = left
		default:
			return o.Die(1, "invalid character '%c' in type string '%s'", t.kind, whole)
		}
		if strings.HasPrefix(text, "z") {
			t.chars, text = true, text[1:]
		}
		o.types = append(o.types, t)
	}
	return nil
}

// size reads how many bytes a number has, in digits or as a letter for a type of C, and returns what follows.
func (o *octal) size(t *odType, text, whole string) (left string, err error) {
	letters, what := map[byte]int{'C': 1, 'S': 2, 'I': 4, 'L': 8}, "integral"
	if t.kind == 'f' {
		letters, what = map[byte]int{'F': 4, 'D': 8}, "floating point"
		t.size = 8
	}
	left = strings.TrimLeft(text, "0123456789")
	digits := text[:len(text)-len(left)]
	switch {
	case digits != "":
		n, err := strconv.Atoi(digits)
		if err != nil {
			return "", o.Die(1, "invalid type string '%s'", whole)
		}
		t.size = n
	case text != "" && letters[text[0]] > 0:
		t.size, left = letters[text[0]], text[1:]
	}
	if t.width() == 0 {
		return "", o.Die(1, "invalid type string '%s';\nthis system doesn't provide a %d-byte %s type", whole, t.size, what)
	}
	return left, nil
}

// setWidth makes lines a whole number of the largest items, whose sizes are powers of two, and counts the memory for one.
func (o *octal) setWidth() error {
	unit := int64(1)
	for _, t := range o.types {
		unit = max(unit, int64(t.size))
	}
	if o.line == 0 || o.line%unit != 0 {
		o.Say("warning: invalid width %d; using %d instead", o.line, unit)
		o.line = unit
	}
	if o.line > 1<<40 {
		return command.ErrMemory
	}
	return o.Take(odLine * o.line)
}

// odLine is how many bytes of memory a byte of the input costs at most: it is held twice, and shown.
const odLine = 8

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
			line.WriteString(strings.Repeat(" ", width*(int(o.line)/t.size-items)))
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
