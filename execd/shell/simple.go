package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// simple runs a simple command. The words are expanded first, then the redirections are made, then the assignments, as
// the manual has it.
func (sh *shell) simple(cmd *syntax.CallExpr, redirs []*syntax.Redirect) {
	sh.debugTrap(cmd, redirs...)
	if sh.flow != flowNone {
		return
	}
	if sh.negatedGroup(cmd) {
		return
	}
	sh.substDone = false
	args := sh.fields(cmd.Args)
	if len(args) == 0 {
		sh.bare(cmd, redirs)
		return
	}
	if args[0] == "exec" && len(args) == 1 && len(cmd.Assigns) == 0 && !sh.hasFunction("exec") {
		sh.execRedirect(redirs)
		return
	}
	undo, ok := sh.redirectFor(redirs)
	defer undo()
	if !ok {
		sh.status, sh.pipeStatus = 1, []int{1}
		return
	}
	sh.invokeWith(cmd.Assigns, args)
	sh.pipeStatus = []int{sh.status}
}

// redirectFor is redirect, which most commands have no need of.
func (sh *shell) redirectFor(redirs []*syntax.Redirect) (undo func(), ok bool) {
	if len(redirs) == 0 {
		return func() {}, true
	}
	return sh.redirect(redirs)
}

// bare is a command without words: assignments to the shell's own variables, and redirections that open and close.
func (sh *shell) bare(cmd *syntax.CallExpr, redirs []*syntax.Redirect) {
	if !sh.redirectAlone(redirs) {
		sh.status, sh.pipeStatus = 1, []int{1}
		return
	}
	if len(cmd.Assigns) == 0 && !sh.substDone {
		sh.status = 0
	}
	if len(cmd.Assigns) > 0 {
		sh.substDone = false
		status := 0
		for _, a := range cmd.Assigns {
			sh.assignStatement(a)
			if sh.substDone {
				status = sh.status
			}
		}
		sh.status = status
	}
	sh.lastArg = ""
	sh.pipeStatus = []int{sh.status}
}

// redirectAlone makes redirections without a command, in a copy of the shell: what {name}> sets is gone with it.
func (sh *shell) redirectAlone(redirs []*syntax.Redirect) bool {
	if len(redirs) == 0 {
		return true
	}
	child := sh.fork()
	child.proc = sh.newProcess(sh.proc.cancel)
	defer child.close()
	_, ok := child.redirect(redirs)
	return ok
}

// invokeWith runs a command with assignments before it, which last as long as the command.
func (sh *shell) invokeWith(assigns []*syntax.Assign, args []string) {
	if len(assigns) == 0 {
		sh.traceCommand(nil, args)
		sh.invoke(args, lookAll)
		return
	}
	sh.pushFrame(false)
	i := len(sh.frames) - 1
	defer sh.popFrame()
	var traced []string
	for _, a := range assigns {
		traced = append(traced, sh.temporary(i, a))
	}
	sh.traceCommand(traced, args)
	sh.invoke(args, lookAll)
}

// temporary makes one assignment before a command, exported and out of sight afterwards.
func (sh *shell) temporary(i int, a *syntax.Assign) string {
	name := a.Name.Value
	var value string
	if a.Value != nil {
		value = sh.assignable(a.Value)
	}
	old := sh.lookup(name)
	if old != nil && old.attrs&attrReadonly != 0 {
		sh.warnf("%s: readonly variable", name)
		return ""
	}
	if a.Append {
		s, _ := old.scalar()
		value = s + value
	}
	if old != nil && old.attrs&attrNameref != 0 {
		if to, ok := sh.deref(ref{name: name}); ok {
			name = to.name
		}
	}
	v := sh.makeLocal(i, name)
	v.attrs = v.attrs&(attrInteger|attrCase) | attrExport
	v.list, v.assoc = nil, nil
	v.str, v.set = value, true
	sh.charge(int64(len(value)))
	sh.changed(name)
	return name + "=" + quoteTrace(value)
}

// look says where a command's name is looked for.
type look uint8

const (
	lookFunctions look = 1 << iota
	lookBuiltins
	lookFiles
	lookAll = lookFunctions | lookBuiltins | lookFiles
)

// invoke runs a command by its expanded words.
func (sh *shell) invoke(args []string, where look) {
	name := args[0]
	defer func() { sh.lastArg = args[len(args)-1] }()
	if where&lookFunctions != 0 && !(sh.on(optPosix) && slices.Contains(specialBuiltins, name)) {
		if fn, ok := sh.funcs.Get(name); ok {
			sh.callFunction(fn, args)
			return
		}
	}
	if where&lookBuiltins != 0 {
		if b, ok := sh.builtin(name); ok {
			sh.runBuiltin(b, args)
			return
		}
	}
	if where&lookFiles == 0 {
		sh.warnf("%s: command not found", name)
		sh.status = command.StatusNotFound
		return
	}
	sh.invokeFile(args)
}

// runBuiltin runs a builtin, which fails when its output could not be written.
func (sh *shell) runBuiltin(b builtin, args []string) {
	sh.unwritten = false
	status := exitStatus(b(sh, args))
	if status == 0 && sh.unwritten {
		status = 1
	}
	sh.status = status
}

func (sh *shell) invokeFile(args []string) {
	found, err := sh.findCommand(args[0])
	refused := sh.refused
	sh.refused = ""
	switch {
	case err == nil:
		sh.status = exitStatus(sh.runCommand(found, args))
		if sh.ctx.Err() != nil {
			sh.stop()
		}
		return
	case refused != "":
		reason := "No such file or directory"
		if sh.status = command.StatusNotFound; !errors.Is(err, errNoCommand) {
			reason, sh.status = command.Reason(err), notRunStatus(err)
			if errors.Is(err, vfs.ErrIsDir) {
				reason = "Permission denied" // as execve(2) has it
			}
		}
		fmt.Fprintf(sh.stderr(), refused+"\n", args[0], reason)
	case errors.Is(err, errNoCommand):
		if fn, ok := sh.funcs.Get("command_not_found_handle"); ok {
			child := sh.forkProcess()
			child.protect(func() {
				child.finish(child.catch(func() {
					child.callFunction(fn, append([]string{"command_not_found_handle"}, args...))
				}))
			})
			sh.status = child.status
			child.close()
			return
		}
		sh.warnf("%s: command not found", args[0])
		sh.status = command.StatusNotFound
	default:
		sh.warnf("%s: %s", args[0], command.Reason(err))
		sh.status = notRunStatus(err)
	}
}

// environ lists what is exported.
func (sh *shell) environ() []string {
	env := make([]string, 0, 32)
	sh.vars.Scan(func(name string, v *variable) bool {
		if v.attrs&attrExport != 0 && !v.isArray() {
			if v.special != nil {
				env = append(env, name+"="+v.special.get(sh))
			} else if v.set {
				env = append(env, name+"="+v.str)
			}
		}
		return true
	})
	sh.funcs.Scan(func(name string, f *function) bool {
		if f.export {
			env = append(env, "BASH_FUNC_"+name+"%%="+"() "+f.bodyText())
		}
		return true
	})
	return env
}

// runCommand runs what findCommand found.
func (sh *shell) runCommand(found located, args []string) int {
	if found.fn == nil {
		return sh.runFile(found.path, args)
	}
	env := append(sh.environ(), "_="+found.path)
	sortEnv(env)
	return sh.guard(found.fn, sh.processFor(args, env))
}

// processFor is a command's process over the shell's descriptors.
func (sh *shell) processFor(args, env []string) *command.Process {
	return &command.Process{
		Args: args, Stdin: sh.stdin(), Stdout: sh.stdout(), Stderr: sh.stderr(), FS: sh.fs(), Dir: sh.dir, Env: env,
		FD: func(n int) (io.ReadWriter, bool) {
			d := sh.fds.get(n)
			return end{sh.ctx, d}, d != nil
		},
		Run: sh.runFor, Meter: sh.meter, Now: sh.cfg.Now, Rand: sh.newRand(),
	}
}

// runFor runs another command for one that is running: xargs, find, env and their like.
func (sh *shell) runFor(ctx context.Context, p *command.Process) int {
	child := sh.fork()
	defer child.close()
	child.ctx, child.base, child.piped = ctx, ctx, true
	child.proc = sh.newProcess(sh.proc.cancel)
	child.replace(0, outer("stdin", orEmpty(p.Stdin), nil, nil))
	child.replace(1, outer("stdout", nil, orDiscard(p.Stdout), nil))
	child.replace(2, outer("stderr", nil, orDiscard(p.Stderr), nil))
	if p.Dir != "" {
		child.dir = p.Dir
	}
	child.takeEnvironment(p.Env)
	child.refused = p.Refused
	child.protect(func() {
		child.finish(child.catch(func() { child.invoke(p.Args, lookBuiltins|lookFiles) }))
	})
	return child.status
}

// takeEnvironment makes env what the shell exports, and nothing else.
func (sh *shell) takeEnvironment(env []string) {
	var names []string
	sh.vars.Scan(func(name string, v *variable) bool {
		if v.attrs&attrExport != 0 {
			names = append(names, name)
		}
		return true
	})
	for _, name := range names {
		sh.own(name).attrs &^= attrExport
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !isName(name) {
			continue
		}
		v := sh.own(name)
		if v.special == nil {
			v.attrs, v.str, v.set = v.attrs&^(attrIndexed|attrAssoc|attrNameref)|attrExport, value, true
		}
	}
}
