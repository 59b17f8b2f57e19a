package shell

import (
	"regexp"
	"strings"
)

// The parser refuses what bash finds out only when it comes to it: an expression that is none, a name that is none. The
// texts of these are quoted here, so that the script runs up to them, and on where bash goes on.

// maxOpenings is how many pairs of parentheses before an error are tried, each with a parse of its own.
const maxOpenings = 4

// quoteExpression quotes the expression that the parser refuses: what is between double quotes is read when it is evaluated.
func quoteExpression(text string) (string, bool) {
	at, wrong := refusal(text)
	if !wrong {
		return "", false
	}
	from := min(at+4, len(text))
	for range maxOpenings {
		open := strings.LastIndex(text[:from], "((")
		if open < 0 {
			return "", false
		}
		from = open + 1
		end := expressionEnd(text[open:])
		if end < 0 {
			continue
		}
		inner := text[open+2 : open+end]
		if strings.Contains(inner, ";") { // of a for, most likely, which is three expressions
			continue
		}
		if inner = strings.ReplaceAll(inner, `"`, ""); inner == "" || strings.HasSuffix(inner, `\`) {
			inner += " "
		}
		fixed := text[:open+2] + `"` + inner + `"` + text[open+end:]
		if next, wrong := refusal(fixed); !wrong || next-(len(fixed)-len(text)) > at {
			return fixed, true
		}
	}
	return "", false
}

// expressionEnd returns where the two parentheses are that close those at the start of a text, or -1.
func expressionEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
		case '\'', '"':
			end := closing(text[i+1:], c)
			if end < 0 {
				return -1
			}
			i += 1 + end
		case '(':
			depth++
		case ')':
			if depth--; depth == 1 {
				if strings.HasPrefix(text[i+1:], ")") {
					return i
				}
				return -1
			}
		}
	}
	return -1
}

// escapeName takes from an argument of declare, export and their like the look of an assignment, when what it assigns to is
// no name: the command says so.
func escapeName(text string) (string, bool) {
	err := syntaxOf(text)
	if err == nil || !strings.HasSuffix(err.Error(), "invalid var name") {
		return "", false
	}
	at, _ := refusal(text)
	start := strings.LastIndexAny(text[:at], " \t\n") + 1
	if start == 0 || start == len(text) {
		return "", false
	}
	fixed := text[:start] + `""` + text[start:]
	next, wrong := refusal(fixed)
	return fixed, !wrong || next > at+2
}

// letWord is a let where a command may stand.
var letWord = regexp.MustCompile(`(?:^|[\s;&|({])(let)(?:[\s;&|)]|$)`)

// escapeLet makes a let that the parser refuses a command like any other, whose arguments are read when it is run.
func escapeLet(text string) (string, bool) {
	at, wrong := refusal(text)
	if !wrong {
		return "", false
	}
	lets := letWord.FindAllStringSubmatchIndex(text[:min(at+4, len(text))], -1)
	if len(lets) == 0 {
		return "", false
	}
	start := lets[len(lets)-1][2]
	fixed := text[:start] + `\` + text[start:]
	next, wrong := refusal(fixed)
	return fixed, !wrong || next > at+1
}
