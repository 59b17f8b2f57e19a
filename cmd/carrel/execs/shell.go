package execs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/shell"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

// scripts runs scripts in this process.
type scripts struct {
	commands command.Table
	grammar  command.Grammar
}

// newScripts returns what runs scripts, whose git reaches other repositories through remotes; nil is for none.
func newScripts(remotes transport.Transport) *scripts {
	return &scripts{commands: toolbox.Table(remotes), grammar: toolbox.Grammar()}
}

// run runs a script, with Args as its parameters, or Args as a command. There the workspace is the root directory.
func (x *scripts) run(ctx context.Context, j execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
	if j.Limits.CPU != 0 || j.Input != nil {
		return execd.Exit{
			Code: execd.CodeNotRun, Reason: fmt.Sprintf("a limit on processors, or structured input, in a shell: %v", vfs.ErrNotSupported),
		}
	}
	source := j.Source
	if source == "" {
		source = `"$@"`
	}
	limits := shell.DefaultLimits()
	limits.Time = execd.MaxTimeout // that of the exec holds
	if j.Limits.Memory != 0 {
		limits.Memory = int64(min(j.Limits.Memory, uint64(limits.Memory)))
	}
	if j.Limits.Pids != 0 {
		limits.Processes = int(j.Limits.Pids)
	}
	status, err := shell.Run(ctx, shell.Config{
		Tree: j.Tree, Dir: j.Dir, Env: j.Env, Args: j.Args, Stdin: stdin, Stdout: execd.Writer(out, execd.Stdout),
		Stderr: execd.Writer(out, execd.Stderr), Commands: x.commands, Limits: limits,
	}, source)
	exit := execd.Exit{Code: status}
	if err != nil && !errors.Is(err, context.Canceled) {
		exit.Reason = err.Error()
	}
	return exit
}
