package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoteValue quotes a string as ${name@Q} and declare do: single quotes, or $'…' when there are control characters.
func quoteValue(s string) string {
	if hasControl(s) {
		return ansiQuote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// singleQuote puts a string in single quotes whatever is in it.
func singleQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoteValues(vals []string) string {
	out := make([]string, len(vals))
	for i, v := range vals {
		out[i] = quoteValue(v)
	}
	return strings.Join(out, " ")
}

func hasControl(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 127 || r == utf8.RuneError || r > 127 && !unicode.IsPrint(r) {
			return true
		}
	}
	return false
}

// ansiQuote is $'…'.
func ansiQuote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch c := s[i]; {
		case c == '\\' || c == '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == 27:
			b.WriteString(`\E`)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < ' ' || c == 127 || r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\%03o`, c)
		case r > 127 && !unicode.IsPrint(r):
			for j := range n {
				fmt.Fprintf(&b, `\%03o`, s[i+j])
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('\'')
	return b.String()
}

// doubleQuote quotes a value as declare -p does.
func doubleQuote(s string) string {
	if hasControl(s) {
		return ansiQuote(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if strings.IndexByte("\"$`\\", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// quoteTrace quotes a word for set -x and for the lists of set and alias: only when it needs it.
func quoteTrace(s string) string {
	switch {
	case s == "":
		return "''"
	case needsQuotes(s): // a newline does: bash looks for what its grammar knows first
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	case hasControl(s):
		return ansiQuote(s)
	}
	return s
}

func needsQuotes(s string) bool {
	for i, r := range s {
		if strings.ContainsRune(" \t\n'\"\\|&;()<>!{}*[]?^$`", r) || r == '#' && i == 0 || r == '~' && i == 0 {
			return true
		}
	}
	return false
}

func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoteTrace(w)
	}
	return strings.Join(out, " ")
}

// assocKey writes a key of an associative array as declare -p does.
func assocKey(k string) string {
	if k == "" || hasControl(k) || strings.ContainsAny(k, " \t\n'\"\\|&;()<>!{}*[]?^$`~#@,") && needsQuotes(k) || k == "@" || k == "*" {
		return doubleQuote(k)
	}
	return k
}

// unescape is the inside of $'…', and ${name@E}.
func unescape(s string) string {
	out, _ := unescapeText(s, ansiEscapes)
	return out
}

// escapes says which backslash sequences a text has: those of $'…' or of echo -e.
type escapes uint8

const (
	ansiEscapes escapes = iota
	echoEscapes
)

// unescapeText expands backslash sequences. stop says that \c has ended the output.
func unescapeText(s string, e escapes) (out string, stop bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		n, text, stop := escapeAt(s[i:], e)
		if stop {
			return b.String(), true
		}
		if e == ansiEscapes && text == "\x00" {
			return b.String(), false // a string ends at its NUL
		}
		b.WriteString(text)
		i += n
	}
	return b.String(), false
}

// escapeAt expands the sequence at the start of s: its length and what it stands for.
func escapeAt(s string, e escapes) (n int, text string, stop bool) {
	c := s[1]
	if i := strings.IndexByte("abtnvfr", c); i >= 0 {
		return 2, string(rune(7 + i)), false
	}
	switch c {
	case 'e', 'E':
		return 2, "\x1b", false
	case '\\':
		return 2, "\\", false
	case '\'', '"', '?':
		if e == ansiEscapes {
			return 2, s[1:2], false
		}
	case 'c':
		if e == echoEscapes {
			return 0, "", true
		}
		if e == ansiEscapes && len(s) > 2 {
			return 3, string(rune(s[2] & 0x1f)), false
		}
	case 'x':
		return hexEscape(s, 2, e)
	case 'u':
		return runeEscape(s, 4)
	case 'U':
		return runeEscape(s, 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return octalEscape(s, e)
	}
	return 2, s[:2], false
}

func octalEscape(s string, e escapes) (int, string, bool) {
	from := 1
	digits := 3
	if s[1] == '0' && e == echoEscapes {
		from = 2
	} else if e == echoEscapes {
		return 2, s[:2], false
	}
	i := from
	v := 0
	for i < len(s) && i-from < digits && s[i] >= '0' && s[i] <= '7' {
		v = v*8 + int(s[i]-'0')
		i++
	}
	return i, string([]byte{byte(v)}), false
}

func hexEscape(s string, digits int, e escapes) (int, string, bool) {
	if e == ansiEscapes && len(s) > 2 && s[2] == '{' {
		end := strings.IndexByte(s, '}')
		if end > 3 {
			if v, err := strconv.ParseUint(s[3:end], 16, 64); err == nil {
				return end + 1, string([]byte{byte(v)}), false
			}
		}
	}
	i := 2
	for i < len(s) && i < 2+digits && isHex(s[i]) {
		i++
	}
	if i == 2 {
		return 2, s[:2], false
	}
	v, _ := strconv.ParseUint(s[2:i], 16, 8)
	return i, string([]byte{byte(v)}), false
}

func runeEscape(s string, digits int) (int, string, bool) {
	i := 2
	for i < len(s) && i < 2+digits && isHex(s[i]) {
		i++
	}
	if i == 2 {
		return 2, s[:2], false
	}
	v, _ := strconv.ParseUint(s[2:i], 16, 32)
	return i, encodeRune(v), false
}

// encodeRune is UTF-8 of any number, as bash's is, surrogates and more included.
func encodeRune(v uint64) string {
	switch {
	case v < 0x80:
		return string([]byte{byte(v)})
	case v < 0x800:
		return string([]byte{0xc0 | byte(v>>6), 0x80 | byte(v&0x3f)})
	case v < 0x10000:
		return string([]byte{0xe0 | byte(v>>12), 0x80 | byte(v>>6&0x3f), 0x80 | byte(v&0x3f)})
	case v < 0x200000:
		return string([]byte{0xf0 | byte(v>>18), 0x80 | byte(v>>12&0x3f), 0x80 | byte(v>>6&0x3f), 0x80 | byte(v&0x3f)})
	}
	return "\uFFFD"
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
