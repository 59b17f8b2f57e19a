package awk

// expr reads an expression, from the loosest operator on.
func (p *parser) expr() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	return p.ternary()
}

func isLvalue(x expr) bool {
	switch x.(type) {
	case varExpr, indexExpr, fieldExpr:
		return true
	}
	return false
}

func (p *parser) ternary() (expr, error) {
	cond, err := p.or()
	if err != nil {
		return nil, err
	}
	if op := p.tok; p.is("=", "+=", "-=", "*=", "/=", "%=", "^=") && isLvalue(cond) {
		if err = p.advance(); err == nil {
			err = p.newlines()
		}
		if err != nil {
			return nil, err
		}
		value, err := p.expr()
		a := assignExpr{to: cond, value: value}
		if op != "=" {
			a.op = op[0]
		}
		return a, err
	}
	if p.tok != "?" {
		return cond, nil
	}
	branch := func() (expr, error) {
		err := p.advance()
		if err == nil {
			err = p.newlines()
		}
		if err != nil {
			return nil, err
		}
		x, err := p.expr()
		if err == nil {
			err = p.newlinesBefore(":")
		}
		return x, err
	}
	yes, err := branch()
	if err != nil {
		return nil, err
	}
	if p.tok != ":" {
		return nil, p.unexpected()
	}
	no, err := branch()
	return condExpr{cond, yes, no}, err
}

// newlinesBefore skips newlines when the token t follows them.
func (p *parser) newlinesBefore(t token) error {
	saved := p.lexer
	if err := p.newlines(); err != nil {
		return err
	}
	if p.tok != t {
		p.lexer = saved
	}
	return nil
}

func (p *parser) or() (expr, error) {
	a, err := p.and()
	for err == nil && p.tok == "||" {
		var b expr
		if b, err = p.operand(p.and); err == nil {
			a = orExpr{a, b}
		}
	}
	return a, err
}

func (p *parser) and() (expr, error) {
	a, err := p.in()
	for err == nil && p.tok == "&&" {
		var b expr
		if b, err = p.operand(p.in); err == nil {
			a = andExpr{a, b}
		}
	}
	return a, err
}

// operand goes past an operator and the newlines after it.
func (p *parser) operand(read func() (expr, error)) (expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.newlines(); err != nil {
		return nil, err
	}
	return read()
}

func (p *parser) in() (expr, error) {
	a, err := p.match()
	for err == nil && p.tok == "in" && !p.noIn {
		if err = p.advance(); err != nil {
			break
		}
		if p.tok != tokName {
			return nil, p.unexpected()
		}
		subs := []expr{a}
		if g, ok := a.(groupExpr); ok {
			subs = g.list
		}
		a = inExpr{subs, p.variable(p.text)}
		err = p.advance()
	}
	return a, err
}

func (p *parser) match() (expr, error) {
	a, err := p.compare()
	for err == nil && p.is("~", "!~") {
		negate := p.tok == "!~"
		var b expr
		if b, err = p.operand(p.compare); err == nil {
			a = matchExpr{a, b, negate}
		}
	}
	return a, err
}

func (p *parser) compare() (expr, error) {
	a, err := p.concat()
	for err == nil {
		op := p.tok
		switch {
		case p.is("<", "<=", "==", "!=", ">="), op == ">" && !p.noGT:
			var b expr
			if b, err = p.operand(p.concat); err == nil {
				a = compareExpr{op, a, b}
			}
		case op == "|" && p.getlineFollows():
			a, err = p.commandGetline(a)
		default:
			return a, nil
		}
	}
	return a, err
}

func (p *parser) getlineFollows() bool {
	ahead := p.lexer
	return ahead.next() == nil && ahead.tok == "getline"
}

func (p *parser) commandGetline(command expr) (expr, error) {
	err := p.advance()
	if err == nil {
		err = p.advance()
	}
	if err != nil {
		return nil, err
	}
	to, err := p.getlineTarget()
	return getlineExpr{'|', command, to}, err
}

// getlineTarget reads the variable that getline may be followed by.
func (p *parser) getlineTarget() (expr, error) {
	if !p.is(tokName, "$") {
		return nil, nil
	}
	return p.primary()
}

// startsOperand says whether the token may begin the right side of a concatenation.
func (p *parser) startsOperand() bool {
	switch p.tok {
	case tokNumber, tokString, tokName, tokCall, tokBuiltin, "$", "!", "(", "-", "+", "++", "--":
		return true
	case "in":
		return false
	}
	return false
}

func (p *parser) concat() (expr, error) {
	a, err := p.additive()
	for err == nil && p.startsOperand() && p.tok != "in" {
		var b expr
		if b, err = p.additive(); err == nil {
			a = concatExpr{a, b}
		}
	}
	return a, err
}

func (p *parser) additive() (expr, error) {
	a, err := p.multiplicative()
	for err == nil && p.is("+", "-") {
		op := p.tok[0]
		var b expr
		if b, err = p.operand(p.multiplicative); err == nil {
			a = binaryExpr{op, a, b}
		}
	}
	return a, err
}

func (p *parser) multiplicative() (expr, error) {
	a, err := p.unary()
	for err == nil && p.is("*", "/", "%") {
		op := p.tok[0]
		var b expr
		if b, err = p.operand(p.unary); err == nil {
			a = binaryExpr{op, a, b}
		}
	}
	return a, err
}

func (p *parser) unary() (expr, error) {
	if p.is("!", "-", "+") {
		if p.depth++; p.depth > maxDepth {
			return nil, p.fail("nested too deeply")
		}
		defer func() { p.depth-- }()
		op := p.tok[0]
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.unary()
		return unaryExpr{op, x}, err
	}
	return p.power()
}

func (p *parser) power() (expr, error) {
	a, err := p.postfix()
	if err != nil || p.tok != "^" {
		return a, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	b, err := p.unary() // right associative, and -x may follow
	return binaryExpr{'^', a, b}, err
}

func (p *parser) postfix() (expr, error) {
	x, err := p.primary()
	if err != nil || !isLvalue(x) || !p.is("++", "--") {
		return x, err
	}
	by := 1.0
	if p.tok == "--" {
		by = -1
	}
	return incrementExpr{to: x, by: by}, p.advance()
}

func (p *parser) primary() (expr, error) {
	switch p.tok {
	case tokNumber:
		n := p.number
		return numberExpr(n), p.advance()
	case tokString:
		s := p.text
		return stringExpr(s), p.advance()
	case "/", "/=":
		if err := p.regex(); err != nil {
			return nil, err
		}
		source := p.text
		return regexExpr{source}, p.advance()
	case "$":
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.fieldIndex()
		return fieldExpr{x}, err
	case "++", "--":
		by := 1.0
		if p.tok == "--" {
			by = -1
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.primary()
		if err == nil && !isLvalue(x) {
			return nil, p.unexpected()
		}
		return incrementExpr{to: x, by: by, prefix: true}, err
	case "(":
		return p.group()
	case tokName:
		return p.named()
	case tokCall:
		return p.call()
	case tokBuiltin:
		return p.builtinCall()
	case "getline":
		return p.getline()
	case "-", "+", "!":
		return p.unary()
	}
	return nil, p.unexpected()
}

// fieldIndex reads what follows "$": a primary, perhaps with a sign or an increment before it.
func (p *parser) fieldIndex() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.is("-", "+", "!") {
		return p.unary()
	}
	return p.primary()
}

func (p *parser) group() (expr, error) {
	saved, savedGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	defer func() { p.noIn, p.noGT = saved, savedGT }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	list, err := p.list()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return groupExpr{list}, nil
}

func (p *parser) named() (expr, error) {
	v := p.variable(p.text)
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok != "[" {
		return varExpr{v}, nil
	}
	subs, err := p.subscripts()
	return indexExpr{v, subs}, err
}

func (p *parser) arguments() ([]expr, error) {
	saved, savedGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	defer func() { p.noIn, p.noGT = saved, savedGT }()
	err := p.expect("(")
	if err == nil {
		err = p.newlines()
	}
	if err != nil {
		return nil, err
	}
	var args []expr
	if p.tok != ")" {
		if args, err = p.list(); err == nil {
			err = p.newlines()
		}
	}
	if err != nil {
		return nil, err
	}
	return args, p.expect(")")
}

func (p *parser) call() (expr, error) {
	f := p.functionNamed(p.text)
	if err := p.advance(); err != nil {
		return nil, err
	}
	args, err := p.arguments()
	if err == nil && f.defined && len(args) > len(f.params) {
		return nil, p.fail("function `%s' called with more arguments than declared", f.name)
	}
	return callExpr{f.name, f, args}, err
}

func (p *parser) builtinCall() (expr, error) {
	name := p.text
	b := builtins[name]
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok != "(" {
		if name == "length" {
			return builtinExpr{name: name, f: b}, nil
		}
		return nil, p.unexpected()
	}
	args, err := p.arguments()
	if err == nil && (len(args) < b.least || len(args) > b.most) {
		return nil, p.fail("%d is invalid as number of arguments for %s", len(args), name)
	}
	return builtinExpr{name, b, args}, err
}

func (p *parser) getline() (expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	to, err := p.getlineTarget()
	if err != nil || p.tok != "<" {
		return getlineExpr{to: to}, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	from, err := p.postfix()
	return getlineExpr{'<', from, to}, err
}
