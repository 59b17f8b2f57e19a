package shell

import (
	"errors"
	"io"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// parsers are kept: a new one is some kilobytes.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// runScript runs the whole of a script, its EXIT trap included.
func (sh *shell) runScript(source string) {
	if len(source) > maxSourceSize {
		sh.exitf(2, "script too large")
	}
	a := sh.catch(func() { sh.runSource(source, 0) })
	sh.finish(a)
}

// finish ends a shell's own script: what aborted it sets the status, and the EXIT trap runs, unless that was what nothing
// can answer: SIGKILL, or the end of the whole script.
func (sh *shell) finish(a *abort) {
	if a != nil {
		sh.status = a.status
		if sig, ok := signalOf(sh.ctx); a.killed && (!ok || sig == sigKill) {
			return
		}
	}
	if a != nil && a.killed {
		defer sh.revive()()
	}
	if sh.flow != flowExit {
		sh.flow = flowNone
	}
	if a := sh.catch(sh.exitTrap); a != nil {
		sh.status = a.status
	}
}

// runSource runs a text line by line, as bash reads it: what a line changes (aliases) holds for the next, and what is no
// syntax any more is only an error when it is reached. An error in an expansion gives up the rest of the line.
func (sh *shell) runSource(text string, depth int) {
	for text != "" {
		rest, again := sh.runLines(text, depth)
		if !again {
			return
		}
		text = rest
	}
}

// runLines runs lines until something is to be parsed anew: then it returns the text from there.
func (sh *shell) runLines(text string, depth int) (rest string, again bool) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	at := 0 // where the next line starts
	over := false
	var line []*syntax.Stmt // what has been parsed of one line
	run := func(err error) {
		if rest, again, over = sh.parsedLine(text, at, line, err, depth); !over && err == nil {
			at = lineEnd(text, line)
		}
		line = nil
	}
	// Not a range loop: the parser goes on for a bit when it has been told to stop, which a loop takes for a mistake.
	p.StmtsSeq(&sourceReader{sh: sh, text: text})(func(st *syntax.Stmt, err error) bool {
		if n := len(line); !over && n > 0 && lineOf(st, err) > line[n-1].End().Line() {
			run(nil)
		}
		switch {
		case over:
		case sh.ctx.Err() != nil:
			over = true
		case err != nil:
			run(err)
		default:
			line = append(line, st)
		}
		return !over
	})
	if sh.ctx.Err() != nil {
		sh.stop()
	}
	if !over && len(line) > 0 {
		run(nil)
	}
	return rest, again
}

// sourceReader is a text that ends when the shell does: a parser cannot be stopped otherwise.
type sourceReader struct {
	sh   *shell
	text string
}

// Read implements io.Reader.
func (r *sourceReader) Read(b []byte) (int, error) {
	if r.text == "" || r.sh.ctx.Err() != nil {
		return 0, io.EOF
	}
	n := copy(b, r.text)
	r.text = r.text[n:]
	return n, nil
}

// lineOf is the line of what the parser has found, a statement or an error.
func lineOf(st *syntax.Stmt, err error) uint {
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case err == nil:
		return st.Pos().Line()
	case errors.As(err, &parse):
		return parse.Pos.Line()
	case errors.As(err, &lang):
		return lang.Pos.Line()
	}
	return ^uint(0)
}

// parsedLine runs what the parser has made of a line of text that starts at an offset, or sees to its error. over says that
// the parser is to stop; with again, the rest is to be parsed anew.
func (sh *shell) parsedLine(text string, at int, stmts []*syntax.Stmt, err error, depth int) (rest string, again, over bool) {
	if err != nil {
		if fixed, ok := sh.repair(text[at:], depth); ok {
			return blankLines(text[:at]) + fixed, sh.flow == flowNone, true
		}
		sh.syntaxError(err)
		return "", false, true
	}
	if sh.aliasesOn() && depth < maxAliasRounds {
		if line, rest, ok := sh.expandAliases(text, stmts); ok {
			sh.runExpanded(line, depth)
			return blankLines(text[:len(text)-len(rest)]) + rest, sh.flow == flowNone, true
		}
	}
	if sh.on(optHistory) {
		sh.record(text[at:lineEnd(text, stmts)])
	}
	sh.runLine(stmts)
	return "", false, sh.flow != flowNone
}

// lineEnd is the offset behind the line on which statements end.
func lineEnd(text string, stmts []*syntax.Stmt) int {
	to := min(int(stmts[len(stmts)-1].End().Offset()), len(text))
	if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
		return to + i + 1
	}
	return len(text)
}

// blankLines keeps the line numbers of a text whose start has been run.
func blankLines(run string) string { return strings.Repeat("\n", strings.Count(run, "\n")) }

// runLine runs the statements of one line.
func (sh *shell) runLine(stmts []*syntax.Stmt) {
	a := sh.catch(func() {
		for _, st := range stmts {
			if sh.exec(st); sh.flow != flowNone {
				return
			}
		}
	})
	if a == nil {
		return
	}
	if a.exit {
		panic(*a)
	}
	sh.status, sh.pipeStatus = a.status, []int{a.status}
	if sh.on(optErrexit) && sh.noErr == 0 {
		sh.flow = flowExit
	}
}

// syntaxError says what the parser says, in bash's form.
func (sh *shell) syntaxError(err error) {
	var parse syntax.ParseError
	var lang syntax.LangError
	text := err.Error()
	switch {
	case errors.As(err, &parse):
		sh.line, text = int(parse.Pos.Line()), "syntax error: "+parse.Text
	case errors.As(err, &lang):
		sh.line, text = int(lang.Pos.Line()), "syntax error: "+lang.Error()
	}
	sh.warnf("%s", text)
	sh.status, sh.pipeStatus = 2, []int{2}
}

// parseDocument parses text as the inside of double quotes.
func parseDocument(text string) (*syntax.Word, error) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	w, err := p.Document(strings.NewReader(text))
	if w == nil {
		w = &syntax.Word{} // of nothing
	}
	return w, err
}
