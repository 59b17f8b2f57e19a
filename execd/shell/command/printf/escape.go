package printf

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape reads the escape at the start of text, which is a backslash. echo says that octal escapes are \0nnn, as in
// echo -e and %b, where \nnn is one too. stop is \c.
func Escape(text string, echo bool) (out, rest string, stop bool) {
	if len(text) == 1 {
		return `\`, "", false
	}
	c := text[1]
	if i := strings.IndexByte(`\abefnrtvE"`, c); i >= 0 && (c != '"' || !echo) {
		return "\\\a\b\x1b\f\n\r\t\v\x1b\""[i : i+1], text[2:], false
	}
	switch {
	case c == '\'' && !echo:
		return "'", text[2:], false
	case c == '?' && !echo:
		return "?", text[2:], false
	case c == 'c' && echo:
		return "", text[2:], true
	case c == 'x':
		return number(text, 2, 2, 16, false)
	case c == 'u':
		return number(text, 2, 4, 16, true)
	case c == 'U':
		return number(text, 2, 8, 16, true)
	case c == '0' && echo:
		return number(text, 1, 4, 8, false)
	case c >= '0' && c <= '7':
		return number(text, 1, 3, 8, false)
	}
	return text[:2], text[2:], false
}

// number reads up to most digits from start; without any, the escape stands for itself.
func number(text string, start, most, base int, char bool) (out, rest string, stop bool) {
	end, n := start, uint64(0)
	for end < len(text) && end-start < most {
		d, err := strconv.ParseUint(text[end:end+1], base, 8)
		if err != nil {
			break
		}
		n = n*uint64(base) + d
		end++
	}
	switch {
	case end == start:
		return text[:start], text[start:], false
	case char:
		return string(utf8.AppendRune(nil, rune(n))), text[end:], false
	}
	return string([]byte{byte(n)}), text[end:], false
}

// Unescape reads all escapes of text as echo -e and %b do. stop says that \c ended it.
func Unescape(text string) (out string, stop bool) {
	if !strings.Contains(text, `\`) {
		return text, false
	}
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			i = len(text)
		}
		b.WriteString(text[:i])
		if text = text[i:]; text == "" {
			break
		}
		var part string
		part, text, stop = Escape(text, true)
		b.WriteString(part)
		if stop {
			return b.String(), true
		}
	}
	return b.String(), false
}

// Quote writes text so that a shell reads it as one word, as bash's %q does.
func Quote(text string) string {
	if text == "" {
		return "''"
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f || c >= 0x80 && !utf8.ValidString(text) {
			return quoteControl(text)
		}
	}
	var b strings.Builder
	for i, r := range text {
		if strings.ContainsRune(" \t\n'\"\\|&;()<>!{}*[]?^$`,", r) || i == 0 && (r == '~' || r == '#') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func quoteControl(text string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		c := text[i]
		switch j := strings.IndexByte("\a\b\x1b\f\n\r\t\v\\'", c); {
		case j >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abEfnrtv\'`[j])
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			b.WriteByte('\\')
			octal := strconv.FormatUint(uint64(c), 8)
			b.WriteString("000"[len(octal):] + octal)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	b.WriteByte('\'')
	return b.String()
}
