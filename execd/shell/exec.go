package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// exec runs one statement: its status is sh.status, and sh.flow says whether commands are being left.
func (sh *shell) exec(st *syntax.Stmt) {
	sh.step()
	sh.line = int(st.Pos().Line()) + sh.lineOffset
	if sh.on(optNoexec) {
		return
	}
	if st.Background {
		sh.background(st)
		return
	}
	if st.Negated {
		sh.noErr++
		defer func() { sh.noErr-- }()
	}
	subs := len(sh.subFDs)
	if call, ok := st.Cmd.(*syntax.CallExpr); ok {
		sh.simple(call, st.Redirs)
	} else {
		sh.compound(st)
	}
	sh.closeSubstitutions(subs)
	if sh.flow == flowExit {
		return
	}
	if st.Negated {
		sh.status = boolStatus(sh.status != 0)
		sh.pipeStatus = []int{sh.status}
		return
	}
	if sh.status != 0 && sh.flow == flowNone && reportsFailure(st) {
		sh.failed()
	}
}

func boolStatus(ok bool) int {
	if ok {
		return 0
	}
	return 1
}

// reportsFailure says for which statements a status other than 0 runs the ERR trap and ends the shell under errexit:
// not for those whose parts have been asked themselves.
func reportsFailure(st *syntax.Stmt) bool {
	switch cmd := st.Cmd.(type) {
	case nil, *syntax.CallExpr, *syntax.Subshell, *syntax.ArithmCmd, *syntax.TestClause, *syntax.DeclClause,
		*syntax.LetClause, *syntax.CoprocClause:
		return true
	case *syntax.BinaryCmd:
		return cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll
	}
	return len(st.Redirs) > 0 // a redirection that failed
}

// failed is what follows a command that failed where that is an error.
func (sh *shell) failed() {
	if sh.noErr > 0 {
		return
	}
	status := sh.status
	sh.errTrap()
	if sh.on(optErrexit) && sh.flow == flowNone {
		sh.status = status
		sh.flow = flowExit
	}
}

func (sh *shell) execAll(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		if sh.exec(st); sh.flow != flowNone {
			return
		}
	}
}

// compound runs any command but a simple one, within its redirections.
func (sh *shell) compound(st *syntax.Stmt) {
	if len(st.Redirs) == 0 {
		sh.run(st.Cmd)
		return
	}
	if st.Cmd == nil {
		sh.substDone = false
		if ok := sh.redirectAlone(st.Redirs); !ok || !sh.substDone {
			sh.status = boolStatus(ok)
		}
		sh.pipeStatus = []int{sh.status}
		return
	}
	undo, ok := sh.redirect(st.Redirs)
	defer undo()
	if !ok {
		sh.status, sh.pipeStatus = 1, []int{1}
		return
	}
	sh.run(st.Cmd)
}

func (sh *shell) run(cmd syntax.Command) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		sh.simple(cmd, nil)
	case *syntax.BinaryCmd:
		sh.binary(cmd)
	case *syntax.Block:
		sh.execAll(cmd.Stmts)
	case *syntax.Subshell:
		sh.subshell(cmd)
	case *syntax.IfClause:
		sh.ifClause(cmd)
	case *syntax.WhileClause:
		sh.whileClause(cmd)
	case *syntax.ForClause:
		sh.forClause(cmd)
	case *syntax.CaseClause:
		sh.caseClause(cmd)
	case *syntax.FuncDecl:
		if st, ok := afterFunction(cmd); ok {
			sh.run(st.Cmd)
			return
		}
		sh.declareFunction(cmd)
	case *syntax.ArithmCmd:
		sh.arithCommand(cmd)
	case *syntax.TestClause:
		sh.testClause(cmd)
	case *syntax.DeclClause:
		sh.declClause(cmd, nil)
	case *syntax.LetClause:
		sh.letClause(cmd)
	case *syntax.TimeClause:
		sh.timeClause(cmd)
	case *syntax.CoprocClause:
		sh.coproc(cmd)
	default:
		sh.fatalf("syntax error: command of this kind is not supported")
	}
}

// condition runs statements whose failure is an answer.
func (sh *shell) condition(stmts []*syntax.Stmt) bool {
	sh.noErr++
	defer func() { sh.noErr-- }()
	sh.execAll(stmts)
	return sh.status == 0
}

func (sh *shell) binary(cmd *syntax.BinaryCmd) {
	switch cmd.Op {
	case syntax.AndStmt, syntax.OrStmt:
		sh.noErr++
		sh.guardErr(func() { sh.exec(cmd.X) })
		if sh.flow == flowNone && (sh.status == 0) == (cmd.Op == syntax.AndStmt) {
			sh.exec(cmd.Y)
		}
	default:
		sh.pipeline(cmd)
	}
}

// guardErr ends a place where failure is no error, however f ends.
func (sh *shell) guardErr(f func()) {
	defer func() { sh.noErr-- }()
	f()
}

func (sh *shell) ifClause(cmd *syntax.IfClause) {
	for c := cmd; c != nil; c = c.Else {
		if len(c.Cond) == 0 || sh.condition(c.Cond) { // an else has no condition
			if sh.flow == flowNone {
				sh.execAll(c.Then)
			}
			return
		}
		if sh.flow != flowNone {
			return
		}
	}
	sh.status = 0
}

func (sh *shell) caseClause(cmd *syntax.CaseClause) {
	if sh.debugTrap(cmd); sh.flow != flowNone {
		return
	}
	if sh.on(optXtrace) {
		sh.trace("case " + wordText(cmd.Word) + " in")
	}
	word := sh.assignable(cmd.Word)
	sh.status = 0
	fall := false
	for _, item := range cmd.Items {
		if !fall && !sh.caseMatches(item, word) {
			continue
		}
		sh.execAll(item.Stmts)
		if sh.flow != flowNone {
			return
		}
		switch item.Op {
		case syntax.Fallthrough:
			fall = true
		case syntax.Resume:
			fall = false
		default:
			return
		}
	}
}

func (sh *shell) caseMatches(item *syntax.CaseItem, word string) bool {
	return slices.ContainsFunc(item.Patterns, func(w *syntax.Word) bool {
		return sh.matches(sh.patternOf(w), word, sh.shopt(optNocasematch))
	})
}

// subshell runs statements in a copy of the shell, here and now.
func (sh *shell) subshell(cmd *syntax.Subshell) {
	if sh.inTrap == 0 {
		sh.commandNode, sh.commandRedirs = cmd, nil
	}
	child := sh.forkProcess()
	child.protect(func() {
		child.finish(child.catch(func() { child.execAll(cmd.Stmts) }))
	})
	sh.status = child.status
	child.close()
	sh.pipeStatus = []int{sh.status}
	if sh.ctx.Err() != nil {
		sh.stop()
	}
}

// arithCommand is (( )): an error in it is a failure of the command alone.
func (sh *shell) arithCommand(cmd *syntax.ArithmCmd) {
	sh.debugTrap(cmd)
	if sh.flow != flowNone {
		return
	}
	if sh.on(optXtrace) {
		sh.trace("(( " + sh.arithText(cmd.X) + " ))")
	}
	sh.quietly(func() { sh.status = boolStatus(sh.arithOf("((", sh.arithText(cmd.X)) != 0) })
	sh.pipeStatus = []int{sh.status}
}

// quietly makes an abort of the line a status of 1.
func (sh *shell) quietly(f func()) {
	if a := sh.catch(f); a != nil {
		if a.exit {
			panic(*a)
		}
		sh.status = a.status
	}
}

func (sh *shell) letClause(cmd *syntax.LetClause) {
	sh.debugTrap(cmd)
	if sh.flow != flowNone {
		return
	}
	sh.quietly(func() {
		for _, x := range cmd.Exprs {
			sh.status = boolStatus(sh.arithOf("let", sh.arithText(x)) != 0)
		}
	})
	sh.pipeStatus = []int{sh.status}
}

func (sh *shell) testClause(cmd *syntax.TestClause) {
	sh.debugTrap(cmd)
	if sh.flow != flowNone {
		return
	}
	sh.quietly(func() { sh.status = sh.testExpr(cmd.X) })
	sh.pipeStatus = []int{sh.status}
}

// endStatus is the status of a shell whose context has ended.
func (sh *shell) endStatus() int {
	if sig, ok := signalOf(sh.ctx); ok {
		return 128 + sig
	}
	return command.StatusKilled
}
