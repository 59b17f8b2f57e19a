package execs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/shell"
	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

// commands are those of every script.
var commands = toolbox.Table()

// runShell runs a script, with Args as its parameters, or Args as a command. There the workspace is the root directory.
func runShell(ctx context.Context, j execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
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
		Stderr: execd.Writer(out, execd.Stderr), Commands: commands, Limits: limits,
	}, source)
	x := execd.Exit{Code: status}
	if err != nil && !errors.Is(err, context.Canceled) {
		x.Reason = err.Error()
	}
	return x
}
