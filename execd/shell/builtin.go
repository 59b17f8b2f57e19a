package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// builtin is a command that is part of the shell; args[0] is its name.
type builtin func(sh *shell, args []string) int

// builtins are set by init, since some run others by name.
var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		":": func(*shell, []string) int { return 0 }, "true": func(*shell, []string) int { return 0 },
		"false": func(*shell, []string) int { return 1 },
		"[":     (*shell).builtinTest, "test": (*shell).builtinTest,
		".": (*shell).builtinSource, "source": (*shell).builtinSource,
		"alias": (*shell).builtinAlias, "unalias": (*shell).builtinUnalias,
		"bg": (*shell).builtinFgBg, "fg": (*shell).builtinFgBg,
		"break": (*shell).builtinBreak, "continue": (*shell).builtinBreak,
		"builtin": (*shell).builtinBuiltin, "command": (*shell).builtinCommand,
		"caller": (*shell).builtinCaller, "cd": (*shell).builtinCd, "pwd": (*shell).builtinPwd,
		"dirs": (*shell).builtinDirs, "pushd": (*shell).builtinPushd, "popd": (*shell).builtinPopd,
		"declare": (*shell).declareWords, "typeset": (*shell).declareWords, "local": (*shell).declareWords,
		"export": (*shell).declareWords, "readonly": (*shell).declareWords,
		"echo": (*shell).builtinEcho, "printf": (*shell).builtinPrintf,
		"eval": (*shell).builtinEval, "exec": (*shell).builtinExec, "exit": (*shell).builtinExit,
		"logout": (*shell).builtinExit, "return": (*shell).builtinReturn,
		"getopts": (*shell).builtinGetopts, "hash": (*shell).builtinHash, "help": (*shell).builtinHelp,
		"jobs": (*shell).builtinJobs, "kill": (*shell).builtinKill, "wait": (*shell).builtinWait,
		"disown": (*shell).builtinDisown, "suspend": func(*shell, []string) int { return 1 },
		"let": (*shell).builtinLet, "mapfile": (*shell).builtinMapfile, "readarray": (*shell).builtinMapfile,
		"read": (*shell).builtinRead, "set": (*shell).builtinSet, "shift": (*shell).builtinShift,
		"shopt": (*shell).builtinShopt, "times": (*shell).builtinTimes, "trap": (*shell).builtinTrap,
		"type": (*shell).builtinType, "ulimit": (*shell).builtinUlimit, "umask": (*shell).builtinUmask,
		"unset": (*shell).builtinUnset, "enable": (*shell).builtinEnable,
		"bind": (*shell).builtinBind, "complete": (*shell).builtinComplete, "compgen": (*shell).builtinCompgen,
		"compopt": (*shell).builtinCompopt, "history": (*shell).builtinHistory, "fc": (*shell).builtinFc,
	}
}

// builtin returns the builtin of a name, unless enable -n has put it aside.
func (sh *shell) builtin(name string) (builtin, bool) {
	b, ok := builtins[name]
	if ok && sh.disabled != nil && sh.disabled[name] {
		return nil, false
	}
	return b, ok
}

// specialBuiltins are those that POSIX finds before functions, and whose errors end a shell in posix mode.
var specialBuiltins = []string{
	".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "source",
	"times", "trap", "unset",
}

// usages are the lines that follow a wrong use.
var usages = map[string]string{
	"trap": "trap [-lp] [[arg] signal_spec ...]", "wait": "wait [-fn] [-p var] [id ...]",
	"kill":    "kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]",
	"declare": "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
	"typeset": "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
	"export":  "export [-fn] [name[=value] ...] or export -p", "local": "local [option] name[=value] ...",
	"readonly": "readonly [-aAf] [name[=value] ...] or readonly -p",
	"read":     "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]",
	"printf":   "printf [-v var] format [arguments]", "getopts": "getopts optstring name [arg ...]",
	"mapfile": "mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
	"cd":      "cd [-L|[-P [-e]] [-@]] [dir]", "pushd": "pushd [-n] [+N | -N | dir]", "popd": "popd [-n] [+N | -N]",
	"dirs": "dirs [-clpv] [+N] [-N]", "set": "set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]",
	"shopt": "shopt [-pqsu] [-o] [optname ...]", "unset": "unset [-f] [-v] [-n] [name ...]",
	"type": "type [-afptP] name [name ...]", "command": "command [-pVv] command [arg ...]",
	"hash": "hash [-lr] [-p pathname] [-dt] [name ...]", "umask": "umask [-p] [-S] [mode]",
	"alias": "alias [-p] [name[=value] ... ]", "unalias": "unalias [-a] name [name ...]",
	"source": "source filename [arguments]", ".": ". filename [arguments]", "let": "let arg [arg ...]",
	"exec": "exec [-cl] [-a name] [command [argument ...]] [redirection ...]", "pwd": "pwd [-LP]",
	"eval": "eval [arg ...]", "shift": "shift [n]",
	"history": "history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]",
	"fc":      "fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]",
	"bind": "bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] " +
		"[keyseq:readline-function or readline-command]",
}

func (sh *shell) usage(name string) {
	if u, ok := usages[name]; ok {
		fmt.Fprintf(sh.stderr(), "%s: usage: %s\n", name, u)
	}
}

// badOption says that an option is none, and returns the status for that.
func (sh *shell) badOption(name, opt string) int {
	sh.warnf("%s: %s: invalid option", name, opt)
	sh.usage(name)
	return 2
}

func (sh *shell) builtinBreak(args []string) int {
	if sh.loops == 0 {
		sh.warnf("%s: only meaningful in a `for', `while', or `until' loop", args[0])
		return 0
	}
	n, f := 1, flowBreak
	if args[0] == "continue" {
		f = flowContinue
	}
	if len(args) > 1 && args[1] == "--" {
		args = args[1:]
	}
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.warnf("%s: %s: numeric argument required", args[0], args[1])
			panic(abort{status: 128, exit: true})
		}
		if len(args) > 2 {
			sh.warnf("%s: too many arguments", args[0])
			sh.flow, sh.flowCount = flowBreak, sh.loops
			return 1
		}
		if n < 1 {
			sh.warnf("%s: %s: loop count out of range", args[0], args[1])
			sh.flow, sh.flowCount = flowBreak, sh.loops
			return 1
		}
	}
	sh.flow, sh.flowCount = f, min(n, sh.loops)
	return 0
}

func (sh *shell) builtinReturn(args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = args[1:]
	}
	status := sh.status
	if len(args) > 2 {
		sh.warnf("return: too many arguments")
		return 1
	}
	if len(args) > 1 {
		n, err := strconv.ParseInt(strings.TrimSpace(args[1]), 10, 64)
		if err != nil {
			sh.warnf("return: %s: numeric argument required", args[1])
			n = 2
		}
		status = int(n & 0xff)
	}
	if !sh.inFunction() && !sh.inSource() {
		sh.warnf("return: can only `return' from a function or sourced script")
		return 2
	}
	sh.flow = flowReturn
	return status
}

func (sh *shell) builtinExit(args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = args[1:]
	}
	status := sh.status
	if sh.atExit != nil {
		status = *sh.atExit
	}
	if len(args) > 1 {
		n, err := strconv.ParseInt(strings.TrimSpace(args[1]), 10, 64)
		switch {
		case err != nil:
			sh.warnf("exit: %s: numeric argument required", args[1])
			n = 2
		case len(args) > 2:
			sh.warnf("exit: too many arguments")
			return 1
		}
		status = int(n & 0xff)
	}
	sh.flow = flowExit
	return status
}

func (sh *shell) builtinShift(args []string) int {
	n := 1
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.warnf("shift: %s: numeric argument required", args[1])
			return 1
		}
	}
	if len(args) > 2 {
		sh.warnf("shift: too many arguments")
		return 1
	}
	if n < 0 || n > len(sh.args) {
		if n < 0 || sh.shopt(optShiftVerbose) {
			sh.warnf("shift: %s: shift count out of range", args[1])
		}
		return 1
	}
	sh.args = sh.args[n:]
	return 0
}

func (sh *shell) builtinEval(args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		return sh.badOption("eval", args[0])
	}
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" {
		return 0
	}
	sh.deeper()
	sh.traceDepth++
	line, offset := sh.line, sh.lineOffset
	sh.lineOffset = line - 1
	defer func() {
		sh.depth, sh.traceDepth = sh.depth-1, sh.traceDepth-1
		sh.line, sh.lineOffset = line, offset
	}()
	sh.status = 0
	sh.runSource(text, 0)
	return sh.status
}

func (sh *shell) builtinLet(args []string) int {
	if len(args) == 1 {
		sh.warnf("let: expression expected")
		return 1
	}
	status := 0
	for _, a := range args[1:] {
		n, err := sh.tryArith(a)
		if err != nil {
			sh.warnf("let: %v", err)
			return 1
		}
		status = boolStatus(n != 0)
	}
	return status
}

// builtinBuiltin runs a builtin though a function has its name.
func (sh *shell) builtinBuiltin(args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	b, ok := sh.builtin(args[0])
	if !ok {
		sh.warnf("builtin: %s: not a shell builtin", args[0])
		return 1
	}
	return b(sh, args)
}

// builtinCommand runs a command that is no function, or says what a name leads to.
func (sh *shell) builtinCommand(args []string) int {
	short, long := false, false
	std := false
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for _, c := range opt[1:] {
			switch c {
			case 'p':
				std = true
			case 'v':
				short = true
			case 'V':
				long = true
			default:
				return sh.badOption("command", "-"+string(c))
			}
		}
	}
	if len(args) == 0 {
		return 0
	}
	if short || long {
		status := 1
		for _, a := range args {
			if sh.describeCommand(a, short, std) {
				status = 0
			} else if long {
				sh.warnf("command: %s: not found", a)
			}
		}
		return status
	}
	if std {
		if old, ok := sh.get("PATH"); ok {
			defer func() { _ = sh.set("PATH", old) }()
		}
		_ = sh.set("PATH", "/usr/bin:/bin")
	}
	sh.invoke(args, lookBuiltins|lookFiles)
	return sh.status
}

func (sh *shell) builtinExec(args []string) int {
	args = args[1:]
	name, clean := "", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		switch {
		case opt == "-a" && len(args) > 0:
			name, args = args[0], args[1:]
		case opt == "-c":
			clean = true
		case opt == "-l":
		default:
			return sh.badOption("exec", opt)
		}
	}
	if len(args) == 0 {
		return 0
	}
	found, err := sh.findCommand(args[0])
	if err != nil {
		if err == errNoCommand {
			sh.warnf("exec: %s: not found", args[0])
		} else {
			sh.warnf("%s: %s", args[0], reasonOf(err))
		}
		if !sh.shopt(optExecfail) {
			sh.flow = flowExit
		}
		return notRunStatus(err)
	}
	if clean {
		sh.takeEnvironment(nil)
	}
	run := slices.Clone(args)
	if name != "" {
		run[0] = name
	}
	sh.traps = traps{ignored: sh.traps.ignored}
	status := sh.runCommand(found, run)
	sh.flow = flowExit
	return status
}

func (sh *shell) builtinTimes([]string) int {
	return sh.print("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
}

func (sh *shell) builtinFgBg(args []string) int {
	if !sh.on(optMonitor) {
		sh.warnf("%s: no job control", args[0])
		return 1
	}
	spec := "%%"
	if len(args) > 1 {
		spec = args[1]
	}
	j, ok := sh.jobs.find(spec)
	if !ok {
		sh.warnf("%s: %s: no such job", args[0], spec)
		return 1
	}
	if args[0] == "bg" {
		return 0
	}
	sh.print(j.text + "\n")
	status, _ := sh.await(j)
	sh.jobs.remove(j)
	return status
}

func (sh *shell) builtinDisown(args []string) int {
	status := 0
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		j, _ := sh.jobArgument(a)
		if j == nil {
			sh.warnf("disown: %s: no such job", a)
			status = 1
			continue
		}
		sh.jobs.remove(j)
	}
	if len(args) == 1 {
		if j, ok := sh.jobs.find("%%"); ok {
			sh.jobs.remove(j)
		}
	}
	return status
}

func (sh *shell) builtinCaller(args []string) int {
	n := 0
	bare := len(args) < 2
	if !bare {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.warnf("caller: %s: invalid number", args[1])
			return 2
		}
	}
	i := len(sh.calls) - 1 - n
	if i < 0 || bare && !sh.inFunction() && !sh.inSource() {
		return 1
	}
	line := strconv.Itoa(sh.calls[i].line)
	outerSource, outerName := "environment", "main"
	if i > 0 {
		outerSource, outerName = sh.calls[i-1].source, sh.calls[i-1].name
	} else if !bare {
		return 1
	}
	if bare {
		if i == 0 {
			outerSource = "NULL"
		}
		return sh.print(line + " " + outerSource + "\n")
	}
	return sh.print(line + " " + outerName + " " + outerSource + "\n")
}

func (sh *shell) builtinEnable(args []string) int {
	off, list := false, false
	var names []string
	for _, a := range args[1:] {
		switch a {
		case "-n":
			off = true
		case "-a", "-p", "-s":
			list = true
		default:
			names = append(names, a)
		}
	}
	if len(names) == 0 || list {
		var b strings.Builder
		for _, name := range sortedBuiltins() {
			switch {
			case sh.disabled[name] && (off || list):
				b.WriteString("enable -n " + name + "\n")
			case !sh.disabled[name] && !off:
				b.WriteString("enable " + name + "\n")
			}
		}
		return sh.print(b.String())
	}
	status := 0
	for _, name := range names {
		if _, ok := builtins[name]; !ok {
			sh.warnf("enable: %s: not a shell builtin", name)
			status = 1
			continue
		}
		next := map[string]bool{name: off}
		for n, v := range sh.disabled {
			if n != name {
				next[n] = v
			}
		}
		sh.disabled = next
	}
	return status
}

func sortedBuiltins() []string {
	names := make([]string, 0, len(builtins))
	for name := range builtins {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (sh *shell) builtinHelp(args []string) int {
	if len(args) == 1 {
		var b strings.Builder
		fmt.Fprintf(&b, "GNU bash, version %s\nThese shell commands are defined internally.\n\n", sh.getOr("BASH_VERSION", ""))
		for _, name := range sortedBuiltins() {
			if u, ok := usages[name]; ok {
				b.WriteString(" " + u + "\n")
			} else {
				b.WriteString(" " + name + "\n")
			}
		}
		return sh.print(b.String())
	}
	status := 0
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if _, ok := builtins[a]; !ok {
			sh.warnf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", a, a, a)
			status = 1
			continue
		}
		u := usages[a]
		if u == "" {
			u = a
		}
		sh.print(a + ": " + u + "\n")
	}
	return status
}
