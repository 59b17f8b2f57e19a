package tool

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ErrNumber says that a text is no number of the kind that was asked for.
var ErrNumber = errors.New("invalid number")

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
