package awk

// maxDepth bounds nesting: the parser and the interpreter recurse.
const maxDepth = 1000

// parser reads a program.
type parser struct {
	lexer
	prog   *program
	locals map[string]int // of the function that is read; nil outside
	depth  int
	noIn   bool // "in" ends the expression: the head of a for
	noGT   bool // ">" ends it: print's arguments
}

func parse(src string) (*program, error) {
	p := &parser{lexer: lexer{src: src, line: 1}, prog: &program{
		functions: map[string]*function{}, globals: map[string]*variable{},
	}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for {
		if err := p.terminators(); err != nil {
			return nil, err
		}
		if p.tok == tokEOF {
			break
		}
		if err := p.item(); err != nil {
			return nil, err
		}
	}
	for _, f := range p.prog.functions {
		if !f.defined {
			return nil, p.fail("function `%s' not defined", f.name)
		}
	}
	return p.prog, nil
}

func (p *parser) advance() error { return p.lexer.next() }

func (p *parser) is(tokens ...token) bool {
	for _, t := range tokens {
		if p.tok == t {
			return true
		}
	}
	return false
}

func (p *parser) expect(t token) error {
	if p.tok != t {
		return p.unexpected()
	}
	return p.advance()
}

func (p *parser) unexpected() error {
	what := string(p.tok)
	if p.tok == tokName || p.tok == tokString {
		what = p.text
	}
	return p.fail("syntax error at or near %s", what)
}

func (p *parser) newlines() error {
	for p.tok == tokNewline {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) terminators() error {
	for p.is(tokNewline, ";") {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) item() error {
	switch p.tok {
	case "function":
		return p.function()
	case "BEGIN", "END":
		list := &p.prog.begin
		if p.tok == "END" {
			list = &p.prog.end
		}
		if err := p.advance(); err != nil {
			return err
		}
		if p.tok != "{" {
			return p.unexpected()
		}
		body, err := p.block()
		*list = append(*list, body)
		return err
	}
	r := &rule{print: true}
	var err error
	if p.tok != "{" {
		if r.from, err = p.expr(); err != nil {
			return err
		}
		if p.tok == "," {
			if err = p.advance(); err == nil {
				err = p.newlines()
			}
			if err == nil {
				r.to, err = p.expr()
			}
			if err != nil {
				return err
			}
		}
	}
	if p.tok == "{" {
		r.print = false
		if r.body, err = p.block(); err != nil {
			return err
		}
	} else if !p.is(tokNewline, ";", tokEOF) {
		return p.unexpected()
	}
	p.prog.rules = append(p.prog.rules, r)
	return nil
}

func (p *parser) functionNamed(name string) *function {
	f := p.prog.functions[name]
	if f == nil {
		f = &function{name: name}
		p.prog.functions[name] = f
	}
	return f
}

func (p *parser) function() error {
	if err := p.advance(); err != nil {
		return err
	}
	if !p.is(tokName, tokCall) {
		return p.unexpected()
	}
	f := p.functionNamed(p.text)
	if f.defined {
		return p.fail("function name `%s' previously defined", f.name)
	}
	f.defined = true
	err := p.advance()
	if err == nil {
		err = p.expect("(")
	}
	p.locals = map[string]int{}
	for err == nil && p.tok != ")" {
		if p.tok != tokName {
			return p.unexpected()
		}
		p.locals[p.text] = len(f.params)
		f.params = append(f.params, p.text)
		if err = p.advance(); err == nil && p.tok == "," {
			if err = p.advance(); err == nil {
				err = p.newlines()
			}
		}
	}
	if err == nil {
		err = p.advance()
	}
	if err == nil {
		err = p.newlines()
	}
	if err != nil {
		return err
	}
	f.body, err = p.block()
	p.locals = nil
	return err
}

// block reads { statements }.
func (p *parser) block() ([]stmt, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	var body []stmt
	for {
		if err := p.terminators(); err != nil {
			return nil, err
		}
		if p.tok == "}" {
			return body, p.advance()
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		body = append(body, s)
	}
}

// body reads the statement that a loop or condition is about.
func (p *parser) body() ([]stmt, error) {
	if err := p.newlines(); err != nil {
		return nil, err
	}
	if p.tok == ";" {
		return nil, p.advance()
	}
	if p.tok == "{" {
		return p.block()
	}
	s, err := p.statement()
	return []stmt{s}, err
}

// end reads what ends a simple statement.
func (p *parser) end() error {
	switch p.tok {
	case ";", tokNewline:
		return p.advance()
	case "}", tokEOF:
		return nil
	}
	return p.unexpected()
}

func (p *parser) statement() (s stmt, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	switch p.tok {
	case "{":
		body, err := p.block()
		return blockStmt{body}, err
	case "if":
		return p.ifStatement()
	case "while":
		return p.while()
	case "do":
		return p.do()
	case "for":
		return p.forStatement()
	case "switch":
		return p.switchStatement()
	}
	if s, err = p.simple(); err != nil {
		return nil, err
	}
	return s, p.end()
}

// simple reads a statement that needs a terminator.
func (p *parser) simple() (stmt, error) {
	switch p.tok {
	case "print", "printf":
		return p.print()
	case "delete":
		return p.delete()
	case "break", "continue", "next", "nextfile":
		kind := map[token]flow{"break": flowBreak, "continue": flowContinue, "next": flowNext, "nextfile": flowNextFile}[p.tok]
		return flowStmt{kind}, p.advance()
	case "exit", "return":
		isExit := p.tok == "exit"
		if err := p.advance(); err != nil {
			return nil, err
		}
		var x expr
		if !p.is(";", tokNewline, "}", tokEOF) {
			var err error
			if x, err = p.expr(); err != nil {
				return nil, err
			}
		}
		if isExit {
			return exitStmt{x}, nil
		}
		return returnStmt{x}, nil
	}
	x, err := p.expr()
	return exprStmt{x}, err
}

func (p *parser) condition() (expr, error) {
	err := p.advance()
	if err == nil {
		err = p.expect("(")
	}
	if err != nil {
		return nil, err
	}
	x, err := p.expr()
	if err != nil {
		return nil, err
	}
	return x, p.expect(")")
}

func (p *parser) ifStatement() (stmt, error) {
	cond, err := p.condition()
	if err != nil {
		return nil, err
	}
	s := ifStmt{cond: cond}
	if s.yes, err = p.body(); err != nil {
		return nil, err
	}
	// The else may stand after newlines and a semicolon: look ahead, and come back when there is none.
	saved := p.lexer
	if err := p.terminators(); err != nil {
		return nil, err
	}
	if p.tok != "else" {
		p.lexer = saved
		return s, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	s.no, err = p.body()
	return s, err
}

func (p *parser) while() (stmt, error) {
	cond, err := p.condition()
	if err != nil {
		return nil, err
	}
	body, err := p.body()
	return whileStmt{cond: cond, body: body}, err
}

func (p *parser) do() (stmt, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	body, err := p.body()
	if err == nil {
		err = p.terminators()
	}
	if err != nil {
		return nil, err
	}
	if p.tok != "while" {
		return nil, p.unexpected()
	}
	cond, err := p.condition()
	if err != nil {
		return nil, err
	}
	return whileStmt{cond: cond, body: body, do: true}, p.end()
}

func (p *parser) forStatement() (stmt, error) {
	err := p.advance()
	if err == nil {
		err = p.expect("(")
	}
	if err != nil {
		return nil, err
	}
	var s forStmt
	if p.tok != ";" {
		p.noIn = true
		s.init, err = p.simple()
		p.noIn = false
		if err != nil {
			return nil, err
		}
		if p.tok == "in" {
			return p.forIn(s.init)
		}
	}
	if err = p.expect(";"); err == nil {
		err = p.newlines()
	}
	if err == nil && p.tok != ";" {
		s.cond, err = p.expr()
	}
	if err == nil {
		err = p.expect(";")
	}
	if err == nil {
		err = p.newlines()
	}
	if err == nil && p.tok != ")" {
		s.step, err = p.simple()
	}
	if err == nil {
		err = p.expect(")")
	}
	if err == nil {
		s.body, err = p.body()
	}
	return s, err
}

func (p *parser) forIn(init stmt) (stmt, error) {
	key, ok := init.(exprStmt)
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !ok || p.tok != tokName {
		return nil, p.unexpected()
	}
	s := forInStmt{key: key.x, array: p.variable(p.text)}
	if _, ok := key.x.(varExpr); !ok {
		return nil, p.unexpected()
	}
	err := p.advance()
	if err == nil {
		err = p.expect(")")
	}
	if err == nil {
		s.body, err = p.body()
	}
	return s, err
}

func (p *parser) switchStatement() (stmt, error) {
	x, err := p.condition()
	if err == nil {
		err = p.newlines()
	}
	if err == nil {
		err = p.expect("{")
	}
	s := switchStmt{x: x}
	for err == nil {
		if err = p.terminators(); err != nil {
			break
		}
		switch p.tok {
		case "}":
			return s, p.advance()
		case "case":
			var c switchCase
			if err = p.advance(); err == nil {
				c.value, err = p.primary()
			}
			if err == nil {
				err = p.expect(":")
			}
			s.cases = append(s.cases, c)
		case "default":
			if err = p.advance(); err == nil {
				err = p.expect(":")
			}
			s.cases = append(s.cases, switchCase{})
		default:
			if len(s.cases) == 0 {
				return nil, p.unexpected()
			}
			var one stmt
			one, err = p.statement()
			last := &s.cases[len(s.cases)-1]
			last.body = append(last.body, one)
		}
	}
	return nil, err
}

func (p *parser) delete() (stmt, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok != tokName {
		return nil, p.unexpected()
	}
	s := deleteStmt{array: p.variable(p.text)}
	if err := p.advance(); err != nil || p.tok != "[" {
		return s, err
	}
	var err error
	s.subs, err = p.subscripts()
	return s, err
}

// print reads print and printf with their redirection.
func (p *parser) print() (stmt, error) {
	s := printStmt{format: p.tok == "printf"}
	err := p.advance()
	if err != nil {
		return nil, err
	}
	if !p.is(";", tokNewline, "}", tokEOF, ">", ">>", "|") {
		saved := p.noGT
		p.noGT = true
		s.args, err = p.list()
		p.noGT = saved
		if err != nil {
			return nil, err
		}
	}
	if len(s.args) == 1 {
		if g, ok := s.args[0].(groupExpr); ok {
			s.args = g.list
		}
	}
	if p.is(">", ">>", "|") {
		s.redir = p.tok
		if err := p.advance(); err != nil {
			return nil, err
		}
		if s.to, err = p.concat(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) list() ([]expr, error) {
	var list []expr
	for {
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		list = append(list, x)
		if p.tok != "," {
			return list, nil
		}
		if err = p.advance(); err == nil {
			err = p.newlines()
		}
		if err != nil {
			return nil, err
		}
	}
}

// variable gives a name its place.
func (p *parser) variable(name string) *variable {
	if i, ok := p.locals[name]; ok {
		return &variable{name, local, i}
	}
	if i, ok := specials[name]; ok {
		return &variable{name, special, i}
	}
	v := p.prog.globals[name]
	if v == nil {
		v = &variable{name, global, len(p.prog.globals)}
		p.prog.globals[name] = v
	}
	return v
}

func (p *parser) subscripts() ([]expr, error) {
	saved, savedGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	defer func() { p.noIn, p.noGT = saved, savedGT }()
	if err := p.expect("["); err != nil {
		return nil, err
	}
	subs, err := p.list()
	if err != nil {
		return nil, err
	}
	return subs, p.expect("]")
}
