package calc

import "math/big"

func truth(b bool) number {
	if b {
		return integer(1)
	}
	return zero
}

// binary reads a chain of left associative operators.
func (p *bcParser) binary(read func() (operand, error), ops map[string]func(m *bcMachine, a, b number) (number, error)) (operand, error) {
	a, err := read()
	for err == nil {
		t := p.peek()
		f := ops[t.text]
		if t.kind != 'o' || f == nil {
			return a, nil
		}
		p.pos++
		var b operand
		if b, err = read(); err != nil {
			break
		}
		left := a.value
		a = operand{shown: true, value: func(m *bcMachine) (number, error) {
			if err := m.Step(m.ctx, 1); err != nil {
				return zero, err
			}
			x, err := left(m)
			if err != nil {
				return zero, err
			}
			y, err := b.value(m)
			if err != nil {
				return zero, err
			}
			return f(m, x, y)
		}}
	}
	return a, err
}

type bcOps = map[string]func(m *bcMachine, a, b number) (number, error)

func comparison(holds func(order int) bool) func(*bcMachine, number, number) (number, error) {
	return func(_ *bcMachine, a, b number) (number, error) { return truth(holds(compare(a, b))), nil }
}

var (
	orOps      = bcOps{"||": func(_ *bcMachine, a, b number) (number, error) { return truth(a.sign() != 0 || b.sign() != 0), nil }}
	andOps     = bcOps{"&&": func(_ *bcMachine, a, b number) (number, error) { return truth(a.sign() != 0 && b.sign() != 0), nil }}
	compareOps = bcOps{
		"<": comparison(func(o int) bool { return o < 0 }), "<=": comparison(func(o int) bool { return o <= 0 }),
		">": comparison(func(o int) bool { return o > 0 }), ">=": comparison(func(o int) bool { return o >= 0 }),
		"==": comparison(func(o int) bool { return o == 0 }), "!=": comparison(func(o int) bool { return o != 0 }),
	}
	sumOps = bcOps{
		"+": func(_ *bcMachine, a, b number) (number, error) { return add(a, b), nil },
		"-": func(_ *bcMachine, a, b number) (number, error) { return add(a, b.neg()), nil },
	}
	productOps = bcOps{
		"*": func(m *bcMachine, a, b number) (number, error) { return mul(a, b, m.scale) },
		"/": func(m *bcMachine, a, b number) (number, error) { return div(a, b, m.scale) },
		"%": func(m *bcMachine, a, b number) (number, error) { return mod(a, b, m.scale) },
	}
)

func calculate(op string, m *bcMachine, a, b number) (number, error) {
	if op == "^" {
		return power(a, b, m.scale)
	}
	if f := sumOps[op]; f != nil {
		return f(m, a, b)
	}
	return productOps[op](m, a, b)
}

func (p *bcParser) expression() (operand, error) {
	if err := p.enter(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	return p.binary(func() (operand, error) { return p.binary(p.not, andOps) }, orOps)
}

func (p *bcParser) not() (operand, error) {
	if !p.accept("!") {
		return p.binary(p.assignment, compareOps)
	}
	x, err := p.not()
	return operand{shown: true, value: func(m *bcMachine) (number, error) {
		v, err := x.value(m)
		return truth(v.sign() == 0), err
	}}, err
}

// assignment binds tighter than comparisons, as POSIX has it.
func (p *bcParser) assignment() (operand, error) {
	a, err := p.sum()
	if err != nil || a.place == nil {
		return a, err
	}
	t := p.peek()
	if t.kind != 'o' || t.text != "=" && (len(t.text) != 2 || t.text[1] != '=' || compareOps[t.text] != nil) {
		return a, nil
	}
	p.pos++
	b, err := p.assignment()
	if err != nil {
		return b, err
	}
	to, op := a.place, t.text[:len(t.text)-1]
	return operand{value: func(m *bcMachine) (number, error) {
		v, err := b.value(m)
		if err == nil && op != "" {
			var old number
			if old, err = to.get(m); err == nil {
				v, err = calculate(op, m, old, v)
			}
		}
		if err != nil {
			return zero, err
		}
		return v, to.set(m, v)
	}}, nil
}

func (p *bcParser) sum() (operand, error) {
	return p.binary(func() (operand, error) { return p.binary(p.power, productOps) }, sumOps)
}

// power is right associative; a sign binds tighter.
func (p *bcParser) power() (operand, error) {
	a, err := p.unary()
	if err != nil || !p.accept("^") {
		return a, err
	}
	b, err := p.power()
	return operand{shown: true, value: func(m *bcMachine) (number, error) {
		x, err := a.value(m)
		if err != nil {
			return zero, err
		}
		y, err := b.value(m)
		if err != nil {
			return zero, err
		}
		if err := m.Step(m.ctx, 1+int(y.n.BitLen())); err != nil {
			return zero, err
		}
		return power(x, y, m.scale)
	}}, err
}

func (p *bcParser) unary() (operand, error) {
	if p.accept("-") {
		if err := p.enter(); err != nil {
			return operand{}, err
		}
		defer func() { p.depth-- }()
		x, err := p.unary()
		return operand{shown: true, value: func(m *bcMachine) (number, error) {
			v, err := x.value(m)
			return v.neg(), err
		}}, err
	}
	for _, op := range []string{"++", "--"} {
		if p.accept(op) {
			x, err := p.primary()
			if err != nil || x.place == nil {
				return x, errSyntax
			}
			return increment(x.place, op, true), nil
		}
	}
	x, err := p.primary()
	for _, op := range []string{"++", "--"} {
		if err == nil && x.place != nil && p.accept(op) {
			return increment(x.place, op, false), nil
		}
	}
	return x, err
}

func increment(to *place, op string, prefix bool) operand {
	by := int64(1)
	if op == "--" {
		by = -1
	}
	return operand{shown: true, value: func(m *bcMachine) (number, error) {
		old, err := to.get(m)
		if err != nil {
			return zero, err
		}
		now := add(old, integer(by))
		if err := to.set(m, now); err != nil {
			return zero, err
		}
		if prefix {
			return now, nil
		}
		return old, nil
	}}
}

func (p *bcParser) primary() (operand, error) {
	t := p.next()
	switch {
	case t.kind == 'n':
		return operand{shown: true, value: func(m *bcMachine) (number, error) { return parse(t.text, m.ibase) }}, nil
	case t.kind == 'o' && t.text == "(":
		x, err := p.expression()
		if err != nil {
			return x, err
		}
		return operand{value: x.value, shown: true}, p.expect(")")
	case t.kind == 'o' && t.text == ".", t.kind == 'k' && t.text == "last":
		return fromPlace(&place{func(m *bcMachine) (number, error) { return m.last, nil },
			func(m *bcMachine, v number) error { m.last = v; return nil }}), nil
	case t.kind == 'k':
		return p.builtin(t.text)
	case t.kind == 'i':
		return p.named(t.text)
	}
	return operand{}, errSyntax
}

func fromPlace(at *place) operand { return operand{value: at.get, place: at, shown: true} }

// builtin reads scale, ibase, obase and the functions.
func (p *bcParser) builtin(name string) (operand, error) {
	if p.accept("(") {
		x, err := p.expression()
		if err == nil {
			err = p.expect(")")
		}
		return operand{shown: true, value: func(m *bcMachine) (number, error) {
			v, err := x.value(m)
			if err != nil {
				return v, err
			}
			switch name {
			case "length":
				return integer(int64(max(len(new(big.Int).Abs(v.n).String()), v.scale))), nil
			case "scale":
				return integer(int64(v.scale)), nil
			case "sqrt":
				return sqrt(v, m.scale)
			}
			return zero, errSyntax
		}}, err
	}
	setting := func(m *bcMachine) *int {
		return map[string]*int{"scale": &m.scale, "ibase": &m.ibase, "obase": &m.obase}[name]
	}
	if name != "scale" && name != "ibase" && name != "obase" {
		return operand{}, errSyntax
	}
	return fromPlace(&place{func(m *bcMachine) (number, error) { return integer(int64(*setting(m))), nil },
		func(m *bcMachine, v number) error {
			n := v.to(0)
			value := 1 << 30
			if n.IsInt64() && n.Int64() < 1<<30 {
				value = int(n.Int64())
			}
			switch name {
			case "scale":
				value = min(max(value, 0), maxScale)
			case "ibase":
				value = min(max(value, 2), 36)
			default:
				value = max(value, 2)
			}
			*setting(m) = value
			return nil
		}}), nil
}

// named reads a variable, an element of an array or a call.
func (p *bcParser) named(name string) (operand, error) {
	switch {
	case p.accept("["):
		if p.accept("]") {
			return operand{}, errSyntax
		}
		x, err := p.expression()
		if err == nil {
			err = p.expect("]")
		}
		index := func(m *bcMachine) (string, error) {
			v, err := x.value(m)
			return v.to(0).String(), err
		}
		return fromPlace(&place{func(m *bcMachine) (number, error) {
			i, err := index(m)
			v, ok := m.array(name)[i]
			if !ok {
				v = zero
			}
			return v, err
		}, func(m *bcMachine, v number) error {
			i, err := index(m)
			if err != nil {
				return err
			}
			m.array(name)[i] = v
			return m.Take(64)
		}}), err
	case p.accept("("):
		return p.call(name)
	}
	return fromPlace(&place{func(m *bcMachine) (number, error) { return m.get(name), nil },
		func(m *bcMachine, v number) error { m.vars[name] = v; return nil }}), nil
}

func (p *bcParser) call(name string) (operand, error) {
	var args []eval
	var arrays []string
	for !p.is(")") {
		if t := p.peek(); t.kind == 'i' && p.pos+2 < len(p.tokens) && p.tokens[p.pos+1].text == "[" && p.tokens[p.pos+2].text == "]" {
			p.pos += 3
			args, arrays = append(args, nil), append(arrays, t.text)
		} else {
			x, err := p.expression()
			if err != nil {
				return x, err
			}
			args, arrays = append(args, x.value), append(arrays, "")
		}
		if !p.accept(",") {
			break
		}
	}
	f := p.m.functions[name]
	return operand{shown: f == nil || !f.void, value: func(m *bcMachine) (number, error) { return m.call(name, args, arrays) }}, p.expect(")")
}
