package printf

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// integer reads an argument as C does: decimal, octal after 0, hexadecimal after 0x, a character's code after a quote.
// What is too large is the largest of its kind, signed or not.
func (p *Printer) integer(arg string, signed bool) int64 {
	if code, ok := quoted(arg); ok {
		return code
	}
	text := strings.TrimLeft(arg, " \t\n")
	if text == "" {
		if arg != "" {
			p.fail(arg + ": invalid number")
		}
		return 0
	}
	good := integerPrefix(text)
	n, err := strconv.ParseInt(text[:good], 0, 64)
	if errors.Is(err, strconv.ErrRange) && text[0] != '-' && !signed {
		u, unsignedErr := strconv.ParseUint(strings.TrimPrefix(text[:good], "+"), 0, 64)
		n = int64(u)
		if unsignedErr == nil {
			return n
		}
	}
	switch {
	case errors.Is(err, strconv.ErrRange) && p.Coreutils:
		p.fail(arg + ": Numerical result out of range")
	case errors.Is(err, strconv.ErrRange):
		p.warn("warning: " + arg + ": Numerical result out of range")
	case err != nil, good < len(text):
		p.fail(arg + ": " + invalidNumber(text, p.Coreutils))
	}
	return n
}

// invalidNumber is what bash says of a text that is no number, by how it begins.
func invalidNumber(text string, coreutils bool) string {
	kind := ""
	switch {
	case coreutils:
	case strings.HasPrefix(text, "0x"), strings.HasPrefix(text, "0X"):
		kind = "hex "
	case text[0] == '0':
		kind = "octal "
	}
	return "invalid " + kind + "number"
}

// integerPrefix returns how much of text is a number.
func integerPrefix(text string) int {
	i := 0
	if text[0] == '-' || text[0] == '+' {
		i++
	}
	digits := "0123456789"
	switch {
	case strings.HasPrefix(text[i:], "0x"), strings.HasPrefix(text[i:], "0X"):
		digits, i = "0123456789abcdefABCDEF", i+2
	case strings.HasPrefix(text[i:], "0"):
		digits = "01234567"
	}
	for i < len(text) && strings.IndexByte(digits, text[i]) >= 0 {
		i++
	}
	return i
}

// quoted reads 'c and "c.
func quoted(arg string) (int64, bool) {
	if arg == "" || arg[0] != '\'' && arg[0] != '"' {
		return 0, false
	}
	if len(arg) == 1 {
		return 0, true
	}
	r, size := utf8.DecodeRuneInString(arg[1:])
	if r == utf8.RuneError && size == 1 {
		return int64(arg[1]), true
	}
	return int64(r), true
}

func (p *Printer) float(arg string) float64 {
	if code, ok := quoted(arg); ok {
		return float64(code)
	}
	text := strings.TrimLeft(arg, " \t\n")
	if text == "" {
		return 0
	}
	for end := min(len(text), 1000); end > 0; end-- {
		if strings.Contains(text[:end], "_") {
			continue
		}
		f, err := strconv.ParseFloat(text[:end], 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			if end < len(text) {
				p.fail(arg + ": invalid number")
			}
			return f
		}
		if n, err := strconv.ParseInt(text[:end], 0, 64); err == nil && strings.Contains(text[:end], "x") {
			return float64(n)
		}
	}
	p.fail(arg + ": invalid number")
	return 0
}

// Float writes a number as C's printf does with a verb of "eEfFgGaA" and a precision (negative for none); alternate is
// the flag "#". Infinities and NaN are inf and nan.
func Float(f float64, verb byte, precision int, alternate bool) string {
	upper := verb >= 'A' && verb <= 'G'
	lower := verb | 0x20
	text := ""
	switch {
	case math.IsNaN(f):
		text = "nan"
		if math.Signbit(f) {
			text = "-nan"
		}
	case math.IsInf(f, 0):
		text = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	case lower == 'a':
		text = hexFloat(f, precision)
	case lower == 'g':
		text = general(f, precision, alternate)
	default:
		if precision < 0 {
			precision = 6
		}
		text = fixed(f, lower, precision)
		if alternate && precision == 0 && lower == 'f' {
			text += "."
		}
	}
	if upper {
		text = strings.ToUpper(text)
	}
	return text
}

// fixed is strconv's, exact at any precision.
func fixed(f float64, verb byte, precision int) string {
	if precision <= 300 {
		return strconv.FormatFloat(f, verb, precision, 64)
	}
	return new(big.Float).SetFloat64(f).Text(verb, precision)
}

// general is %g: the shorter of %e and %f, without trailing zeros unless alternate.
func general(f float64, precision int, alternate bool) string {
	if precision < 0 {
		precision = 6
	}
	precision = max(precision, 1)
	scientific := fixed(f, 'e', precision-1)
	exponent, _ := strconv.Atoi(scientific[strings.IndexByte(scientific, 'e')+1:])
	if exponent >= -4 && exponent < precision {
		text := fixed(f, 'f', precision-1-exponent)
		if !alternate && strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
	mantissa, power, _ := strings.Cut(scientific, "e")
	if !alternate && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + "e" + power
}

// hexFloat is %a as glibc writes it.
func hexFloat(f float64, precision int) string {
	text := strconv.FormatFloat(f, 'x', precision, 64)
	mantissa, power, _ := strings.Cut(text, "p")
	sign := power[:1]
	return mantissa + "p" + sign + strings.TrimLeft(power[1:len(power)-1], "0") + power[len(power)-1:]
}
