package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// traps are the commands of a shell's traps, by the name of the signal or condition; an empty command ignores it.
type traps struct {
	set       map[string]string
	ignored   map[string]bool // from the shell's start, by its parent
	inherited bool            // set is the parent's, for listing only, until the first change here
}

// forked is what a subshell has: it shows its parent's traps until it sets one, and keeps only what is ignored.
func (t traps) forked() traps {
	f := traps{set: t.set, ignored: t.ignored, inherited: true}
	for name, cmd := range t.set {
		if cmd == "" && !t.inherited {
			f.ignored = maps.Clone(f.ignored)
			if f.ignored == nil {
				f.ignored = make(map[string]bool)
			}
			f.ignored[name] = true
		}
	}
	return f
}

// command returns the command of a trap that this shell has itself.
func (sh *shell) trapCommand(name string) (string, bool) {
	if sh.traps.inherited {
		inherit := name == "ERR" && sh.on(optErrtrace) || (name == "DEBUG" || name == "RETURN") && sh.on(optFunctrace)
		if !inherit {
			return "", false
		}
	}
	cmd, ok := sh.traps.set[name]
	return cmd, ok
}

// setTrap sets or, with reset, removes a trap.
func (sh *shell) setTrap(name, cmd string, reset bool) {
	if sh.traps.inherited {
		old := sh.traps.set
		sh.traps.set, sh.traps.inherited = nil, false
		for n, c := range old {
			if keep := n == "ERR" && sh.on(optErrtrace) || (n == "DEBUG" || n == "RETURN") && sh.on(optFunctrace) || c == ""; keep {
				sh.traps.set = maps.Clone(sh.traps.set)
				if sh.traps.set == nil {
					sh.traps.set = make(map[string]string)
				}
				sh.traps.set[n] = c
			}
		}
	}
	sh.traps.set = maps.Clone(sh.traps.set)
	if sh.traps.set == nil {
		sh.traps.set = make(map[string]string)
	}
	if reset {
		delete(sh.traps.set, name)
	} else {
		sh.traps.set[name] = cmd
	}
	if n, ok := signalNumber(strings.TrimPrefix(name, "SIG")); ok && n > 0 {
		bit := uint64(1) << n
		sh.proc.trapped.And(^bit)
		sh.proc.ignored.And(^bit)
		switch {
		case reset:
		case cmd == "":
			sh.proc.ignored.Or(bit)
		default:
			sh.proc.trapped.Or(bit)
		}
	}
}

// runTrap runs a trap's command; the status is what it was before, unless the command leaves the shell or function.
func (sh *shell) runTrap(cmd string) {
	status, pipes, line, offset, lastArg := sh.status, sh.pipeStatus, sh.line, sh.lineOffset, sh.lastArg
	sh.inTrap++
	sh.lineOffset = line - 1
	defer func() {
		sh.inTrap--
		sh.line, sh.lineOffset, sh.lastArg = line, offset, lastArg
	}()
	sh.runSource(cmd, 0)
	if sh.flow == flowNone || sh.flow == flowBreak || sh.flow == flowContinue {
		sh.status, sh.pipeStatus = status, pipes
	}
}

// exitTrap runs the EXIT trap, once.
func (sh *shell) exitTrap() {
	cmd, ok := sh.trapCommand("EXIT")
	if !ok || cmd == "" || sh.traps.inherited {
		return
	}
	sh.setTrap("EXIT", "", true)
	status := sh.status
	sh.flow, sh.noErr = flowNone, 0
	sh.source, sh.line, sh.lineOffset = sh.name, 1, 0
	sh.inTrap++
	sh.atExit = &status
	sh.runSource(cmd, 0)
	sh.atExit = nil
	sh.inTrap--
	if sh.flow != flowExit {
		sh.status = status
	}
}

// errTrap runs the ERR trap; in functions and subshells only with errtrace.
func (sh *shell) errTrap() {
	cmd, ok := sh.trapCommand("ERR")
	if !ok || cmd == "" || sh.inTrap > 0 && sh.inErr() {
		return
	}
	if sh.inFunction() && !sh.on(optErrtrace) && !sh.trapSetHere("ERR") {
		return
	}
	sh.errDepth++
	defer func() { sh.errDepth-- }()
	sh.runTrap(cmd)
}

func (sh *shell) inErr() bool { return sh.errDepth > 0 }

// trapSetHere reports whether the function that is being run has set the trap itself.
func (sh *shell) trapSetHere(name string) bool {
	return sh.trapFrames[name] == len(sh.calls) && len(sh.calls) > 0
}

// debugTrap runs the DEBUG trap before a command, which is that of BASH_COMMAND if it is no trap's itself.
func (sh *shell) debugTrap(cmd syntax.Command, redirs ...*syntax.Redirect) {
	if cmd != nil && sh.inTrap == 0 {
		sh.commandNode, sh.commandRedirs = cmd, redirs
	}
	trap, ok := sh.trapCommand("DEBUG")
	if !ok || trap == "" || sh.debugDepth > 0 {
		return
	}
	if sh.inFunction() && !sh.on(optFunctrace) && !sh.trapSetHere("DEBUG") && !sh.tracedFunction() {
		return
	}
	sh.debugDepth++
	defer func() { sh.debugDepth-- }()
	sh.runTrap(trap)
}

func (sh *shell) tracedFunction() bool {
	fn, ok := sh.funcs.Get(sh.calls[len(sh.calls)-1].name)
	return ok && fn.trace
}

// debugTrapInCall runs the DEBUG trap as a function is entered.
func (sh *shell) debugTrapInCall(fn *function) {
	if sh.on(optFunctrace) || fn.trace {
		sh.debugTrap(nil)
	}
}

// returnTrap runs the RETURN trap as a function or sourced file ends.
func (sh *shell) returnTrap() {
	cmd, ok := sh.trapCommand("RETURN")
	if !ok || cmd == "" || sh.inReturn {
		return
	}
	if sh.inFunction() && !sh.on(optFunctrace) && !sh.trapSetHere("RETURN") && !sh.tracedFunction() {
		return
	}
	sh.inReturn = true
	defer func() { sh.inReturn = false }()
	sh.runTrap(cmd)
}

// runSignals runs the traps of signals that have come.
func (sh *shell) runSignals() {
	bits := sh.proc.pending.Swap(0)
	for n := 1; n < 64; n++ {
		if bits>>n&1 == 0 {
			continue
		}
		if cmd, ok := sh.trapCommand("SIG" + signalName(n)); ok && cmd != "" {
			sh.runTrap(cmd)
		}
	}
}

// trapName is the name under which a trap is kept: SIGINT, EXIT, ERR, DEBUG, RETURN.
func trapName(s string) (string, bool) {
	switch u := strings.ToUpper(s); u {
	case "EXIT", "0":
		return "EXIT", true
	case "ERR", "DEBUG", "RETURN":
		return u, true
	}
	n, ok := signalNumber(s)
	if !ok || n == 0 {
		return "", false
	}
	return "SIG" + signalName(n), true
}

func (sh *shell) builtinTrap(args []string) int {
	args = args[1:]
	list := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		switch args[0] {
		case "--":
		case "-l":
			return sh.print(listSignals())
		case "-p":
			list = true
			args = args[1:]
			continue
		default:
			sh.warnf("trap: %s: invalid option", args[0])
			sh.usage("trap")
			return 2
		}
		args = args[1:]
		break
	}
	if list || len(args) == 0 {
		return sh.listTraps(args)
	}
	cmd, reset := args[0], args[0] == "-"
	names := args[1:]
	if len(names) == 0 {
		if _, ok := trapName(cmd); !ok {
			sh.usage("trap")
			return 2
		}
		names, reset = args, true
	} else if n, ok := plainNumber(cmd); ok && n < 65 {
		names, reset = args, true
	}
	status := 0
	for _, s := range names {
		name, ok := trapName(s)
		if !ok {
			sh.warnf("trap: %s: invalid signal specification", s)
			status = 1
			continue
		}
		if sh.traps.ignored[name] {
			continue
		}
		sh.setTrap(name, cmd, reset)
		if sh.trapFrames == nil {
			sh.trapFrames = make(map[string]int)
		}
		sh.trapFrames = maps.Clone(sh.trapFrames)
		sh.trapFrames[name] = len(sh.calls)
	}
	return status
}

func (sh *shell) listTraps(names []string) int {
	status := 0
	var b strings.Builder
	line := func(name string) {
		if cmd, ok := sh.traps.set[name]; ok {
			fmt.Fprintf(&b, "trap -- %s %s\n", singleQuote(cmd), name)
		} else if sh.traps.ignored[name] {
			fmt.Fprintf(&b, "trap -- '' %s\n", name)
		}
	}
	if len(names) == 0 {
		for _, name := range trapOrder(sh.traps.set) {
			line(name)
		}
		return sh.print(b.String())
	}
	for _, s := range names {
		name, ok := trapName(s)
		if !ok {
			sh.warnf("trap: %s: invalid signal specification", s)
			status = 1
			continue
		}
		line(name)
	}
	if s := sh.print(b.String()); s != 0 {
		return s
	}
	return status
}

// trapOrder is EXIT, the signals by number, and the others.
func trapOrder(set map[string]string) []string {
	rank := func(name string) int {
		switch name {
		case "EXIT":
			return 0
		case "DEBUG":
			return 65
		case "ERR":
			return 66
		case "RETURN":
			return 67
		}
		n, _ := signalNumber(name)
		return n
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int { return rank(a) - rank(b) })
}
