package tool

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
)

// ErrNumber says that a text is no number of the kind that was asked for; ErrSuffix that it is one with something after
// it; ErrRange that it does not fit.
var (
	ErrNumber = errors.New("invalid number")
	ErrSuffix = errors.New("invalid suffix")
	ErrRange  = errors.New("number out of range")
)

// Sizes are the suffixes that most commands of GNU know; the 0 stands for the "B" and "iB" that may follow a unit.
const Sizes = "bEGKkMmPTYZ0"

// Count reads a whole number that is not negative as xstrtoumax of gnulib does: in base 10, or 0 for what C's notation
// says, with one of the suffixes, which alone stands for one such unit. What does not fit in 64 bits is ErrRange; what
// does, but is more than an int64 holds, is math.MaxInt64.
func Count(text string, base int, suffixes string) (int64, error) {
	rest := strings.TrimLeft(text, " \t\n\v\f\r")
	rest = strings.TrimPrefix(rest, "+")
	digits := digitsOf(rest, base)
	n, err := strconv.ParseUint(rest[:digits], base, 64)
	suffix := rest[digits:]
	switch {
	case errors.Is(err, strconv.ErrRange):
		n, err = math.MaxUint64, ErrRange
	case err == nil:
	case suffix != "" && suffix == text && strings.IndexByte(strings.TrimSuffix(suffixes, "0"), suffix[0]) >= 0:
		n, err = 1, nil
	default:
		return 0, ErrNumber
	}
	if suffix == "" {
		return int64(min(n, math.MaxInt64)), err
	}
	unit, left, ok := unitOf(suffix, suffixes)
	if !ok || left != "" {
		return 0, ErrSuffix
	}
	if unit == 0 || n > math.MaxUint64/unit {
		return math.MaxInt64, ErrRange
	}
	return int64(min(n*unit, math.MaxInt64)), err
}

// digitsOf returns how much of a text strtoumax(3) reads.
func digitsOf(text string, base int) int {
	set := "0123456789"
	start := 0
	if base == 0 && len(text) > 1 && text[0] == '0' {
		set = "01234567"
		if len(text) > 2 && text[1]|0x20 == 'x' && strings.IndexByte("0123456789abcdefABCDEF", text[2]) >= 0 {
			set, start = "0123456789abcdefABCDEF", 2
		}
	}
	end := start
	for end < len(text) && strings.IndexByte(set, text[end]) >= 0 {
		end++
	}
	return end
}

// unitOf reads a suffix: the unit, which is 0 for one beyond 64 bits, and what follows it.
func unitOf(suffix, known string) (unit uint64, left string, ok bool) {
	if strings.IndexByte(strings.TrimSuffix(known, "0"), suffix[0]) < 0 {
		return 0, "", false
	}
	letter, left := suffix[0], suffix[1:]
	base := uint64(1024)
	if strings.HasSuffix(known, "0") {
		if rest, iB := strings.CutPrefix(left, "iB"); iB {
			left = rest
		} else if left != "" && (left[0] == 'B' || left[0] == 'D') {
			base, left = 1000, left[1:]
		}
	}
	switch letter {
	case 'b':
		return 512, left, true
	case 'B':
		return 1024, left, true
	case 'c':
		return 1, left, true
	case 'w':
		return 2, left, true
	}
	power := strings.IndexByte("KMGTPEZY", letter&^0x20) + 1
	if power > 6 {
		return 0, left, true
	}
	for unit = 1; power > 0; power-- {
		unit *= base
	}
	return unit, left, true
}

// Refuse says that the value of an option is no number, for an error of [Count], and returns the Exit for it.
func (c *Call) Refuse(o getopt.Option, err error) error {
	switch {
	case errors.Is(err, ErrSuffix):
		return c.Die(1, "invalid suffix in %s argument '%s'", o.Dashed(), o.Value)
	case errors.Is(err, ErrRange):
		return c.Die(1, "%s argument '%s' too large", o.Dashed(), o.Value)
	}
	return c.Die(1, "invalid %s argument '%s'", o.Dashed(), o.Value)
}

// Bounds are what a number may be.
type Bounds struct {
	Low, High int64
	Signed    bool   // whether a minus is understood, so that what is too low is called out of range
	Suffixes  string // as of Count
}

// Number reads a decimal number within bounds, as xdectoumax and xdectoimax of gnulib do. What is wrong with it is said
// after what, which is "invalid number of lines" or the like, and the Exit for it returned.
func (c *Call) Number(what, text string, b Bounds) (int64, error) {
	rest, negative := text, false
	if b.Signed {
		rest, negative = strings.CutPrefix(strings.TrimLeft(text, " \t\n\v\f\r"), "-")
		if negative && strings.HasPrefix(rest, "+") {
			rest = "x"
		}
	}
	n, err := Count(rest, 10, b.Suffixes)
	if negative {
		n = -n
	}
	why := ""
	switch {
	case errors.Is(err, ErrRange):
		why = ": Value too large for defined data type"
	case err != nil:
	case n >= b.Low && n <= b.High:
		return n, nil
	case n > math.MaxInt32/2, n < math.MinInt32/2:
		why = ": Value too large for defined data type"
	default:
		why = ": Numerical result out of range"
	}
	return 0, c.Die(1, "%s: '%s'%s", what, text, why)
}

// Size reads a number with one of the suffixes of GNU's tools: b (512), k or K, M, G, T, P, E (powers of 1024), with "iB"
// too, and kB, MB and so on (powers of 1000). It saturates.
func Size(text string) (int64, error) {
	digits := text
	if i := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = text[:i]
	}
	suffix := text[len(digits):]
	n := int64(1)
	if digits != "" || suffix == "" {
		var err error
		n, err = strconv.ParseInt(digits, 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			n = math.MaxInt64
		} else if err != nil {
			return 0, ErrNumber
		}
	}
	unit, ok := Unit(suffix)
	if !ok {
		return 0, ErrNumber
	}
	if n > math.MaxInt64/unit {
		return math.MaxInt64, nil
	}
	return n * unit, nil
}

// Unit returns how many bytes a suffix stands for.
func Unit(suffix string) (int64, bool) {
	switch suffix {
	case "":
		return 1, true
	case "b":
		return 512, true
	}
	power := strings.IndexByte("KMGTPE", suffix[0]&^0x20) + 1
	if power == 0 || suffix[0] >= 'a' && suffix[0] != 'k' && suffix[0] != 'm' && suffix[0] != 'g' && suffix[0] != 't' {
		return 0, false
	}
	base := int64(1024)
	switch suffix[1:] {
	case "B":
		base = 1000
	case "", "iB":
	default:
		return 0, false
	}
	unit := int64(1)
	for range power {
		unit *= base
	}
	return unit, true
}

// Human writes a size as ls -h and du -h do: a number with at most three characters and the unit, rounded up.
func Human(n uint64, base float64) string {
	units := "BKMGTPE"
	if base == 1000 {
		units = "BkMGTPE"
	}
	f, i := float64(n), 0
	for f >= base && i < len(units)-1 {
		f /= base
		i++
	}
	if i == 0 {
		return strconv.FormatUint(n, 10)
	}
	text := strconv.FormatFloat(math.Ceil(f*10-1e-9)/10, 'f', 1, 64)
	if math.Ceil(f*10-1e-9) >= 100 {
		up := math.Ceil(f - 1e-9)
		if up >= base && i < len(units)-1 {
			return "1.0" + units[i+1:i+2]
		}
		text = strconv.FormatFloat(up, 'f', 0, 64)
	}
	return text + units[i:i+1]
}
