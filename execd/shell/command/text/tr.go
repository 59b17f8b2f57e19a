package text

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var trOptions = getopt.New("+cCdst", "complement=c", "delete=d", "squeeze-repeats=s", "truncate-set1=t")

// translation is what a tr does to each byte.
type translation struct {
	to      [256]byte
	drop    [256]bool
	squeeze [256]bool
	last    int // the byte written last, or -1
}

func tr(ctx context.Context, c *tool.Call) error {
	options, sets, err := c.Options(trOptions, 1)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for _, o := range options {
		on[strings.ToLower(o.Name)] = true
	}
	t, err := newTranslation(c, sets, on)
	if err != nil {
		return err
	}
	in := c.Standard(ctx)
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if _, err := c.Out.Write(t.apply(buf[:n])); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *translation) apply(block []byte) []byte {
	out := block[:0]
	for _, b := range block {
		if t.drop[b] {
			continue
		}
		b = t.to[b]
		if t.squeeze[b] && t.last == int(b) {
			continue
		}
		t.last = int(b)
		out = append(out, b)
	}
	return out
}

func newTranslation(c *tool.Call, sets []string, on map[string]bool) (*translation, error) {
	if err := trOperands(c, sets, on); err != nil {
		return nil, err
	}
	t := &translation{last: -1}
	for i := range t.to {
		t.to[i] = byte(i)
	}
	set1, err := parseSet(sets[0], on["c"], 0)
	if err != nil {
		return nil, c.Die(1, "%s", err)
	}
	var set2 trSet
	if len(sets) > 1 {
		want := len(set1.bytes)
		if on["d"] {
			want = 0
		}
		if set2, err = parseSet(sets[1], false, want); err != nil {
			return nil, c.Die(1, "%s", err)
		}
	}
	squeezed := set2.bytes
	switch {
	case on["d"]:
		for _, b := range set1.bytes {
			t.drop[b] = true
		}
	case len(sets) > 1:
		if err := t.pair(set1, set2, on["t"]); err != nil {
			return nil, c.Die(1, "%s", err)
		}
	default:
		squeezed = set1.bytes
	}
	if on["s"] {
		for _, b := range squeezed {
			t.squeeze[b] = true
		}
	}
	return t, nil
}

func trOperands(c *tool.Call, sets []string, on map[string]bool) error {
	least, most := 2, 2
	if on["d"] != on["s"] {
		least = 1
		if on["d"] {
			most = 1
		}
	}
	switch {
	case len(sets) == 0:
		return c.Usage(1, "missing operand")
	case len(sets) < least:
		fmt.Fprintf(c.Stderr, "tr: missing operand after '%s'\n%s\n", sets[len(sets)-1],
			map[bool]string{true: "Two strings must be given when both deleting and squeezing repeats.",
				false: "Two strings must be given when translating."}[on["d"]])
	case len(sets) > most:
		fmt.Fprintf(c.Stderr, "tr: extra operand '%s'\n", sets[most])
		if most == 1 {
			fmt.Fprintln(c.Stderr, "Only one string may be given when deleting without squeezing repeats.")
		}
	default:
		return nil
	}
	fmt.Fprintln(c.Stderr, "Try 'tr --help' for more information.")
	return tool.Exit(1)
}

// pair maps the bytes of one set to those of another, whose last one is used again for what is left.
func (t *translation) pair(from, to trSet, truncate bool) error {
	if len(to.bytes) == 0 && !truncate {
		return errors.New("when not truncating set1, string2 must be non-empty")
	}
	for i, b := range from.bytes {
		switch {
		case i < len(to.bytes):
			t.to[b] = to.bytes[i]
		case !truncate:
			t.to[b] = to.bytes[len(to.bytes)-1]
		}
	}
	return nil
}

// trSet is what SET1 or SET2 stands for.
type trSet struct{ bytes []byte }

// parseSet reads a set. want is how long a set with "[x*]" in it is to become.
func parseSet(text string, complement bool, want int) (trSet, error) {
	var s trSet
	fill, filler := -1, byte(0)
	for text != "" {
		if rest, ok, err := s.bracket(text, &fill, &filler); err != nil {
			return s, err
		} else if ok {
			text = rest
			continue
		}
		lo, rest := setChar(text)
		text = rest
		if len(text) < 2 || text[0] != '-' {
			s.bytes = append(s.bytes, lo)
			continue
		}
		hi, rest := setChar(text[1:])
		if hi < lo {
			return s, fmt.Errorf("range-endpoints of '%c-%c' are in reverse collating sequence order", lo, hi)
		}
		for b := int(lo); b <= int(hi); b++ {
			s.bytes = append(s.bytes, byte(b))
		}
		text = rest
	}
	if missing := want - len(s.bytes); fill >= 0 && missing > 0 {
		s.bytes = append(s.bytes[:fill:fill], append([]byte(strings.Repeat(string([]byte{filler}), missing)), s.bytes[fill:]...)...)
	}
	if complement {
		s.complement()
	}
	return s, nil
}

func (s *trSet) complement() {
	var in [256]bool
	for _, b := range s.bytes {
		in[b] = true
	}
	s.bytes = nil
	for i, b := range in {
		if !b {
			s.bytes = append(s.bytes, byte(i))
		}
	}
}

// bracket reads [:class:], [=x=] and [x*n].
func (s *trSet) bracket(text string, fill *int, filler *byte) (rest string, ok bool, err error) {
	if text[0] != '[' || len(text) < 4 {
		return "", false, nil
	}
	if text[1] == ':' {
		name, after, ok := strings.Cut(text[2:], ":]")
		if !ok {
			return "", false, nil
		}
		class := byteClass(name)
		if class == nil {
			return "", false, fmt.Errorf("invalid character class '%s'", name)
		}
		for i := range 256 {
			if class(byte(i)) {
				s.bytes = append(s.bytes, byte(i))
			}
		}
		return after, true, nil
	}
	if text[1] == '=' && len(text) >= 5 && text[3:5] == "=]" {
		s.bytes = append(s.bytes, text[2])
		return text[5:], true, nil
	}
	b, after := setChar(text[1:])
	if !strings.HasPrefix(after, "*") {
		return "", false, nil
	}
	digits, after, ok := strings.Cut(after[1:], "]")
	n := int64(0)
	if digits != "" {
		base := 10
		if digits[0] == '0' {
			base = 8
		}
		if n, err = strconv.ParseInt(digits, base, 32); err != nil {
			return "", false, nil
		}
	}
	if !ok {
		return "", false, nil
	}
	if n == 0 {
		*fill, *filler = len(s.bytes), b
		return after, true, nil
	}
	s.bytes = append(s.bytes, strings.Repeat(string([]byte{b}), int(min(n, 256)))...)
	return after, true, nil
}

// setChar reads one byte, which may be escaped.
func setChar(text string) (b byte, rest string) {
	if text[0] != '\\' || len(text) == 1 {
		return text[0], text[1:]
	}
	if i := strings.IndexByte("abfnrtv", text[1]); i >= 0 {
		return "\a\b\f\n\r\t\v"[i], text[2:]
	}
	n, size := 0, 1
	for size < len(text) && size < 4 && text[size] >= '0' && text[size] <= '7' && n*8+int(text[size]-'0') < 256 {
		n = n*8 + int(text[size]-'0')
		size++
	}
	if size > 1 {
		return byte(n), text[size:]
	}
	return text[1], text[2:]
}

// byteClass returns the test of a POSIX class in the C locale.
func byteClass(name string) func(byte) bool {
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	alnum := func(b byte) bool { return upper(b) || lower(b) || digit(b) }
	graph := func(b byte) bool { return b > ' ' && b < 0x7f }
	switch name {
	case "upper":
		return upper
	case "lower":
		return lower
	case "digit":
		return digit
	case "alnum":
		return alnum
	case "alpha":
		return func(b byte) bool { return upper(b) || lower(b) }
	case "blank":
		return func(b byte) bool { return b == ' ' || b == '\t' }
	case "space":
		return func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }
	case "cntrl":
		return func(b byte) bool { return b < ' ' || b == 0x7f }
	case "print":
		return func(b byte) bool { return b >= ' ' && b < 0x7f }
	case "graph":
		return graph
	case "punct":
		return func(b byte) bool { return graph(b) && !alnum(b) }
	case "xdigit":
		return func(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }
	}
	return nil
}
