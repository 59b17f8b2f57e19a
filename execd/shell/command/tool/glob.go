package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Glob says whether name matches a pattern of fnmatch(3) without flags: "*" and "?" match slashes and leading dots too.
// fold makes letters match in either case. It takes time in the product of the lengths at worst.
func Glob(pattern, name string, fold bool) bool {
	if fold {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		if i < len(pattern) && pattern[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if size, next, ok := globOne(pattern, i, name[j:]); ok {
			i, j = next, j+size
			continue
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[mark:])
		mark += size
		i, j = star+1, mark
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// globOne matches one character of name with the pattern's element at i.
func globOne(pattern string, i int, name string) (size, next int, ok bool) {
	if i >= len(pattern) {
		return 0, 0, false
	}
	r, size := utf8.DecodeRuneInString(name)
	switch c := pattern[i]; {
	case c == '?':
		return size, i + 1, true
	case c == '[':
		if in, end, valid := globSet(pattern[i:], r); valid {
			return size, i + end, in
		}
	case c == '\\' && i+1 < len(pattern):
		i++
	}
	p, psize := utf8.DecodeRuneInString(pattern[i:])
	return size, i + psize, p == r && (p != utf8.RuneError || pattern[i] == name[0])
}

// globSet matches r with the bracket expression at the start of text, and says where that ends.
func globSet(text string, r rune) (in bool, end int, valid bool) {
	i := 1
	negate := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negate {
		i++
	}
	for first := true; i < len(text); first = false {
		if text[i] == ']' && !first {
			return in != negate, i + 1, true
		}
		if strings.HasPrefix(text[i:], "[:") {
			if name, _, ok := strings.Cut(text[i+2:], ":]"); ok {
				in = in || inClass(name, r)
				i += len(name) + 4
				continue
			}
		}
		lo, size := globChar(text[i:])
		i += size
		hi := lo
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			hi, size = globChar(text[i+1:])
			i += 1 + size
		}
		in = in || lo <= r && r <= hi
	}
	return false, 0, false
}

func globChar(text string) (rune, int) {
	if text[0] == '\\' && len(text) > 1 {
		r, size := utf8.DecodeRuneInString(text[1:])
		return r, size + 1
	}
	return utf8.DecodeRuneInString(text)
}

func inClass(name string, r rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter(r)
	case "digit":
		return r >= '0' && r <= '9'
	case "alnum":
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	case "upper":
		return unicode.IsUpper(r)
	case "lower":
		return unicode.IsLower(r)
	case "space":
		return unicode.IsSpace(r)
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return unicode.IsPunct(r) || unicode.IsSymbol(r)
	case "print":
		return unicode.IsPrint(r)
	case "graph":
		return unicode.IsPrint(r) && r != ' '
	case "cntrl":
		return unicode.IsControl(r)
	case "xdigit":
		return r < 0x80 && strings.ContainsRune("0123456789abcdefABCDEF", r)
	}
	return false
}
