package tool

import (
	"cmp"
	"strings"
)

// CompareVersions is GNU's order of version strings: runs of digits count as numbers, ~ sorts before the end, letters
// before the rest, and a suffix like .tar.gz counts only between equals.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	for _, special := range []string{"", ".", ".."} {
		if a == special {
			return -1
		}
		if b == special {
			return 1
		}
	}
	if hiddenA, hiddenB := a[0] == '.', b[0] == '.'; hiddenA != hiddenB {
		if hiddenA {
			return -1
		}
		return 1
	} else if hiddenA {
		a, b = a[1:], b[1:]
	}
	if order := compareRuns(withoutSuffix(a), withoutSuffix(b)); order != 0 {
		return order
	}
	return compareRuns(a, b)
}

// withoutSuffix cuts (\.[A-Za-z~][A-Za-z0-9~]*)*$ off.
func withoutSuffix(s string) string {
	end := len(s)
	for i := len(s) - 1; i > 0; i-- {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '~'
		switch {
		case c == '.' && i+1 < end && (s[i+1]|0x20 >= 'a' && s[i+1]|0x20 <= 'z' || s[i+1] == '~'):
			end = i
		case !letter && (c < '0' || c > '9'):
			return s[:end]
		}
	}
	return s[:end]
}

func compareRuns(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !isDigit(a[0]) || b != "" && !isDigit(b[0]) {
			x, y := versionOrder(a), versionOrder(b)
			if x != y {
				return cmp.Compare(x, y)
			}
			a, b = a[min(1, len(a)):], b[min(1, len(b)):]
		}
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		i, j := 0, 0
		for i < len(a) && isDigit(a[i]) {
			i++
		}
		for j < len(b) && isDigit(b[j]) {
			j++
		}
		if i != j {
			return cmp.Compare(i, j)
		}
		if order := strings.Compare(a[:i], b[:j]); order != 0 {
			return order
		}
		a, b = a[i:], b[j:]
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func versionOrder(s string) int {
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z':
		return int(s[0])
	}
	return int(s[0]) + 256
}
