package calc

import (
	"errors"
	"fmt"
	"strings"
)

// token of bc: kind is 'n' number, 's' string, 'i' name, 'k' keyword, 'o' operator, '\n' and 0 for the end.
type token struct {
	kind byte
	text string
}

var bcKeywords = map[string]bool{
	"if": true, "else": true, "while": true, "for": true, "define": true, "auto": true, "return": true, "break": true,
	"continue": true, "quit": true, "halt": true, "print": true, "length": true, "sqrt": true, "scale": true, "ibase": true,
	"obase": true, "last": true, "void": true, "read": true,
}

var bcOperators = []string{
	"&&", "||", "<=", ">=", "==", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "+", "-", "*", "/", "%", "^", "=", "<",
	">", "!", "(", ")", "{", "}", "[", "]", ";", ",", ".",
}

// lexBC cuts a program into tokens.
func lexBC(src string) ([]token, error) {
	var out []token
	for i := 0; i < len(src); {
		c, rest := src[i], src[i:]
		switch {
		case c == '\n':
			out = append(out, token{'\n', "\n"})
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(rest, "\\\n"):
			i += 2
		case c == '#':
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			i += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return nil, errors.New("end of file in a comment")
			}
			i += end + 4
		case c == '"':
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, errSyntax
			}
			out = append(out, token{'s', rest[1 : 1+end]})
			i += end + 2
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c == '.' && len(rest) > 1 && isBCDigit(rest[1]):
			n := 0
			for n < len(rest) && (isBCDigit(rest[n]) || rest[n] == '.' && !strings.Contains(rest[:n], ".")) {
				n++
			}
			out = append(out, token{'n', rest[:n]})
			i += n
		case c >= 'a' && c <= 'z':
			n := 0
			for n < len(rest) && (rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_') {
				n++
			}
			kind := byte('i')
			if bcKeywords[rest[:n]] {
				kind = 'k'
			}
			out = append(out, token{kind, rest[:n]})
			i += n
		default:
			op := ""
			for _, o := range bcOperators {
				if strings.HasPrefix(rest, o) {
					op = o
					break
				}
			}
			if op == "" {
				return nil, fmt.Errorf("illegal character: %c", c)
			}
			out = append(out, token{'o', op})
			i += len(op)
		}
	}
	return append(out, token{}), nil
}

func isBCDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }
