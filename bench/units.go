package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit returns the largest unit that a time has one of.
func unit(ns float64) (name string, length float64) {
	switch a := math.Abs(ns); {
	case a >= 0.9995e9:
		return "s", 1e9
	case a >= 0.9995e6:
		return "ms", 1e6
	case a >= 0.9995e3:
		return "µs", 1e3
	}
	return "ns", 1
}

// duration shows nanoseconds with three digits.
func duration(ns float64) string {
	name, length := unit(ns)
	return digits(ns/length) + " " + name
}

// durations shows a time, and the ends of a range in its unit.
func durations(ns, low, high float64) string {
	name, length := unit(ns)
	return fmt.Sprintf("%s %s (%s–%s)", digits(ns/length), name, digits(low/length), digits(high/length))
}

// size shows bytes with three digits.
func size(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if math.Abs(v) < 1023.5 {
			return digits(v) + " " + unit
		}
		v /= 1024
	}
	return digits(v) + " TiB"
}

// count shows a number of things: 1000 is 1k.
func count(n int64) string {
	switch {
	case n >= 1e6 && n%1e6 == 0:
		return fmt.Sprintf("%dM", n/1e6)
	case n >= 1e3 && n%1e3 == 0:
		return fmt.Sprintf("%dk", n/1e3)
	}
	return strconv.FormatInt(n, 10)
}

// factor shows a ratio.
func factor(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// digits shows the three leading digits, without a fraction that is zero.
func digits(v float64) string {
	decimals := 2
	switch a := math.Abs(v); {
	case a >= 99.95:
		decimals = 0
	case a >= 9.995:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if whole, fraction, ok := strings.Cut(s, "."); ok && strings.Trim(fraction, "0") == "" {
		return whole
	}
	return s
}
