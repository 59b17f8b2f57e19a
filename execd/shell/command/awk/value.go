package awk

import (
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/printf"
)

// kind of a value.
type kind uint8

const (
	unset kind = iota // equal to "" and to 0
	number
	text
	numeric // a text from input that looks like a number
	unknown // a text from input that nobody has looked at yet
)

// value is what a variable holds.
type value struct {
	kind kind
	s    string
	n    float64
}

func num(n float64) value { return value{kind: number, n: n} }

func str(s string) value { return value{kind: text, s: s} }

// input makes a value of a field or a line: a number if it looks like one.
func input(s string) value { return value{kind: unknown, s: s} }

func boolean(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

// settle decides what an unknown value is.
func (v value) settle() value {
	if v.kind != unknown {
		return v
	}
	trimmed := strings.Trim(v.s, " \t\n\r\f\v")
	if n, size := numberPrefix(trimmed); size > 0 && size == len(trimmed) {
		return value{numeric, v.s, n}
	}
	return value{kind: text, s: v.s}
}

func (v value) num() float64 {
	switch v.kind {
	case number, numeric:
		return v.n
	case unset:
		return 0
	}
	n, _ := numberPrefix(strings.TrimLeft(v.s, " \t\n\r\f\v"))
	return n
}

// str spells a value; format is CONVFMT or OFMT.
func (v value) str(format string) string {
	if v.kind != number {
		return v.s
	}
	return spell(v.n, format)
}

func spell(n float64, format string) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e16 {
		return strconv.FormatInt(int64(n), 10)
	}
	if format == "%.6g" || math.IsNaN(n) || math.IsInf(n, 0) {
		text := printf.Float(n, 'g', 6, false)
		if math.IsInf(n, 1) || math.IsNaN(n) && !math.Signbit(n) {
			return "+" + text
		}
		if n == math.Trunc(n) && !math.IsInf(n, 0) {
			return strconv.FormatFloat(n, 'f', 0, 64) // a whole number, to its last digit
		}
		return text
	}
	return format1(format, n)
}

// format1 formats one number by a format that holds one conversion.
func format1(format string, n float64) string {
	i := strings.IndexByte(format, '%')
	if i < 0 {
		return format
	}
	s, rest, ok := printf.ParseSpec(format[i+1:], func() int64 { return 0 })
	if !ok {
		return format
	}
	if s.Verb == 'd' || s.Verb == 'i' {
		return format[:i] + s.Number(strconv.FormatInt(int64(n), 10)) + rest
	}
	return format[:i] + s.Number(printf.Float(n, s.Verb, s.Precision, s.Alternate)) + rest
}

func (v value) truth() bool {
	v = v.settle()
	switch v.kind {
	case number, numeric:
		return v.n != 0
	}
	return v.s != ""
}

// numberPrefix reads the decimal number at the start of s, and returns how much of s it is.
func numberPrefix(s string) (float64, int) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - start
	if digits > 0 && digits < 16 && (i == len(s) || s[i] != '.' && s[i]|0x20 != 'e') {
		n := int64(0)
		for _, c := range []byte(s[start:i]) {
			n = n*10 + int64(c-'0')
		}
		if s[0] == '-' {
			if n == 0 {
				return math.Copysign(0, -1), i
			}
			n = -n
		}
		return float64(n), i
	}
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return special4(s)
	}
	if end := exponentEnd(s, i); end > i {
		i = end
	}
	n, _ := strconv.ParseFloat(s[:i], 64) // out of range is an infinity, as strtod(3) has it
	return n, i
}

// special4 reads +inf, -inf, +nan and -nan, which count only with their sign.
func special4(s string) (float64, int) {
	if len(s) < 4 || len(s) > 4 && (isLetter(s[4]) || isDigit(s[4])) {
		return 0, 0
	}
	switch strings.ToLower(s[:4]) {
	case "+inf":
		return math.Inf(1), 4
	case "-inf":
		return math.Inf(-1), 4
	case "+nan", "-nan":
		return math.NaN(), 4
	}
	return 0, 0
}

func exponentEnd(s string, i int) int {
	if i >= len(s) || s[i]|0x20 != 'e' {
		return i
	}
	j := i + 1
	if j < len(s) && (s[j] == '+' || s[j] == '-') {
		j++
	}
	start := j
	for j < len(s) && isDigit(s[j]) {
		j++
	}
	if j == start {
		return i
	}
	return j
}

// compare orders two values: as numbers when both are, else as texts.
func compare(a, b value, format string) int {
	a, b = a.settle(), b.settle()
	if a.kind != text && b.kind != text {
		switch x, y := a.num(), b.num(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return strings.Compare(a.str(format), b.str(format))
}

// array is an associative array. Keys keep the order in which they came, for loops that do not depend on chance.
type array struct {
	values map[string]*cell
	keys   []string // in order; deleted ones stay until there are too many
}

type cell struct{ v value }

func newArray() *array { return &array{values: map[string]*cell{}} }

func (a *array) list() []string {
	out := make([]string, 0, len(a.values))
	seen := make(map[string]bool)
	dirty := len(a.keys) != len(a.values)
	for _, k := range a.keys {
		if _, ok := a.values[k]; !ok || dirty && seen[k] {
			continue
		}
		if dirty {
			seen[k] = true
		}
		out = append(out, k)
	}
	a.keys = out
	return append([]string(nil), out...)
}
