package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// testParser is test and [: the manual's rules by the number of arguments, and a grammar for more.
type testParser struct {
	sh   *shell
	name string
	args []string
	at   int
}

// testError is what is wrong with an expression.
type testError string

func (sh *shell) builtinTest(args []string) (status int) {
	t := &testParser{sh: sh, name: args[0], args: args[1:]}
	if args[0] == "[" {
		if len(t.args) == 0 || t.args[len(t.args)-1] != "]" {
			sh.warnf("[: missing `]'")
			return 2
		}
		t.args = t.args[:len(t.args)-1]
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(testError)
			if !ok {
				panic(r)
			}
			sh.warnf("%s: %s", t.name, string(e))
			status = 2
		}
	}()
	return boolStatus(t.posix(t.args))
}

func (t *testParser) fail(format string, args ...any) {
	panic(testError(fmt.Sprintf(format, args...)))
}

// posix decides by the number of arguments.
func (t *testParser) posix(a []string) bool {
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
		if isUnaryOp(a[0]) {
			return t.unary(a[0], a[1])
		}
		t.fail("%s: unary operator expected", a[0])
	case 3:
		switch {
		case isBinaryOp(a[1]):
			return t.binary(a[0], a[1], a[2])
		case a[1] == "-a":
			return a[0] != "" && a[2] != ""
		case a[1] == "-o":
			return a[0] != "" || a[2] != ""
		case a[0] == "!":
			return !t.posix(a[1:])
		case a[0] == "(" && a[2] == ")":
			return a[1] != ""
		}
		t.fail("%s: binary operator expected", a[1])
	case 4:
		if a[0] == "!" {
			return !t.posix(a[1:])
		}
		if a[0] == "(" && a[3] == ")" {
			return t.posix(a[1:3])
		}
	}
	t.args, t.at = a, 0
	ok := t.or()
	if t.at < len(t.args) {
		t.fail("too many arguments")
	}
	return ok
}

func (t *testParser) peek(s string) bool { return t.at < len(t.args) && t.args[t.at] == s }

func (t *testParser) or() bool {
	ok := t.and()
	for t.peek("-o") {
		t.at++
		right := t.and()
		ok = ok || right
	}
	return ok
}

func (t *testParser) and() bool {
	ok := t.term()
	for t.peek("-a") {
		t.at++
		right := t.term()
		ok = ok && right
	}
	return ok
}

func (t *testParser) term() bool {
	if t.at >= len(t.args) {
		t.fail("argument expected")
	}
	rest := t.args[t.at:]
	switch {
	case len(rest) >= 3 && isBinaryOp(rest[1]):
		t.at += 3
		return t.binary(rest[0], rest[1], rest[2])
	case rest[0] == "!":
		t.at++
		return !t.term()
	case rest[0] == "(":
		t.at++
		ok := t.or()
		if !t.peek(")") {
			t.fail("`)' expected")
		}
		t.at++
		return ok
	case isUnaryOp(rest[0]) && len(rest) >= 2:
		t.at += 2
		return t.unary(rest[0], rest[1])
	}
	t.at++
	return rest[0] != ""
}

func (t *testParser) unary(op, s string) bool { return t.sh.unaryTest(op, s) }

func isBinaryOp(s string) bool {
	switch s {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *testParser) binary(a, op, b string) bool {
	switch op {
	case "=", "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case ">":
		return a > b
	case "-nt", "-ot", "-ef":
		return t.sh.compareFiles(op, a, b)
	}
	return compareInts(op, t.integer(a), t.integer(b))
}

func (t *testParser) integer(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(s), "+"), 10, 64)
	if err != nil {
		t.fail("%s: integer expression expected", s)
	}
	return n
}
