package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// function is a function of the script.
type function struct {
	name   string
	body   *syntax.Stmt
	line   int
	offset int // of the text that it stands in
	source string
	export bool
	trace  bool
	fixed  bool // readonly
}

// bodyText is the function's body as bash prints it.
func (f *function) bodyText() string { return printFunctionBody(f.body) }

func (sh *shell) hasFunction(name string) bool {
	_, ok := sh.funcs.Get(name)
	return ok
}

func (sh *shell) declareFunction(cmd *syntax.FuncDecl) {
	if isNameless(cmd) {
		sh.fatalf("syntax error near unexpected token `('")
	}
	name := cmd.Name.Value
	if old, ok := sh.funcs.Get(name); ok && old.fixed {
		sh.warnf("%s: readonly function", name)
		sh.status = 1
		return
	}
	sh.funcs.Set(name, &function{name: name, body: cmd.Body, line: sh.line, offset: sh.lineOffset, source: sh.sourceName()})
	sh.status = 0
}

// isNameless reports whether a function, or the one that is its body, has no name, which the parser takes; or no body.
func isNameless(cmd *syntax.FuncDecl) bool {
	if cmd.Name == nil || cmd.Body == nil {
		return true
	}
	inner, ok := cmd.Body.Cmd.(*syntax.FuncDecl)
	return ok && isNameless(inner)
}

// sourceName is the file that is being run, for BASH_SOURCE.
func (sh *shell) sourceName() string {
	if n := len(sh.calls); n > 0 {
		return sh.calls[n-1].source
	}
	return "environment"
}

// importFunction defines a function from the environment, as export -f puts it there.
func (sh *shell) importFunction(name, value string) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	f, err := p.Parse(strings.NewReader(name+" "+value), "")
	if err != nil || len(f.Stmts) != 1 {
		return
	}
	if decl, ok := f.Stmts[0].Cmd.(*syntax.FuncDecl); ok && !isNameless(decl) {
		sh.funcs.Set(name, &function{name: name, body: decl.Body, source: "environment", export: true})
	}
}

// callFunction runs a function with arguments of its own and a frame for its locals.
func (sh *shell) callFunction(fn *function, args []string) {
	sh.deeper()
	outer, loops, source, offset := sh.args, sh.loops, sh.source, sh.lineOffset
	sh.lineOffset = fn.offset
	getopts := sh.getopts
	sh.calls = append(sh.calls[:len(sh.calls):len(sh.calls)], call{fn.name, fn.source, sh.line, true})
	sh.args, sh.loops = args[1:], 0
	sh.pushFrame(true)
	defer func() {
		sh.popFrame()
		sh.args, sh.loops, sh.source, sh.lineOffset = outer, loops, source, offset
		sh.getopts = getopts
		sh.calls = sh.calls[:len(sh.calls)-1]
		sh.depth--
	}()
	if sh.debugTrapInCall(fn); sh.flow != flowNone {
		return
	}
	sh.compoundBody(fn.body)
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	if sh.flow == flowNone {
		sh.returnTrap()
		if sh.flow == flowReturn {
			sh.flow = flowNone
		}
	}
}

// compoundBody runs a function's body: the redirections of its definition belong to every call.
func (sh *shell) compoundBody(body *syntax.Stmt) {
	line := sh.line
	sh.compound(body)
	sh.line = line
}

// inFunction reports whether a function is being run, and inEval how many sourced files are.
func (sh *shell) inFunction() bool { return sh.localFrame() >= 0 }

// inSource reports whether a sourced file is being run.
func (sh *shell) inSource() bool {
	for _, c := range sh.calls {
		if c.name == "source" && !c.fn {
			return true
		}
	}
	return false
}
