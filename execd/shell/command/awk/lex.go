package awk

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// token is what the lexer tells apart: a punctuation or keyword by its own text, else one of the kinds below.
type token string

const (
	tokEOF     token = "end of program"
	tokNewline token = "newline"
	tokNumber  token = "number"
	tokString  token = "string"
	tokRegex   token = "regex"
	tokName    token = "name"
	tokCall    token = "function name" // a name with its parenthesis directly after it
	tokBuiltin token = "builtin"
)

var keywords = map[string]bool{
	"BEGIN": true, "END": true, "function": true, "func": true, "if": true, "else": true, "while": true, "for": true,
	"do": true, "break": true, "continue": true, "next": true, "nextfile": true, "exit": true, "return": true,
	"delete": true, "in": true, "getline": true, "print": true, "printf": true, "switch": true, "case": true, "default": true,
}

// lexer cuts a program into tokens.
type lexer struct {
	src  string
	pos  int
	line int

	tok    token
	text   string
	number float64
	last   token // before tok
	start  int   // of tok
}

func (l *lexer) fail(format string, args ...any) error {
	return syntaxError{l.line, fmt.Sprintf(format, args...)}
}

// syntaxError is what is wrong with a program.
type syntaxError struct {
	line int
	text string
}

func (e syntaxError) Error() string { return fmt.Sprintf("cmd. line:%d: %s", e.line, e.text) }

// operators, the longest first.
var operators = []string{
	"**=", "&&", "||", "==", "<=", ">=", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "!~", ">>", "**", "|&",
	"{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=", "@",
}

func (l *lexer) next() error {
	l.last = l.tok
	l.blanks()
	l.start = l.pos
	if l.pos >= len(l.src) {
		l.tok, l.text = tokEOF, ""
		return nil
	}
	c := l.src[l.pos]
	switch {
	case c == '\n':
		l.pos++
		l.line++
		l.tok = tokNewline
		return nil
	case c == '"':
		return l.str()
	case c >= '0' && c <= '9', c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		return l.num()
	case isLetter(c):
		l.name()
		return nil
	}
	for _, op := range operators {
		if strings.HasPrefix(l.src[l.pos:], op) {
			l.pos += len(op)
			l.tok, l.text = token(op), op
			if op == "**" {
				l.tok = "^"
			}
			if op == "**=" {
				l.tok = "^="
			}
			return nil
		}
	}
	return l.fail("syntax error: unexpected %q", c)
}

func (l *lexer) blanks() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.pos++
		case strings.HasPrefix(rest, "\\\n"):
			l.pos += 2
			l.line++
		case strings.HasPrefix(rest, "\\\r\n"):
			l.pos += 3
			l.line++
		case rest[0] == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		default:
			return
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func (l *lexer) name() {
	start := l.pos
	for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
		l.pos++
	}
	l.text = l.src[start:l.pos]
	switch {
	case keywords[l.text]:
		l.tok = token(l.text)
		if l.text == "func" {
			l.tok = "function"
		}
	case builtins[l.text] != nil:
		l.tok = tokBuiltin
	case l.pos < len(l.src) && l.src[l.pos] == '(':
		l.tok = tokCall
	default:
		l.tok = tokName
	}
}

func (l *lexer) num() error {
	start := l.pos
	if strings.HasPrefix(l.src[start:], "0x") || strings.HasPrefix(l.src[start:], "0X") {
		end := start + 2
		for end < len(l.src) && strings.IndexByte("0123456789abcdefABCDEF", l.src[end]) >= 0 {
			end++
		}
		if n, err := strconv.ParseUint(l.src[start+2:end], 16, 64); err == nil {
			l.pos, l.tok, l.number = end, tokNumber, float64(n)
			return nil
		}
	}
	if n, size := octal(l.src[start:]); size > 0 {
		l.pos, l.tok, l.number = start+size, tokNumber, n
		return nil
	}
	l.number, l.pos = numberPrefix(l.src[start:])
	l.pos += start
	l.tok = tokNumber
	return nil
}

// octal reads a number that begins with 0, in the program's text only, and how long it is; 0 when it is a decimal one.
func octal(s string) (n float64, size int) {
	if len(s) < 2 || s[0] != '0' {
		return 0, 0
	}
	for size < len(s) && isDigit(s[size]) {
		size++
	}
	if size < len(s) && (s[size] == '.' || s[size]|0x20 == 'e') {
		return 0, 0
	}
	u, err := strconv.ParseUint(s[:size], 8, 64)
	if err != nil {
		return 0, 0
	}
	return float64(u), size
}

func (l *lexer) str() error {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); {
		switch c := l.src[i]; c {
		case '"':
			l.tok, l.text, l.pos = tokString, b.String(), i+1
			return nil
		case '\n':
			return l.fail("unterminated string")
		case '\\':
			text, size := unescape(l.src[i:])
			b.WriteString(text)
			i += size
		default:
			b.WriteByte(c)
			i++
		}
	}
	return l.fail("unterminated string")
}

// unescape reads the escape at the start of s. One that is not known keeps its backslash where a regular expression may
// want it.
func unescape(s string) (text string, size int) {
	if len(s) == 1 {
		return `\`, 1
	}
	c := s[1]
	if i := strings.IndexByte(`"\/abfnrtv`, c); i >= 0 {
		return "\"\\/\a\b\f\n\r\t\v"[i : i+1], 2
	}
	switch {
	case c == '\n':
		return "", 2
	case c >= '0' && c <= '7':
		n, i := 0, 1
		for i < len(s) && i < 4 && s[i] >= '0' && s[i] <= '7' {
			n = n*8 + int(s[i]-'0')
			i++
		}
		return string([]byte{byte(n)}), i
	case c == 'x' && len(s) > 2:
		i := 2
		for i < len(s) && i < 4 && strings.IndexByte("0123456789abcdefABCDEF", s[i]) >= 0 {
			i++
		}
		if n, err := strconv.ParseUint(s[2:i], 16, 8); err == nil {
			return string([]byte{byte(n)}), i
		}
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	return s[:1+n], 1 + n
}

// regex reads a regular expression: the token was "/" or "/=".
func (l *lexer) regex() error {
	start := l.start + 1
	inSet := false
	for i := start; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\n':
			return l.fail("unterminated regexp")
		case c == '\\':
			i++
		case c == '[' && !inSet:
			inSet = true
			if i+1 < len(l.src) && l.src[i+1] == '^' {
				i++
			}
			if i+1 < len(l.src) && l.src[i+1] == ']' {
				i++
			}
		case c == '[' && i+1 < len(l.src) && l.src[i+1] == ':':
			if end := strings.Index(l.src[i:], ":]"); end > 0 {
				i += end + 1
			}
		case c == ']':
			inSet = false
		case c == '/' && !inSet:
			l.tok, l.text, l.pos = tokRegex, strings.ReplaceAll(l.src[start:i], `\/`, "/"), i+1
			return nil
		}
	}
	return l.fail("unterminated regexp")
}
