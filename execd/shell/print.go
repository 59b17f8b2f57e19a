package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// printNode is a node as the parser's printer spells it, in one line where it can.
func printNode(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

func printStmt(st *syntax.Stmt) string { return printNode(st) }

// printFunction is a function as declare -f prints it.
func printFunction(f *function) string {
	return f.name + " () \n" + printFunctionBody(f.body) + "\n"
}

// printFunctionBody is the body in braces, whatever the function has.
func printFunctionBody(body *syntax.Stmt) string {
	p := sourcePrinter{}
	if block, ok := body.Cmd.(*syntax.Block); ok {
		p.block(block.Stmts)
	} else {
		p.block([]*syntax.Stmt{body})
		return p.b.String()
	}
	p.redirects(body.Redirs)
	return p.b.String()
}

// sourcePrinter lays out commands as bash does: four columns a level, one command a line.
type sourcePrinter struct {
	b      strings.Builder
	indent int
	heres  []*syntax.Redirect // bodies that follow the line
}

func (p *sourcePrinter) line() {
	for _, r := range p.heres {
		p.b.WriteString("\n")
		p.b.WriteString(printHere(r))
	}
	if p.heres == nil {
		p.b.WriteString("\n")
	}
	p.heres = nil
	p.b.WriteString(strings.Repeat("    ", p.indent))
}

func printHere(r *syntax.Redirect) string {
	var b strings.Builder
	if r.Hdoc != nil {
		for _, part := range r.Hdoc.Parts {
			b.WriteString(printNode(&syntax.Word{Parts: []syntax.WordPart{part}}))
		}
	}
	delim := strings.Trim(printNode(r.Word), `'"\`)
	return b.String() + delim + "\n"
}

func (p *sourcePrinter) block(stmts []*syntax.Stmt) {
	p.b.WriteString("{ ")
	p.body(stmts)
	p.line()
	p.b.WriteString("}")
}

func (p *sourcePrinter) body(stmts []*syntax.Stmt) {
	p.indent++
	p.line()
	p.list(stmts)
	p.indent--
}

func (p *sourcePrinter) list(stmts []*syntax.Stmt) {
	for i, st := range stmts {
		p.stmt(st)
		switch {
		case st.Background:
			p.b.WriteString(" &")
			if i+1 < len(stmts) {
				p.line()
			}
		case i+1 < len(stmts):
			p.b.WriteString(";")
			p.line()
		}
	}
}

// inner is a list that a word such as done follows.
func (p *sourcePrinter) inner(stmts []*syntax.Stmt) {
	p.body(stmts)
	if n := len(stmts); n > 0 && !stmts[n-1].Background {
		p.b.WriteString(";")
	}
	p.line()
}

// short is a list on one line, as a condition is.
func (p *sourcePrinter) short(stmts []*syntax.Stmt) {
	for i, st := range stmts {
		if i > 0 {
			p.b.WriteString("; ")
		}
		p.stmt(st)
	}
}

func (p *sourcePrinter) stmt(st *syntax.Stmt) {
	if st.Negated {
		p.b.WriteString("! ")
	}
	if st.Cmd != nil {
		p.command(st.Cmd)
	}
	p.redirects(st.Redirs)
}

func (p *sourcePrinter) redirects(redirs []*syntax.Redirect) {
	for _, r := range redirs {
		if s := p.b.String(); s != "" && !strings.HasSuffix(s, " ") {
			p.b.WriteString(" ")
		}
		if r.N != nil {
			p.b.WriteString(r.N.Value)
		}
		p.b.WriteString(r.Op.String())
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.heres = append(p.heres, r)
		case syntax.DplIn, syntax.DplOut:
		default:
			p.b.WriteString(" ")
		}
		p.b.WriteString(printNode(r.Word))
	}
}

func (p *sourcePrinter) command(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.Block:
		p.block(c.Stmts)
	case *syntax.Subshell:
		p.b.WriteString("( ")
		p.short(c.Stmts)
		p.b.WriteString(" )")
	case *syntax.BinaryCmd:
		p.stmt(c.X)
		p.b.WriteString(" " + c.Op.String() + " ")
		p.stmt(c.Y)
	case *syntax.IfClause:
		p.ifClause(c, "if ")
	case *syntax.WhileClause:
		word := "while "
		if c.Until {
			word = "until "
		}
		p.b.WriteString(word)
		p.short(c.Cond)
		p.b.WriteString("; do")
		p.inner(c.Do)
		p.b.WriteString("done")
	case *syntax.ForClause:
		p.forClause(c)
	case *syntax.CaseClause:
		p.caseClause(c)
	case *syntax.FuncDecl:
		if isNameless(c) { // in a list, where nobody has looked yet
			p.b.WriteString(printNode(cmd))
			return
		}
		p.b.WriteString("function " + c.Name.Value + " () ")
		p.line()
		if block, ok := c.Body.Cmd.(*syntax.Block); ok {
			p.block(block.Stmts)
		} else {
			p.block([]*syntax.Stmt{c.Body})
		}
	default:
		p.b.WriteString(printNode(cmd))
	}
}

func (p *sourcePrinter) ifClause(c *syntax.IfClause, word string) {
	p.b.WriteString(word)
	p.short(c.Cond)
	p.b.WriteString("; then")
	p.inner(c.Then)
	switch e := c.Else; {
	case e == nil:
	case len(e.Cond) == 0:
		p.b.WriteString("else")
		p.inner(e.Then)
	default:
		p.b.WriteString("else")
		p.indent++
		p.line()
		p.ifClause(e, "if ")
		p.indent--
		p.b.WriteString(";")
		p.line()
	}
	p.b.WriteString("fi")
}

func (p *sourcePrinter) forClause(c *syntax.ForClause) {
	p.forHead(c)
	if it, ok := c.Loop.(*syntax.WordIter); ok && it.InPos.IsValid() {
		p.b.WriteString(";")
	}
	p.line()
	p.b.WriteString("do")
	p.inner(c.Do)
	p.b.WriteString("done")
}

func (p *sourcePrinter) forHead(c *syntax.ForClause) {
	switch it := c.Loop.(type) {
	case *syntax.WordIter:
		word := "for "
		if c.Select {
			word = "select "
		}
		p.b.WriteString(word + it.Name.Value)
		if it.InPos.IsValid() {
			p.b.WriteString(" in")
			for _, w := range it.Items {
				p.b.WriteString(" " + printNode(w))
			}
		}
	case *syntax.CStyleLoop:
		p.b.WriteString("for ((" + arithSource(it.Init) + "; " + arithSource(it.Cond) + "; " + arithSource(it.Post) + "))")
	}
}

func arithSource(x syntax.ArithmExpr) string {
	if x == nil {
		return "1"
	}
	return printNode(x)
}

func (p *sourcePrinter) caseHead(c *syntax.CaseClause) {
	p.b.WriteString("case " + printNode(c.Word) + " in ")
}

func (p *sourcePrinter) caseClause(c *syntax.CaseClause) {
	p.caseHead(c)
	p.indent++
	for _, item := range c.Items {
		p.line()
		var pats []string
		for _, w := range item.Patterns {
			pats = append(pats, printNode(w))
		}
		p.b.WriteString(strings.Join(pats, " | ") + ")")
		p.indent++
		p.line()
		p.list(item.Stmts)
		p.indent--
		p.line()
		p.b.WriteString(item.Op.String())
	}
	p.indent--
	p.line()
	p.b.WriteString("esac")
}
