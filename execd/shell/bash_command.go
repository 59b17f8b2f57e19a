package shell

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// shellStart is how another shell is started.
type shellStart struct {
	name   string
	args   []string
	source string
	script bool // the source is a file's
	opts   []string
	xopts  []string // of shopt
	rcFile string   // read first by an interactive shell
	asUser bool     // -i
}

// freshShell runs a script in a shell that has nothing of this one but its environment, descriptors and directory.
func (sh *shell) freshShell(start shellStart) int {
	child := sh.forkProcess()
	defer child.close()
	env := sh.environ()
	child.mainPID = child.proc.pid
	child.vars, child.funcs = specialVariables(), new(btree.Map[string, *function])
	child.alias, child.frames, child.calls = new(btree.Map[string, string]), nil, nil
	child.name, child.source, child.args = start.name, start.name, start.args
	child.opts, child.noErr, child.subshells, child.dirs = defaultOptions(), 0, 0, nil
	child.status, child.pipeStatus, child.line = 0, nil, 0
	child.environment(env)
	child.traps = traps{ignored: child.traps.ignored}
	if start.script {
		child.calls = []call{{name: "main", source: start.name}}
	}
	child.protect(func() {
		for _, o := range start.opts {
			child.setByName(o[1:], o[0] == '-')
		}
		for _, o := range start.xopts {
			if i := slices.Index(shoptNames, o[1:]); i >= 0 {
				child.opts.switchShopt(i, o[0] == '-')
			}
		}
		child.syncOptionVariables()
		if start.asUser {
			child.becomeInteractive(start.rcFile)
		}
		if child.flow == flowNone {
			child.runScript(start.source)
		}
	})
	return child.status
}

// becomeInteractive sets what an interactive shell has, and reads its startup file. Nobody types at it: there is no
// prompt and no line editing.
func (sh *shell) becomeInteractive(rcFile string) {
	sh.interactive = true
	sh.opts.switchSet(optEmacs, true)
	sh.opts.switchSet(optHistory, true)
	sh.opts.switchSet(optHistexpand, true)
	sh.opts.switchShopt(optExpandAliases, true)
	sh.syncOptionVariables()
	home, _ := sh.home("")
	for _, v := range [][2]string{{"HISTFILE", home + "/.bash_history"}, {"HISTSIZE", "500"}, {"HISTFILESIZE", "500"},
		{"PS1", `\s-\v\$ `}, {"PS2", "> "}} {
		if _, ok := sh.get(v[0]); !ok {
			_ = sh.set(v[0], v[1])
		}
	}
	if rcFile == "" {
		return
	}
	text, err := sh.readSource(rcFile)
	if err != nil {
		return
	}
	source := sh.source
	sh.source = rcFile
	if a := sh.catch(func() { sh.runSource(text, 0) }); a != nil && a.exit {
		panic(*a)
	}
	sh.source = source
	sh.status = exitStatus(sh.status)
}

// shellCommand is bash and sh as commands.
func (sh *shell) shellCommand(_ context.Context, p *command.Process) int {
	start, status, ok := sh.shellArguments(p)
	if !ok {
		return status
	}
	return sh.freshShell(start)
}

// shellOptions is the command line of bash(1) as far as it has been read.
type shellOptions struct {
	shellStart
	sh        *shell
	name      string // bash or sh
	args      []string
	isCommand bool // -c
	stdin     bool // -s
	noRC      bool
	status    int
	stop      bool // there is nothing to run: status is the answer
}

// shellArguments reads the command line of bash(1).
func (sh *shell) shellArguments(p *command.Process) (start shellStart, status int, ok bool) {
	o := &shellOptions{sh: sh, name: p.Args[0], args: p.Args[1:]}
	o.shellStart.name = p.Args[0]
	for len(o.args) > 0 && o.args[0] != "" && (o.args[0][0] == '-' || o.args[0][0] == '+') && !o.stop {
		arg := o.args[0]
		o.args = o.args[1:]
		if arg == "--" || arg == "-" {
			break
		}
		if strings.HasPrefix(arg, "--") {
			o.long(arg)
			continue
		}
		for i := 1; i < len(arg) && !o.stop; i++ {
			o.short(arg[:1], arg[i])
		}
	}
	if !o.stop {
		o.readSource()
	}
	o.shellStart.args = o.args
	o.chooseRC()
	return o.shellStart, o.status, !o.stop
}

func (o *shellOptions) end(status int) { o.stop, o.status = true, status }

// take takes the argument of an option.
func (o *shellOptions) take() (string, bool) {
	if len(o.args) == 0 {
		o.end(2)
		return "", false
	}
	a := o.args[0]
	o.args = o.args[1:]
	return a, true
}

func (o *shellOptions) long(arg string) {
	switch arg {
	case "--posix":
		o.opts = append(o.opts, "-posix")
	case "--norc":
		o.noRC = true
	case "--noprofile", "--login", "--noediting", "--verbose":
	case "--rcfile", "--init-file":
		o.rcFile, _ = o.take()
	case "--version", "--help":
		o.end(o.sh.print("GNU bash, version " + o.sh.getOr("BASH_VERSION", "") + "\n"))
	default:
		o.sh.warnf("%s: %s: invalid option", o.name, arg)
		o.end(2)
	}
}

func (o *shellOptions) short(sign string, c byte) {
	switch c {
	case 'c':
		o.isCommand = true
	case 's':
		o.stdin = true
	case 'i':
		o.asUser = true
	case 'l', 'r', 'D':
	case 'o':
		if name, ok := o.take(); ok {
			o.opts = append(o.opts, sign+name)
		}
	case 'O':
		if name, ok := o.take(); ok {
			o.xopts = append(o.xopts, sign+name)
		}
	default:
		name, known := optionOfLetter(c)
		if !known {
			o.sh.warnf("%s: -%c: invalid option", o.name, c)
			o.end(2)
			return
		}
		o.opts = append(o.opts, sign+name)
	}
}

// readSource finds the script: that of -c, a file, or standard input.
func (o *shellOptions) readSource() {
	switch {
	case o.isCommand:
		text, ok := o.take()
		if !ok {
			o.sh.warnf("%s: -c: option requires an argument", o.name)
			return
		}
		o.source = text
		if len(o.args) > 0 {
			o.shellStart.name, _ = o.take()
		}
	case len(o.args) > 0 && !o.stdin:
		path, _ := o.take()
		text, err := o.sh.readScript(path)
		if err != nil {
			o.sh.warnf("%s: %s", path, command.Reason(err))
			o.end(notRunStatus(err))
			return
		}
		o.shellStart.name, o.source, o.script = path, text, true
	default:
		b, err := io.ReadAll(io.LimitReader(o.sh.stdin(), maxSourceSize))
		if err != nil {
			o.end(1)
		}
		o.source = string(b)
	}
}

// chooseRC is the startup file of an interactive shell; others have none.
func (o *shellOptions) chooseRC() {
	if o.noRC || !o.asUser {
		o.rcFile = ""
		return
	}
	if o.rcFile == "" {
		home, _ := o.sh.home("")
		o.rcFile = home + "/.bashrc"
	}
}

func (sh *shell) readScript(path string) (string, error) {
	b, err := sh.fs().ReadFile(sh.ctx, path, maxSourceSize)
	return string(b), err
}

func optionOfLetter(c byte) (string, bool) {
	for _, l := range setLetters {
		if l.letter == c {
			return setNames[l.opt], true
		}
	}
	return "", false
}
