package shell

import (
	"errors"
	"fmt"
	"strings"
)

// arithNode is a node of an expression.
type arithNode struct {
	op      string // an operator; "num", "var", "++x", "x++" and their like
	x, y, z *arithNode
	num     int64
	ref     ref    // of "var"
	text    string // from here on to the expression's end, for messages
}

// arithParser parses an expression of C's, as the manual's "Shell Arithmetic" has it, by precedence climbing.
type arithParser struct {
	text  string // all of it, for messages
	rest  string // what is left, from the current token on
	last  string // rest as it was a token ago
	tok   string // the current token: an operator, "num", "name" or "" at the end
	value string // of a number or a name
	after string // what is left behind the current token
	depth int
}

var arithBinary = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
	"+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}

var arithAssign = map[string]string{
	"=": "", "+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "<<=": "<<", ">>=": ">>", "&=": "&", "^=": "^", "|=": "|",
}

// arithTokens are the operators, longer ones first.
var arithTokens = []string{
	"<<=", ">>=", "**", "++", "--", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "&=",
	"^=", "|=", "+", "-", "*", "/", "%", "<", ">", "=", "!", "~", "&", "|", "^", "?", ":", ",", "(", ")",
}

func parseArith(text string) (node *arithNode, err error) {
	p := &arithParser{text: text, after: text}
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(arithError); !ok {
				panic(r)
			}
		}
	}()
	p.next()
	if p.tok == "" {
		return &arithNode{op: "num"}, nil
	}
	node = p.comma()
	if p.tok != "" {
		p.fail("syntax error in expression")
	}
	return node, nil
}

// arithError is what is wrong with an expression, in bash's words.
type arithError struct{ error }

func (p *arithParser) fail(what string) {
	token := p.rest
	if token == "" { // at the end it is the last token that is to blame
		token = p.last
	}
	panic(arithError{fmt.Errorf("%s: %s (error token is \"%s\")", strings.TrimLeft(p.text, " \t\n\r"), what, token)})
}

func (p *arithParser) next() {
	before := p.tok
	if p.rest != "" {
		p.last = p.rest
	}
	p.rest = strings.TrimLeft(p.after, " \t\n\r")
	if p.rest == "" {
		p.tok, p.after = "", ""
		return
	}
	c := p.rest[0]
	switch {
	case c >= '0' && c <= '9':
		n := 1
		for n < len(p.rest) && (isNameByte(p.rest[n]) || p.rest[n] == '#' || p.rest[n] == '@' && strings.Contains(p.rest[:n], "#")) {
			n++
		}
		p.tok, p.value, p.after = "num", p.rest[:n], p.rest[n:]
		return
	case isNameByte(c):
		n := 1
		for n < len(p.rest) && isNameByte(p.rest[n]) {
			n++
		}
		p.tok, p.value, p.after = "name", p.rest[:n], p.rest[n:]
		return
	}
	for _, t := range arithTokens {
		if strings.HasPrefix(p.rest, t) {
			if (t == "++" || t == "--") && before != "name" && !startsName(p.rest[2:]) {
				t = t[:1] // of two signs, as in 1++2
			}
			p.tok, p.after = t, p.rest[len(t):]
			return
		}
	}
	if before == "num" || before == "name" {
		p.fail("syntax error: invalid arithmetic operator")
	}
	p.fail("syntax error: operand expected")
}

// startsName reports whether a name follows, blanks aside.
func startsName(text string) bool {
	text = strings.TrimLeft(text, " \t\n\r")
	return text != "" && isNameByte(text[0]) && (text[0] < '0' || text[0] > '9')
}

func (p *arithParser) enter() {
	if p.depth++; p.depth > maxArithDepth {
		panic(arithError{errors.New("expression recursion level exceeded")})
	}
}

func (p *arithParser) comma() *arithNode {
	p.enter()
	defer func() { p.depth-- }()
	x := p.assign()
	for p.tok == "," {
		p.next()
		x = &arithNode{op: ",", x: x, y: p.assign()}
	}
	return x
}

func (p *arithParser) assign() *arithNode {
	p.enter()
	defer func() { p.depth-- }()
	x := p.ternary()
	op, ok := arithAssign[p.tok]
	if !ok {
		return x
	}
	if x.op != "var" {
		p.fail("attempted assignment to non-variable")
	}
	p.next()
	text := p.rest
	return &arithNode{op: "=", ref: x.ref, x: x, y: p.assign(), z: &arithNode{op: op}, text: text}
}

func (p *arithParser) ternary() *arithNode {
	x := p.binary(1)
	if p.tok != "?" {
		return x
	}
	p.next()
	if p.tok == ":" || p.tok == "" {
		p.fail("expression expected")
	}
	y := p.comma()
	if p.tok != ":" {
		p.fail("`:' expected for conditional expression")
	}
	p.next()
	if p.tok == "" {
		p.fail("expression expected")
	}
	return &arithNode{op: "?", x: x, y: y, z: p.assignOrTernary()}
}

func (p *arithParser) assignOrTernary() *arithNode {
	p.enter()
	defer func() { p.depth-- }()
	return p.ternary()
}

func (p *arithParser) binary(level int) *arithNode {
	x := p.unary()
	for {
		op := p.tok
		l, ok := arithBinary[op]
		if !ok || l < level {
			return x
		}
		p.next()
		text := p.rest
		var y *arithNode
		if op == "**" {
			p.enter()
			y = p.binary(l) // right to left
			p.depth--
		} else {
			y = p.binary(l + 1)
		}
		x = &arithNode{op: op, x: x, y: y, text: text}
	}
}

func (p *arithParser) unary() *arithNode {
	p.enter()
	defer func() { p.depth-- }()
	switch op := p.tok; op {
	case "!", "~", "+", "-":
		p.next()
		return &arithNode{op: "u" + op, x: p.unary()}
	case "++", "--":
		p.next()
		if p.tok == "name" {
			x := p.primary()
			return &arithNode{op: op + "x", x: x, ref: x.ref}
		}
		x := &arithNode{op: "u" + op[:1], x: p.unary()} // two signs
		return &arithNode{op: "u" + op[:1], x: x}
	}
	x := p.primary()
	if (p.tok == "++" || p.tok == "--") && x.op == "var" {
		x = &arithNode{op: "x" + p.tok, x: x, ref: x.ref}
		p.next()
	}
	return x
}

func (p *arithParser) primary() *arithNode {
	switch p.tok {
	case "num":
		n, err := arithNumber(p.value)
		if err != "" {
			panic(arithError{fmt.Errorf("%s: %s (error token is \"%s\")", strings.TrimSpace(p.text), err, p.value)})
		}
		p.next()
		return &arithNode{op: "num", num: n}
	case "name":
		x := &arithNode{op: "var", ref: ref{name: p.value}, text: p.text}
		if strings.HasPrefix(p.after, "[") {
			n := bracketLength(p.after)
			if n < 0 {
				p.fail("bad array subscript")
			}
			x.ref.sub, x.ref.hasSub = p.after[1:n], true
			p.after = p.after[n+1:]
		}
		p.next()
		return x
	case "(":
		p.next()
		x := p.comma()
		if p.tok != ")" {
			p.fail("missing `)'")
		}
		p.next()
		return &arithNode{op: "()", x: x}
	}
	p.fail("syntax error: operand expected")
	return nil
}

// bracketLength returns where the bracket at the start of s is closed, or -1.
func bracketLength(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// arithNumber reads a constant: decimal, 0octal, 0xhex or base#digits.
func arithNumber(s string) (n int64, problem string) {
	base, digits := uint64(10), s
	switch {
	case strings.Contains(s, "#"):
		b, d, _ := strings.Cut(s, "#")
		bn, problem := arithNumber(b)
		if problem != "" || bn < 2 || bn > 64 {
			return 0, "invalid arithmetic base"
		}
		if d == "" {
			return 0, "invalid integer constant"
		}
		base, digits = uint64(bn), d
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, digits = 8, s[1:]
	}
	var u uint64
	for i := range len(digits) {
		d, ok := digitValue(digits[i], base)
		if !ok || d >= base {
			return 0, "value too great for base"
		}
		u = u*base + d
	}
	return int64(u), ""
}

func digitValue(c byte, base uint64) (uint64, bool) {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0'), true
	case c >= 'a' && c <= 'z':
		return uint64(c-'a') + 10, true
	case c >= 'A' && c <= 'Z':
		if base <= 36 {
			return uint64(c-'A') + 10, true
		}
		return uint64(c-'A') + 36, true
	case c == '@':
		return 62, true
	case c == '_':
		return 63, true
	}
	return 0, false
}
