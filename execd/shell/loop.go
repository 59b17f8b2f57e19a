package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// loop runs round until it returns false or the script leaves the loop.
func (sh *shell) loop(round func() bool) {
	sh.loops++
	defer func() { sh.loops-- }()
	for {
		sh.step()
		if !round() {
			return
		}
		if sh.leaveRound() {
			return
		}
	}
}

// leaveRound takes in a break or continue that is meant for this loop, and reports whether the loop is over.
func (sh *shell) leaveRound() bool {
	switch sh.flow {
	case flowNone:
		return false
	case flowBreak, flowContinue:
		if sh.flowCount > 1 {
			sh.flowCount--
			return true
		}
		over := sh.flow == flowBreak
		sh.flow, sh.flowCount = flowNone, 0
		return over
	}
	return true
}

func (sh *shell) whileClause(cmd *syntax.WhileClause) {
	status := 0
	sh.loop(func() bool {
		goOn := sh.condition(cmd.Cond) != cmd.Until
		if sh.flow != flowNone {
			return true // leaveRound decides
		}
		if !goOn {
			return false
		}
		sh.execAll(cmd.Do)
		status = sh.status
		return true
	})
	if sh.flow != flowExit && sh.flow != flowReturn {
		sh.status = status
	}
}

func (sh *shell) forClause(cmd *syntax.ForClause) {
	switch it := cmd.Loop.(type) {
	case *syntax.CStyleLoop:
		sh.cLoop(it, cmd.Do)
	case *syntax.WordIter:
		items := sh.args
		if it.InPos.IsValid() {
			items = sh.fields(it.Items)
		}
		if cmd.Select {
			if sh.debugTrap(cmd); sh.flow != flowNone {
				return
			}
			sh.selectLoop(it.Name.Value, items, cmd.Do)
			return
		}
		sh.wordLoop(cmd, it, items)
	}
}

func (sh *shell) wordLoop(cmd *syntax.ForClause, it *syntax.WordIter, items []string) {
	i := 0
	sh.status = 0
	sh.loop(func() bool {
		if i >= len(items) {
			return false
		}
		sh.line = int(cmd.Pos().Line()) + sh.lineOffset
		sh.debugTrap(cmd)
		if !sh.loopVariable(it.Name.Value, items[i]) {
			return false
		}
		if sh.on(optXtrace) {
			sh.trace("for " + it.Name.Value + " in " + quoteAll(items))
		}
		i++
		sh.execAll(cmd.Do)
		return true
	})
}

// loopVariable assigns the variable of a for. One that is a nameref is made to refer to each word in turn.
func (sh *shell) loopVariable(name, value string) bool {
	if !isName(name) {
		sh.warnf("`%s': not a valid identifier", name)
		sh.status = 1
		return false
	}
	var err error
	if v, ok := sh.vars.Get(name); ok && v.attrs&attrNameref != 0 {
		if _, valid := parseRef(value); !valid {
			err = fmt.Errorf("`%s': not a valid identifier", value)
		} else if v.attrs&attrReadonly == 0 {
			v = sh.own(name)
			v.str, v.set = value, true
		}
	} else {
		err = sh.set(name, value)
	}
	if err != nil {
		sh.warnf("%v", err)
		sh.status = 1
		return false
	}
	return true
}

func (sh *shell) cLoop(it *syntax.CStyleLoop, body []*syntax.Stmt) {
	line := sh.line
	eval := func(x syntax.ArithmExpr, empty int64) int64 {
		sh.line = line
		if x == nil {
			return empty
		}
		sh.debugTrap(&syntax.ArithmCmd{X: x})
		if sh.on(optXtrace) {
			sh.trace("(( " + sh.arithText(x) + " ))")
		}
		return sh.arithExpr(x)
	}
	sh.quietly(func() {
		eval(it.Init, 0)
		status := 0
		sh.status = 0
		first := true
		sh.loop(func() bool {
			if !first {
				eval(it.Post, 0)
			}
			first = false
			if eval(it.Cond, 1) == 0 {
				return false
			}
			sh.execAll(body)
			status = sh.status
			return true
		})
		if sh.flow != flowExit && sh.flow != flowReturn {
			sh.status = status
		}
	})
}

// selectLoop is select: it lists the words on standard error and asks which.
func (sh *shell) selectLoop(name string, items []string, body []*syntax.Stmt) {
	sh.status = 0
	if len(items) == 0 {
		return
	}
	list := true
	sh.loop(func() bool {
		if list {
			sh.selectMenu(items)
		}
		_, _ = io.WriteString(sh.stderr(), sh.getOr("PS3", "#? "))
		line, err := sh.readLine(0, '\n')
		if err != nil {
			_, _ = io.WriteString(sh.stderr(), "\n")
			sh.status = 1
			return false
		}
		_ = sh.set("REPLY", line)
		list = strings.TrimSpace(line) == ""
		if list {
			return true
		}
		choice := ""
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(items) {
			choice = items[n-1]
		}
		if !sh.loopVariable(name, choice) {
			return false
		}
		sh.execAll(body)
		return true
	})
}

func (sh *shell) selectMenu(items []string) {
	var b strings.Builder
	width := len(strconv.Itoa(len(items)))
	for i, item := range items {
		fmt.Fprintf(&b, "%*d) %s\n", width, i+1, item)
	}
	_, _ = io.WriteString(sh.stderr(), b.String())
}
