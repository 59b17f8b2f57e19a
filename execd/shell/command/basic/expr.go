package basic

import (
	"context"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// expression evaluates the arguments of expr(1). Values are texts; numbers have any length.
type expression struct {
	*tool.Call
	ctx  context.Context
	args []string
	last string // the argument read last, for messages
	err  error
}

func expr(ctx context.Context, c *tool.Call) error {
	args := c.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.Usage(2, "missing operand")
	}
	e := &expression{Call: c, ctx: ctx, args: args}
	value := e.or()
	if e.err == nil && len(e.args) > 0 {
		e.fail("syntax error: unexpected argument '" + e.args[0] + "'")
	}
	if e.err != nil {
		return c.Die(2, "%s", e.err)
	}
	_, _ = c.Out.WriteString(value + "\n")
	if isNull(value) {
		c.Status = 1
	}
	return nil
}

func (e *expression) fail(message string) string {
	if e.err == nil {
		e.err = errors.New(message)
	}
	return ""
}

func isNull(v string) bool {
	return v == "" || strings.Trim(strings.TrimPrefix(v, "-"), "0") == "" && v != "-"
}

// accept takes the next argument if it is one of ops.
func (e *expression) accept(ops ...string) (string, bool) {
	for _, op := range ops {
		if e.err == nil && len(e.args) > 0 && e.args[0] == op {
			e.last, e.args = op, e.args[1:]
			return op, true
		}
	}
	return "", false
}

func (e *expression) or() string {
	v := e.and()
	for {
		if _, ok := e.accept("|"); !ok {
			return v
		}
		w := e.and()
		if isNull(v) {
			if v = w; isNull(v) {
				v = "0"
			}
		}
	}
}

func (e *expression) and() string {
	v := e.compare()
	for {
		if _, ok := e.accept("&"); !ok {
			return v
		}
		if w := e.compare(); isNull(v) || isNull(w) {
			v = "0"
		}
	}
}

func (e *expression) compare() string {
	v := e.sum()
	for {
		op, ok := e.accept("<=", "<", "==", "=", "!=", ">=", ">")
		if !ok {
			return v
		}
		w := e.sum()
		order := strings.Compare(v, w)
		if a, okA := number(v); okA {
			if b, okB := number(w); okB {
				order = a.Cmp(b)
			}
		}
		result := map[string]bool{"<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0, "!=": order != 0,
			">=": order >= 0, ">": order > 0}[op]
		v = "0"
		if result {
			v = "1"
		}
	}
}

func number(v string) (*big.Int, bool) {
	if v == "" || v[0] == '+' {
		return nil, false
	}
	return new(big.Int).SetString(v, 10)
}

func (e *expression) sum() string {
	v := e.product()
	for {
		op, ok := e.accept("+", "-")
		if !ok {
			return v
		}
		v = e.calculate(v, op, e.product())
	}
}

func (e *expression) product() string {
	v := e.match()
	for {
		op, ok := e.accept("*", "/", "%")
		if !ok {
			return v
		}
		v = e.calculate(v, op, e.match())
	}
}

func (e *expression) calculate(v, op, w string) string {
	if e.err != nil {
		return ""
	}
	a, okA := number(v)
	b, okB := number(w)
	if !okA || !okB {
		return e.fail("non-integer argument")
	}
	if a.BitLen()+b.BitLen() > 1<<20 {
		return e.fail("integer is too large")
	}
	r := new(big.Int)
	switch op {
	case "+":
		r.Add(a, b)
	case "-":
		r.Sub(a, b)
	case "*":
		r.Mul(a, b)
	default:
		if b.Sign() == 0 {
			return e.fail("division by zero")
		}
		if op == "/" {
			r.Quo(a, b)
		} else {
			r.Rem(a, b)
		}
	}
	return r.String()
}

func (e *expression) match() string {
	v := e.primary()
	for {
		if _, ok := e.accept(":"); !ok {
			return v
		}
		v = e.matched(v, e.primary())
	}
}

func (e *expression) matched(text, pattern string) string {
	if e.err != nil {
		return ""
	}
	// Only a match at the beginning counts. The group that holds all comes before those of the pattern.
	re, err := regex.Compile(`\`+"`"+`\(`+referringOn(pattern)+`\)`, regex.Options{Step: func(n int) error {
		return e.Step(e.ctx, 1+n>>6)
	}})
	if err != nil {
		return e.fail(err.Error())
	}
	loc, err := re.Find([]byte(text))
	if err != nil {
		return e.fail(err.Error())
	}
	if re.Groups() > 1 {
		if len(loc) < 6 || loc[4] < 0 {
			return ""
		}
		return text[loc[4]:loc[5]]
	}
	if loc == nil {
		return "0"
	}
	return strconv.Itoa(len([]rune(text[loc[0]:loc[1]])))
}

// referringOn makes the back-references of a pattern mean the groups after those that they mean.
func referringOn(pattern string) string {
	b := []byte(pattern)
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] >= '1' && b[i] < '9' {
			b[i]++
		}
	}
	return string(b)
}

func (e *expression) primary() string {
	if e.err != nil {
		return ""
	}
	if len(e.args) == 0 {
		return e.fail("syntax error: missing argument after '" + e.last + "'")
	}
	word := e.args[0]
	e.last, e.args = word, e.args[1:]
	switch {
	case word == "(":
		v := e.or()
		if _, ok := e.accept(")"); !ok && e.err == nil {
			return e.fail("syntax error: expecting ')' after '" + e.last + "'")
		}
		return v
	case word == "+" && len(e.args) > 0:
		return e.quoted()
	case len(e.args) == 0:
	case word == "match":
		return e.matched(e.primary(), e.primary())
	case word == "length":
		return strconv.Itoa(len([]rune(e.primary())))
	case word == "index":
		text, set := e.primary(), e.primary()
		return strconv.Itoa(len([]rune(text[:max(strings.IndexAny(text, set), 0)])) + boolInt(strings.ContainsAny(text, set)))
	case word == "substr":
		return e.substr()
	}
	return word
}

func (e *expression) quoted() string {
	v := e.args[0]
	e.last, e.args = v, e.args[1:]
	return v
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (e *expression) substr() string {
	text := []rune(e.primary())
	at, errAt := strconv.Atoi(e.primary())
	n, errN := strconv.Atoi(e.primary())
	if errAt != nil || errN != nil || at < 1 || n < 1 || at > len(text) {
		return ""
	}
	return string(text[at-1 : min(at-1+n, len(text))])
}
