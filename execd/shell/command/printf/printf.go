package printf

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/datetime"
)

// maxWidth bounds a field: a width is memory.
const maxWidth = 1 << 20

// Printer writes formats.
type Printer struct {
	Out io.Writer
	// Complain is told of what is wrong with an argument; the printing goes on and Status is 1.
	Complain func(message string)
	// Step, when not nil, is asked between two rounds of the format; its error ends the printing.
	Step func() error
	// Now and Zone are for %(...)T; a nil Zone is UTC.
	Now    func() time.Time
	Zone   *time.Location
	Status int
	// Coreutils makes the Printer that of the command, not of bash's builtin: a number out of range is a failure.
	Coreutils bool

	args  []string
	stars func() int64 // gives the value of a "*" in place of the arguments
	used  bool         // an argument was taken in this round
	buf   bytes.Buffer
}

// errStop is that \c ended the output.
var errStop = errors.New("stopped")

// Print writes the format, again and again while arguments are left. What it returns is an error of Out or of Step.
func (p *Printer) Print(format string, args []string) error {
	p.args = args
	for {
		p.used = false
		err := p.round(format)
		if _, writeErr := p.Out.Write(p.buf.Bytes()); writeErr != nil {
			return writeErr
		}
		p.buf.Reset()
		if err != nil || !p.used || len(p.args) == 0 {
			return nil
		}
		if p.Step != nil {
			if err := p.Step(); err != nil {
				return err
			}
		}
	}
}

// round writes the format once; an error ends all.
func (p *Printer) round(format string) error {
	for format != "" {
		switch c := format[0]; {
		case c == '\\':
			text, rest, _ := Escape(format, false)
			p.buf.WriteString(text)
			format = rest
		case c == '%' && strings.HasPrefix(format, "%%"):
			p.buf.WriteByte('%')
			format = format[2:]
		case c == '%':
			rest, err := p.conversion(format)
			if err != nil {
				return err
			}
			format = rest
		default:
			p.buf.WriteByte(c)
			format = format[1:]
		}
	}
	return nil
}

// next takes an argument; there is always an empty one left.
func (p *Printer) next() (string, bool) {
	p.used = true
	if len(p.args) == 0 {
		return "", false
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg, true
}

func (p *Printer) fail(message string) {
	p.Status = 1
	p.warn(message)
}

func (p *Printer) warn(message string) {
	if p.Complain != nil {
		p.Complain(message)
	}
}

// spec is one conversion: %[flags][width][.precision]verb.
type spec struct {
	minus, plus, space, zero, alternate bool
	width, precision                    int // precision is -1 when there is none
	verb                                byte
	layout                              string // of %(layout)T
}

func (p *Printer) conversion(format string) (rest string, err error) {
	s, rest, ok := p.parse(format[1:])
	if !ok {
		p.fail("`" + badVerb(format, rest) + "': invalid format character")
		return "", errStop
	}
	return rest, p.convert(s)
}

func badVerb(format, rest string) string {
	if rest == "" {
		return format
	}
	return rest[:1]
}

func (p *Printer) parse(f string) (s spec, rest string, ok bool) {
	s.precision = -1
flags:
	for ; f != ""; f = f[1:] {
		switch f[0] {
		case '-':
			s.minus = true
		case '+':
			s.plus = true
		case ' ':
			s.space = true
		case '0':
			s.zero = true
		case '#':
			s.alternate = true
		case '\'':
		default:
			break flags
		}
	}
	var given bool
	if s.width, f, given = p.count(f); given && s.width < 0 {
		s.minus, s.width = true, -s.width
	}
	if strings.HasPrefix(f, ".") {
		if s.precision, f, given = p.count(f[1:]); !given {
			s.precision = 0
		}
		s.precision = max(s.precision, -1)
	}
	if strings.HasPrefix(f, "(") {
		var found bool
		if s.layout, f, found = strings.Cut(f[1:], ")"); !found || !strings.HasPrefix(f, "T") {
			return s, f, false
		}
	}
	f = strings.TrimLeft(f, "hlLjzt")
	if f == "" || strings.IndexByte("diouxXeEfFgGaAcsbqQT", f[0]) < 0 {
		return s, f, false
	}
	s.verb = f[0]
	return s, f[1:], true
}

// count reads digits, or a star that takes an argument.
func (p *Printer) count(f string) (n int, rest string, given bool) {
	if strings.HasPrefix(f, "*") {
		if p.stars != nil {
			return clamp(p.stars()), f[1:], true
		}
		arg, _ := p.next()
		return clamp(p.integer(arg, true)), f[1:], true
	}
	i := 0
	for i < len(f) && f[i] >= '0' && f[i] <= '9' {
		n = min(n*10+int(f[i]-'0'), maxWidth)
		i++
	}
	return n, f[i:], i > 0
}

func clamp(n int64) int { return int(max(-maxWidth, min(n, maxWidth))) }

func (p *Printer) convert(s spec) error {
	switch s.verb {
	case 'd', 'i':
		arg, _ := p.next()
		p.number(s, strconv.FormatInt(p.integer(arg, true), 10))
	case 'o', 'u', 'x', 'X':
		arg, _ := p.next()
		p.number(s, unsigned(s, uint64(p.integer(arg, false))))
	case 'c':
		arg, _ := p.next()
		if arg == "" {
			arg = "\x00" // what C has at the end of a text
		}
		p.text(s, arg[:1])
	case 's':
		arg, _ := p.next()
		p.text(s, arg)
	case 'b':
		arg, _ := p.next()
		text, stop := Unescape(arg)
		p.text(s, text)
		if stop {
			return errStop
		}
	case 'q', 'Q':
		arg, _ := p.next()
		p.text(s, Quote(arg))
	case 'T':
		p.time(s)
	default:
		arg, _ := p.next()
		p.number(s, Float(p.float(arg), s.verb, s.precision, s.alternate))
	}
	return nil
}

func (p *Printer) time(s spec) {
	arg, given := p.next()
	t := time.Time{}
	switch n := p.integer(arg, true); {
	case !given || n == -1 || n == -2:
		if p.Now != nil {
			t = p.Now()
		}
	default:
		t = time.Unix(n, 0)
	}
	zone := p.Zone
	if zone == nil {
		zone = time.UTC
	}
	layout := s.layout
	if layout == "" {
		layout = "%X"
	}
	p.text(s, datetime.Format(t.In(zone), layout))
}

func unsigned(s spec, n uint64) string {
	switch s.verb {
	case 'o':
		text := strconv.FormatUint(n, 8)
		if s.alternate && text[0] != '0' {
			text = "0" + text
		}
		return text
	case 'x':
		if s.alternate && n != 0 {
			return "0x" + strconv.FormatUint(n, 16)
		}
		return strconv.FormatUint(n, 16)
	case 'X':
		text := strings.ToUpper(strconv.FormatUint(n, 16))
		if s.alternate && n != 0 {
			text = "0X" + text
		}
		return text
	}
	return strconv.FormatUint(n, 10)
}

func (p *Printer) text(s spec, text string) {
	if s.precision >= 0 && s.precision < len(text) {
		text = text[:s.precision]
	}
	pad(&p.buf, s, text)
}

func pad(b *bytes.Buffer, s spec, text string) {
	fill := strings.Repeat(" ", max(s.width-len(text), 0))
	if !s.minus {
		b.WriteString(fill)
	}
	b.WriteString(text)
	if s.minus {
		b.WriteString(fill)
	}
}

// number adds the sign, the digits that precision asks for, and zeros up to the width.
func (p *Printer) number(s spec, digits string) { pad(&p.buf, s, s.complete(digits)) }

func (s spec) complete(digits string) string {
	sign := ""
	if negative, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "-", negative
	} else if strings.IndexByte("dieEfFgGaA", s.verb) >= 0 {
		switch {
		case s.plus:
			sign = "+"
		case s.space:
			sign = " "
		}
	}
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		sign, digits = sign+digits[:2], digits[2:]
	}
	integer := strings.IndexByte("dioux X", s.verb) >= 0
	if integer && s.precision >= 0 {
		if s.precision == 0 && digits == "0" {
			digits = ""
		}
		digits = strings.Repeat("0", max(s.precision-len(digits), 0)) + digits
	}
	finite := digits == "" || digits[0] >= '0' && digits[0] <= '9' || digits[0] >= 'a' && digits[0] <= 'f' && integer ||
		digits[0] >= 'A' && digits[0] <= 'F' && integer
	if s.zero && !s.minus && finite && (!integer || s.precision < 0) {
		digits = strings.Repeat("0", max(s.width-len(sign)-len(digits), 0)) + digits
	}
	return sign + digits
}

// Spec is one conversion of a format, for who formats values of its own.
type Spec struct {
	Verb      byte
	Precision int // -1 for none
	Alternate bool
	spec      spec
}

// ParseSpec reads a conversion at the start of f, which follows a "%". star gives the value of a "*". ok is false when it
// is none.
func ParseSpec(f string, star func() int64) (s Spec, rest string, ok bool) {
	p := &Printer{stars: star}
	inner, rest, ok := p.parse(f)
	return Spec{inner.verb, inner.precision, inner.alternate, inner}, rest, ok
}

// Number adds the sign, zeros and padding that the conversion asks for to the digits of a number.
func (s Spec) Number(digits string) string { return padRunes(s.spec, s.spec.complete(digits)) }

// Unsigned writes a number as o, u, x or X.
func (s Spec) Unsigned(n uint64) string { return s.Number(unsigned(s.spec, n)) }

// Text cuts and pads a text, in characters.
func (s Spec) Text(text string) string {
	if s.spec.precision >= 0 {
		at := 0
		for i := range text {
			if at == s.spec.precision {
				text = text[:i]
				break
			}
			at++
		}
	}
	return padRunes(s.spec, text)
}

func padRunes(s spec, text string) string {
	fill := strings.Repeat(" ", max(s.width-utf8.RuneCountInString(text), 0))
	if s.minus {
		return text + fill
	}
	return fill + text
}
