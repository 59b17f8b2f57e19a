package awk

import (
	"math"
	"strings"
)

func (in *interp) eval(x expr) (value, error) {
	switch x := x.(type) {
	case numberExpr:
		return num(float64(x)), nil
	case stringExpr:
		return str(string(x)), nil
	case fieldExpr:
		i, err := in.fieldNumber(x.index)
		if err != nil {
			return value{}, err
		}
		return in.field(i), nil
	case varExpr:
		return in.variable(x.v)
	case indexExpr:
		return in.element(x)
	case assignExpr:
		return in.assignment(x)
	case compareExpr:
		return in.comparison(x)
	case concatExpr:
		return in.concat(x)
	case binaryExpr:
		return in.binary(x)
	case groupExpr:
		if len(x.list) == 1 {
			return in.eval(x.list[0])
		}
		key, err := in.key(x.list)
		return str(key), err
	case incrementExpr:
		return in.increment(x)
	case callExpr:
		return in.call(x)
	case builtinExpr:
		if err := in.tick(); err != nil {
			return value{}, err
		}
		return x.f.run(in, x.args)
	}
	return in.evalLogic(x)
}

func (in *interp) evalLogic(x expr) (value, error) {
	switch x := x.(type) {
	case regexExpr:
		re, err := in.compile(x.source)
		if err != nil {
			return value{}, err
		}
		ok, err := re.Match([]byte(in.whole()))
		return boolean(ok), err
	case matchExpr:
		v, err := in.eval(x.text)
		if err != nil {
			return value{}, err
		}
		re, err := in.regexOf(x.re)
		if err != nil {
			return value{}, err
		}
		ok, err := re.Match([]byte(in.text(v)))
		return boolean(ok != x.negate), err
	case unaryExpr:
		v, err := in.eval(x.x)
		switch x.op {
		case '!':
			return boolean(!v.truth()), err
		case '-':
			return num(-v.num()), err
		}
		return num(v.num()), err
	case condExpr:
		ok, err := in.truth(x.cond)
		if err != nil {
			return value{}, err
		}
		if ok {
			return in.eval(x.yes)
		}
		return in.eval(x.no)
	case andExpr:
		ok, err := in.truth(x.a)
		if err == nil && ok {
			ok, err = in.truth(x.b)
		}
		return boolean(ok), err
	case orExpr:
		ok, err := in.truth(x.a)
		if err == nil && !ok {
			ok, err = in.truth(x.b)
		}
		return boolean(ok), err
	case inExpr:
		key, err := in.key(x.subs)
		if err != nil {
			return value{}, err
		}
		a, err := in.arrayOf(x.array)
		if err != nil {
			return value{}, err
		}
		_, ok := a.values[key]
		return boolean(ok), nil
	case getlineExpr:
		return in.getline(x)
	}
	return value{}, fatal("cannot evaluate that")
}

func (in *interp) truth(x expr) (bool, error) {
	v, err := in.eval(x)
	return v.truth(), err
}

func (in *interp) variable(v *variable) (value, error) {
	if v.scope == special {
		if v.index == varNF {
			in.split()
		}
		return in.vars[v.index], nil
	}
	s := in.slot(v)
	if s.array != nil {
		return value{}, fatal("attempt to use array `%s' in a scalar context", v.name)
	}
	return s.v, nil
}

func (in *interp) element(x indexExpr) (value, error) {
	a, err := in.arrayOf(x.array)
	if err != nil {
		return value{}, err
	}
	key, err := in.key(x.subs)
	if err != nil {
		return value{}, err
	}
	c, err := in.cellOf(a, key)
	return c.v, err
}

func (in *interp) assignment(x assignExpr) (value, error) {
	v, err := in.eval(x.value)
	if err != nil {
		return v, err
	}
	if x.op != 0 {
		old, err := in.eval(x.to)
		if err != nil {
			return old, err
		}
		if v, err = calculate(x.op, old.num(), v.num()); err != nil {
			return v, err
		}
	}
	return v, in.assign(x.to, v)
}

func (in *interp) increment(x incrementExpr) (value, error) {
	old, err := in.eval(x.to)
	if err != nil {
		return old, err
	}
	after := num(old.num() + x.by)
	if err := in.assign(x.to, after); err != nil {
		return old, err
	}
	if x.prefix {
		return after, nil
	}
	return num(old.num()), nil
}

func (in *interp) comparison(x compareExpr) (value, error) {
	a, err := in.eval(x.a)
	if err != nil {
		return a, err
	}
	b, err := in.eval(x.b)
	if err != nil {
		return b, err
	}
	a, b = a.settle(), b.settle()
	if a.kind != text && b.kind != text && (math.IsNaN(a.num()) || math.IsNaN(b.num())) {
		return boolean(x.op == "!="), nil
	}
	order := compare(a, b, in.convfmt())
	switch x.op {
	case "<":
		return boolean(order < 0), nil
	case "<=":
		return boolean(order <= 0), nil
	case "==":
		return boolean(order == 0), nil
	case "!=":
		return boolean(order != 0), nil
	case ">":
		return boolean(order > 0), nil
	}
	return boolean(order >= 0), nil
}

func (in *interp) concat(x concatExpr) (value, error) {
	// A chain is joined at once: a.b.c.d costs its length, not its square.
	var parts []string
	size := 0
	var walk func(x expr) error
	walk = func(x expr) error {
		if c, ok := x.(concatExpr); ok {
			if err := walk(c.a); err != nil {
				return err
			}
			x = c.b
		}
		v, err := in.eval(x)
		s := in.text(v)
		parts, size = append(parts, s), size+len(s)
		return err
	}
	if err := walk(x); err != nil {
		return value{}, err
	}
	if size > 1<<16 {
		if err := in.Step(in.ctx, size>>10); err != nil {
			return value{}, err
		}
		err := in.Meter.Memory(int64(size))
		_ = in.Meter.Memory(-int64(size))
		if err != nil {
			return value{}, err
		}
	}
	return str(strings.Join(parts, "")), nil
}

func (in *interp) binary(x binaryExpr) (value, error) {
	a, err := in.eval(x.a)
	if err != nil {
		return a, err
	}
	b, err := in.eval(x.b)
	if err != nil {
		return b, err
	}
	return calculate(x.op, a.num(), b.num())
}

func calculate(op byte, a, b float64) (value, error) {
	switch op {
	case '+':
		return num(a + b), nil
	case '-':
		return num(a - b), nil
	case '*':
		return num(a * b), nil
	case '/':
		if b == 0 {
			return value{}, fatal("division by zero attempted")
		}
		return num(a / b), nil
	case '%':
		if b == 0 {
			return value{}, fatal("division by zero attempted in `%%'")
		}
		return num(math.Mod(a, b)), nil
	}
	return num(math.Pow(a, b)), nil
}

// call runs one of the program's functions. Arrays are passed by reference, also those that become arrays only inside.
func (in *interp) call(x callExpr) (value, error) {
	if err := in.tick(); err != nil {
		return value{}, err
	}
	if in.calls++; in.calls > maxCalls {
		return value{}, fatal("function calls nested too deeply")
	}
	defer func() { in.calls-- }()
	frame := make([]slot, len(x.f.params))
	for i, arg := range x.args {
		if i >= len(frame) {
			return value{}, fatal("function `%s' called with more arguments than declared", x.f.name)
		}
		if v, ok := arg.(varExpr); ok && v.v.scope != special {
			s := in.slot(v.v)
			if s.array != nil {
				frame[i].array = s.array
				continue
			}
			if s.v.kind == unset {
				frame[i].alias = s
				if s.alias != nil {
					frame[i].alias = s.alias
				}
				continue
			}
		}
		v, err := in.eval(arg)
		if err != nil {
			return value{}, err
		}
		frame[i].v = v
	}
	saved := in.frame
	in.frame = frame
	in.result = value{}
	_, err := in.statements(x.f.body)
	in.frame = saved
	result := in.result
	in.result = value{}
	return result, err
}
