package calc

import "errors"

var errSyntax = errors.New("syntax error")

// run of one expression or statement on the machine.
type (
	eval func(m *bcMachine) (number, error)
	exec func(m *bcMachine) (bcFlow, error)
)

// bcFlow says how a statement was left.
type bcFlow uint8

const (
	bcNext bcFlow = iota
	bcBreak
	bcContinue
	bcReturn
	bcQuit
)

// place is where a value can be stored.
type place struct {
	get func(m *bcMachine) (number, error)
	set func(m *bcMachine, v number) error
}

// operand is an expression, with its place if it has one; shown says that as a statement it prints its value.
type operand struct {
	value eval
	place *place
	shown bool
}

// bcParser turns tokens into functions.
type bcParser struct {
	tokens []token
	pos    int
	depth  int
	m      *bcMachine // for definitions
}

func (p *bcParser) peek() token { return p.tokens[p.pos] }

func (p *bcParser) next() token {
	t := p.tokens[p.pos]
	if t.kind != 0 {
		p.pos++
	}
	return t
}

func (p *bcParser) is(text string) bool {
	t := p.peek()
	return (t.kind == 'o' || t.kind == 'k') && t.text == text
}

func (p *bcParser) accept(text string) bool {
	if p.is(text) {
		p.pos++
		return true
	}
	return false
}

func (p *bcParser) expect(text string) error {
	if !p.accept(text) {
		return errSyntax
	}
	return nil
}

func (p *bcParser) newlines() {
	for p.peek().kind == '\n' {
		p.pos++
	}
}

func (p *bcParser) enter() error {
	if p.depth++; p.depth > 500 {
		return errors.New("nested too deeply")
	}
	return nil
}

func (p *bcParser) statement() (exec, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	switch {
	case t.kind == 's':
		p.pos++
		return func(m *bcMachine) (bcFlow, error) { return bcNext, m.text(t.text) }, nil
	case p.is("{"):
		return p.block()
	case t.kind == 'k':
		if s, err := p.keyword(t.text); s != nil || err != nil {
			return s, err
		}
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	return func(m *bcMachine) (bcFlow, error) {
		v, err := x.value(m)
		if err == nil && x.shown {
			err = m.show(v)
		}
		return bcNext, err
	}, nil
}

func (p *bcParser) block() (exec, error) {
	p.pos++
	var body []exec
	for {
		for p.peek().kind == '\n' || p.is(";") {
			p.pos++
		}
		if p.accept("}") {
			return sequence(body), nil
		}
		if p.peek().kind == 0 {
			return nil, errSyntax
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		body = append(body, s)
		if !p.is("}") && !p.is(";") && p.peek().kind != '\n' {
			return nil, errSyntax
		}
	}
}

func sequence(body []exec) exec {
	return func(m *bcMachine) (bcFlow, error) {
		for _, s := range body {
			if f, err := s(m); f != bcNext || err != nil {
				return f, err
			}
		}
		return bcNext, nil
	}
}

// keyword reads a statement that begins with one, nil when it is an expression after all.
func (p *bcParser) keyword(word string) (exec, error) {
	flows := map[string]bcFlow{"break": bcBreak, "continue": bcContinue, "quit": bcQuit, "halt": bcQuit}
	if f, ok := flows[word]; ok {
		p.pos++
		return func(*bcMachine) (bcFlow, error) { return f, nil }, nil
	}
	switch word {
	case "if", "while", "for", "print", "return", "define":
		p.pos++
	}
	switch word {
	case "if":
		return p.ifStatement()
	case "while":
		return p.while()
	case "for":
		return p.forStatement()
	case "print":
		return p.print()
	case "return":
		return p.returnStatement()
	case "define":
		return p.define()
	}
	return nil, nil
}

func (p *bcParser) condition() (eval, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	return x.value, p.expect(")")
}

func (p *bcParser) ifStatement() (exec, error) {
	cond, err := p.condition()
	if err != nil {
		return nil, err
	}
	p.newlines()
	yes, err := p.statement()
	if err != nil {
		return nil, err
	}
	no := func(*bcMachine) (bcFlow, error) { return bcNext, nil }
	saved := p.pos
	if p.accept(";"); p.peek().kind == '\n' {
		p.newlines()
	}
	if p.accept("else") {
		p.newlines()
		other, err := p.statement()
		if err != nil {
			return nil, err
		}
		no = other
	} else {
		p.pos = saved
	}
	return func(m *bcMachine) (bcFlow, error) {
		v, err := cond(m)
		if err != nil {
			return bcNext, err
		}
		if v.sign() != 0 {
			return yes(m)
		}
		return no(m)
	}, nil
}

func loop(cond eval, step eval, body exec) exec {
	return func(m *bcMachine) (bcFlow, error) {
		for {
			if err := m.Step(m.ctx, 1); err != nil {
				return bcNext, err
			}
			if cond != nil {
				v, err := cond(m)
				if err != nil || v.sign() == 0 {
					return bcNext, err
				}
			}
			f, err := body(m)
			switch {
			case err != nil || f == bcReturn || f == bcQuit:
				return f, err
			case f == bcBreak:
				return bcNext, nil
			}
			if step != nil {
				if _, err := step(m); err != nil {
					return bcNext, err
				}
			}
		}
	}
}

func (p *bcParser) while() (exec, error) {
	cond, err := p.condition()
	if err != nil {
		return nil, err
	}
	p.newlines()
	body, err := p.statement()
	return loop(cond, nil, body), err
}

func (p *bcParser) forStatement() (exec, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var parts [3]eval
	for i, end := range []string{";", ";", ")"} {
		if !p.is(end) {
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			parts[i] = x.value
		}
		if err := p.expect(end); err != nil {
			return nil, err
		}
	}
	p.newlines()
	body, err := p.statement()
	if err != nil {
		return nil, err
	}
	inner := loop(parts[1], parts[2], body)
	return func(m *bcMachine) (bcFlow, error) {
		if parts[0] != nil {
			if _, err := parts[0](m); err != nil {
				return bcNext, err
			}
		}
		return inner(m)
	}, nil
}

func (p *bcParser) print() (exec, error) {
	var parts []exec
	for {
		if t := p.peek(); t.kind == 's' {
			p.pos++
			parts = append(parts, func(m *bcMachine) (bcFlow, error) { return bcNext, m.text(unescapeBC(t.text)) })
		} else {
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			parts = append(parts, func(m *bcMachine) (bcFlow, error) {
				v, err := x.value(m)
				if err == nil {
					m.last = v
					err = m.text(v.format(m.obase))
				}
				return bcNext, err
			})
		}
		if !p.accept(",") {
			return sequence(parts), nil
		}
	}
}

func (p *bcParser) returnStatement() (exec, error) {
	value := func(*bcMachine) (number, error) { return zero, nil }
	if t := p.peek(); t.kind != '\n' && t.kind != 0 && !p.is(";") && !p.is("}") {
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		value = x.value
	}
	return func(m *bcMachine) (bcFlow, error) {
		v, err := value(m)
		m.result = v
		return bcReturn, err
	}, nil
}

// define reads a function; it is known from here on.
func (p *bcParser) define() (exec, error) {
	void := p.accept("void")
	name := p.next()
	if name.kind != 'i' {
		return nil, errSyntax
	}
	f := &bcFunction{void: void}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var err error
	if f.params, err = p.names(")"); err != nil {
		return nil, err
	}
	p.newlines()
	if !p.is("{") {
		return nil, errSyntax
	}
	saved := p.pos
	p.pos++
	for p.peek().kind == '\n' || p.is(";") {
		p.pos++
	}
	if p.accept("auto") {
		if f.autos, err = p.names(""); err != nil {
			return nil, err
		}
		p.pos--
		p.tokens[p.pos] = token{'o', "{"}
	} else {
		p.pos = saved
	}
	if f.body, err = p.block(); err != nil {
		return nil, err
	}
	p.m.functions[name.text] = f
	return func(*bcMachine) (bcFlow, error) { return bcNext, nil }, nil
}

// names reads names, with [] for arrays, up to end; without an end, to the end of the statement.
func (p *bcParser) names(end string) ([]string, error) {
	var out []string
	for end == "" || !p.is(end) {
		t := p.next()
		if t.kind != 'i' {
			return nil, errSyntax
		}
		name := t.text
		if p.accept("[") {
			if err := p.expect("]"); err != nil {
				return nil, err
			}
			name += "["
		}
		out = append(out, name)
		if !p.accept(",") {
			break
		}
	}
	if end == "" {
		if p.peek().kind != '\n' && !p.is(";") {
			return nil, errSyntax
		}
		p.pos++
		return out, nil
	}
	return out, p.expect(end)
}
