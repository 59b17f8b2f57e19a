package data

import (
	"bufio"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printer writes JSON.
type printer struct {
	w      *bufio.Writer
	order  *order
	indent string // "" for one line
	ascii  bool
	colors bool

	// step, when not nil, says whether to go on; it is asked now and then. A value can be very much longer as text than it
	// is in memory, where its parts may be one.
	step func() error
	n    int
	err  error // what ended the printing
}

// printPeriod is how many values are printed between two looks at the context.
const printPeriod = 1 << 10

// end writes what is in the buffer, and returns what ended the printing.
func (p *printer) end() error {
	if err := p.w.Flush(); p.err == nil {
		p.err = err
	}
	return p.err
}

// over says whether the printing has ended: nobody reads it any more, or the command is to end.
func (p *printer) over() bool {
	if p.n++; p.n%printPeriod == 0 && p.err == nil {
		if _, p.err = p.w.WriteString(""); p.err == nil && p.step != nil {
			p.err = p.step()
		}
	}
	return p.err != nil
}

func (p *printer) print(v any, depth int) {
	if p.over() {
		return
	}
	switch v := v.(type) {
	case nil:
		p.scalar("1;30", "null")
	case bool:
		p.scalar("0;39", strconv.FormatBool(v))
	case string:
		p.scalar("0;32", quote(v, p.ascii))
	case []any:
		p.array(v, depth)
	case map[string]any:
		p.object(v, depth)
	default:
		p.scalar("0;39", numberText(v))
	}
}

func (p *printer) scalar(color, text string) {
	if p.colors {
		text = "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	_, _ = p.w.WriteString(text)
}

func (p *printer) newline(depth int) {
	if p.indent != "" {
		_ = p.w.WriteByte('\n')
		_, _ = p.w.WriteString(strings.Repeat(p.indent, depth))
	}
}

func (p *printer) array(v []any, depth int) {
	_ = p.w.WriteByte('[')
	for i, e := range v {
		if p.err != nil {
			return
		}
		if i > 0 {
			_ = p.w.WriteByte(',')
		}
		p.newline(depth + 1)
		p.print(e, depth+1)
	}
	if len(v) > 0 {
		p.newline(depth)
	}
	_ = p.w.WriteByte(']')
}

func (p *printer) object(v map[string]any, depth int) {
	_ = p.w.WriteByte('{')
	for i, k := range p.order.keys(v) {
		if p.err != nil {
			return
		}
		if i > 0 {
			_ = p.w.WriteByte(',')
		}
		p.newline(depth + 1)
		p.scalar("34;1", quote(k, p.ascii))
		_ = p.w.WriteByte(':')
		if p.indent != "" {
			_ = p.w.WriteByte(' ')
		}
		p.print(v[k], depth+1)
	}
	if len(v) > 0 {
		p.newline(depth)
	}
	_ = p.w.WriteByte('}')
}

// numberText spells a number as jq does: up to 17 digits, integers without a point.
func numberText(v any) string {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case *big.Int:
		return v.String()
	case float64:
		return floatText(v)
	case json.Number:
		return numberText(number(v.String()))
	}
	return "null"
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "null"
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e17) {
		text := strconv.FormatFloat(f, 'e', -1, 64)
		mantissa, exponent, _ := strings.Cut(text, "e")
		return mantissa + "e" + exponent
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// quote writes a JSON string as jq does: only what must be is escaped.
func quote(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			if i := strings.IndexRune("\b\f\n\r\t", r); i >= 0 {
				b.WriteString(`\` + "bfnrt"[i:i+1])
			} else {
				b.WriteString(unicodeEscape(r))
			}
		case ascii && r >= utf8.RuneSelf:
			if r > 0xffff {
				r -= 0x10000
				b.WriteString(unicodeEscape(0xd800 + r>>10))
				r = 0xdc00 + r&0x3ff
			}
			b.WriteString(unicodeEscape(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func unicodeEscape(r rune) string {
	text := strconv.FormatInt(int64(r), 16)
	return `\u` + "0000"[len(text):] + text
}
