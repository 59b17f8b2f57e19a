package text

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
)

// compareFiltered compares what the modes leave of two keys.
func compareFiltered(a, b []byte, m sortMode) int {
	i, j := 0, 0
	for {
		for i < len(a) && m.ignores(a[i]) {
			i++
		}
		for j < len(b) && m.ignores(b[j]) {
			j++
		}
		switch {
		case i == len(a) || j == len(b):
			return cmp.Compare(len(a)-i, len(b)-j)
		case m.translate(a[i]) != m.translate(b[j]):
			return cmp.Compare(m.translate(a[i]), m.translate(b[j]))
		}
		i++
		j++
	}
}

func (m sortMode) ignores(c byte) bool {
	if m.dictionary {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && c != ' ' && c != '\t'
	}
	return m.printing && (c < ' ' || c > '~')
}

func (m sortMode) translate(c byte) byte {
	if m.fold && c >= 'a' && c <= 'z' {
		return c - 0x20
	}
	return c
}

// decimal is a number of any length: its sign, its digits before the point without leading zeros, and those after it.
type decimal struct {
	negative      bool
	whole, behind []byte
	rest          []byte
}

func parseDecimal(b []byte) decimal {
	b = bytes.TrimLeft(b, " \t\n")
	d := decimal{}
	if len(b) > 0 && b[0] == '-' {
		d.negative, b = true, b[1:]
	}
	d.whole, b = digitsOf(b)
	d.whole = bytes.TrimLeft(d.whole, "0")
	if len(b) > 0 && b[0] == '.' {
		d.behind, b = digitsOf(b[1:])
		d.behind = bytes.TrimRight(d.behind, "0")
	}
	d.rest = b
	if len(d.whole) == 0 && len(d.behind) == 0 {
		d.negative = false
	}
	return d
}

func digitsOf(b []byte) (digits, rest []byte) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return b[:i], b[i:]
}

func compareDecimal(a, b decimal) int {
	if a.negative != b.negative {
		if a.negative {
			return -1
		}
		return 1
	}
	order := cmp.Compare(len(a.whole), len(b.whole))
	if order == 0 {
		order = bytes.Compare(a.whole, b.whole)
	}
	if order == 0 {
		order = bytes.Compare(a.behind, b.behind)
	}
	if a.negative {
		return -order
	}
	return order
}

func compareNumeric(a, b []byte) int { return compareDecimal(parseDecimal(a), parseDecimal(b)) }

// compareHuman compares 2K and 1M by the suffix first, as they are never mixed with long numbers.
func compareHuman(a, b []byte) int {
	x, y := parseDecimal(a), parseDecimal(b)
	if order := cmp.Compare(x.order(), y.order()); order != 0 {
		return order
	}
	return compareDecimal(x, y)
}

func (d decimal) order() int {
	if len(d.whole) == 0 && len(d.behind) == 0 {
		return 0
	}
	n := 0
	if len(d.rest) > 0 {
		n = strings.IndexByte("KMGTPEZY", d.rest[0]) + 1
		if d.rest[0] == 'k' {
			n = 1
		}
	}
	if d.negative {
		return -n - 1
	}
	return n + 1
}

// compareGeneral puts what is no number first, then NaN, then numbers as floats.
func compareGeneral(a, b []byte) int {
	x, xOK := parseFloat(a)
	y, yOK := parseFloat(b)
	switch {
	case !xOK || !yOK:
		return cmp.Compare(boolInt(xOK), boolInt(yOK))
	case math.IsNaN(x) || math.IsNaN(y):
		return cmp.Compare(boolInt(!math.IsNaN(x)), boolInt(!math.IsNaN(y)))
	}
	return cmp.Compare(x, y)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parseFloat reads the longest beginning that is a number.
func parseFloat(b []byte) (float64, bool) {
	text := strings.TrimLeft(string(b), " \t")
	for end := min(len(text), 400); end > 0; end-- {
		if f, err := strconv.ParseFloat(text[:end], 64); err == nil || math.IsInf(f, 0) {
			return f, true
		}
	}
	return 0, false
}

// month returns 1 to 12, 0 for what names none.
func month(b []byte) int {
	b = bytes.TrimLeft(b, " \t")
	if len(b) < 3 {
		return 0
	}
	i := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", strings.ToUpper(string(b[:3])))
	if i < 0 || i%3 != 0 {
		return 0
	}
	return i/3 + 1
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
