package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// arith evaluates the text of an expression. An error gives up the line.
func (sh *shell) arith(text string) int64 {
	n, err := sh.tryArith(text)
	if err != nil {
		sh.fatalf("%v", err)
	}
	return n
}

// arithOf is arith for a command, which an error names.
func (sh *shell) arithOf(command, text string) int64 {
	n, err := sh.tryArith(text)
	if err != nil {
		sh.fatalf("%s: %v", command, err)
	}
	return n
}

// tryArith is arith with an error, in the shell's words.
func (sh *shell) tryArith(text string) (n int64, err error) {
	if n, ok := plainNumber(text); ok {
		return n, nil
	}
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(arithError); !ok {
				panic(r)
			}
		}
	}()
	return sh.arithAt(text, 0), nil
}

// plainNumber reads a short decimal number.
func plainNumber(s string) (int64, bool) {
	if s == "" || len(s) > 18 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// arithAt parses and evaluates text that a variable at this depth has given.
func (sh *shell) arithAt(text string, depth int) int64 {
	if depth > maxArithDepth {
		panic(arithError{fmt.Errorf("%s: expression recursion level exceeded (error token is \"%s\")", text, text)})
	}
	node, err := sh.cache.expression(text)
	if err != nil {
		panic(err)
	}
	e := arithEval{sh: sh, text: text, depth: depth}
	return e.eval(node)
}

func (c *cache) expression(text string) (*arithNode, error) {
	c.mu.Lock()
	node, ok := c.exprs[text]
	c.mu.Unlock()
	if ok {
		return node, nil
	}
	node, err := parseArith(text)
	if err != nil {
		return nil, err
	}
	return remember(c, c.exprs, text, func() *arithNode { return node }), nil
}

// arithEval evaluates one expression.
type arithEval struct {
	sh    *shell
	text  string
	depth int
}

func (e *arithEval) fail(what, token string) {
	panic(arithError{fmt.Errorf("%s: %s (error token is \"%s\")", strings.TrimSpace(e.text), what, token)})
}

func (e *arithEval) eval(n *arithNode) int64 {
	switch n.op {
	case "num":
		return n.num
	case "var":
		return e.value(n.ref)
	case "()":
		return e.eval(n.x)
	case "u!":
		return truth(e.eval(n.x) == 0)
	case "u~":
		return ^e.eval(n.x)
	case "u+":
		return e.eval(n.x)
	case "u-":
		return -e.eval(n.x)
	case "&&":
		return truth(e.eval(n.x) != 0 && e.eval(n.y) != 0)
	case "||":
		return truth(e.eval(n.x) != 0 || e.eval(n.y) != 0)
	case "?":
		if e.eval(n.x) != 0 {
			return e.eval(n.y)
		}
		return e.eval(n.z)
	case ",":
		e.eval(n.x)
		return e.eval(n.y)
	case "=":
		return e.assign(n)
	case "++x":
		return e.put(n.ref, e.value(n.ref)+1)
	case "--x":
		return e.put(n.ref, e.value(n.ref)-1)
	case "x++":
		old := e.value(n.ref)
		e.put(n.ref, old+1)
		return old
	case "x--":
		old := e.value(n.ref)
		e.put(n.ref, old-1)
		return old
	}
	return e.binary(n.op, e.eval(n.x), e.eval(n.y), n.text)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (e *arithEval) binary(op string, x, y int64, text string) int64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/", "%":
		if y == 0 {
			e.fail("division by 0", text)
		}
		if y == -1 { // the one quotient that does not fit
			if op == "%" {
				return 0
			}
			return -x
		}
		if op == "%" {
			return x % y
		}
		return x / y
	case "**":
		return e.power(x, y, text)
	case "<<":
		return x << (uint64(y) & 63)
	case ">>":
		return x >> (uint64(y) & 63)
	case "&":
		return x & y
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<":
		return truth(x < y)
	case ">":
		return truth(x > y)
	case "<=":
		return truth(x <= y)
	}
	return truth(x >= y)
}

func (e *arithEval) power(x, y int64, text string) int64 {
	if y < 0 {
		e.fail("exponent less than 0", text)
	}
	result := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			result *= x
		}
		x *= x
	}
	return result
}

// value is what a variable stands for: its value is an expression itself.
func (e *arithEval) value(r ref) int64 {
	r = e.resolve(r)
	s, ok := e.element(r)
	if !ok && e.sh.on(optNounset) {
		e.sh.unbound("%s: unbound variable", r)
	}
	if s == "" {
		return 0
	}
	if n, ok := plainNumber(s); ok {
		return n
	}
	return e.sh.arithAt(s, e.depth+1)
}

func (e *arithEval) element(r ref) (string, bool) {
	if r.hasSub {
		if v := e.sh.lookup(r.name); v == nil || v.attrs&attrAssoc == 0 {
			r.sub = strconv.FormatInt(e.sh.arithAt(r.sub, e.depth+1), 10)
		}
	}
	return e.sh.element(r)
}

// resolve follows namerefs, and takes the quotes off a key.
func (e *arithEval) resolve(r ref) ref {
	to, _ := e.sh.deref(r)
	if to.hasSub && strings.ContainsAny(to.sub, "'\"$`\\") {
		to.sub = e.sh.subscriptText(to.name, to.sub)
	}
	return to
}

func (e *arithEval) put(r ref, n int64) int64 {
	to := e.resolve(r)
	if to.hasSub {
		if v := e.sh.lookup(to.name); v == nil || v.attrs&attrAssoc == 0 {
			to.sub = strconv.FormatInt(e.sh.arithAt(to.sub, e.depth+1), 10)
		}
	}
	if err := e.sh.assign(to, strconv.FormatInt(n, 10), false); err != nil {
		panic(arithError{err})
	}
	return n
}

func (e *arithEval) assign(n *arithNode) int64 {
	if n.z.op == "" {
		return e.put(n.ref, e.eval(n.y))
	}
	old := e.value(n.ref)
	return e.put(n.ref, e.binary(n.z.op, old, e.eval(n.y), n.text))
}
