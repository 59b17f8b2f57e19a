package shell

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// errNoCommand says that a name leads to no command.
var errNoCommand = errors.New("command not found")

// located is a command that is not part of the shell: one of the table, or a file.
type located struct {
	path string
	fn   command.Func // nil for a file
}

// binDirs are where the table's commands seem to be.
var binDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

const homeOfCommands = "/usr/bin/"

// findCommand finds what a command's name leads to: by path, by what hash remembers, or in $PATH.
func (sh *shell) findCommand(name string) (located, error) {
	if strings.Contains(name, "/") {
		return sh.findPath(name)
	}
	if p, ok := sh.hashed[name]; ok {
		return sh.findPath(p)
	}
	if name == "" {
		return located{}, errNoCommand
	}
	all := sh.findAll(name, true)
	if len(all) == 0 {
		return located{}, sh.notExecutable(name)
	}
	if sh.on(optHashall) {
		sh.remember(name, all[0].path)
	}
	return all[0], nil
}

// remember puts a command into the hash table.
func (sh *shell) remember(name, path string) {
	next := maps.Clone(sh.hashed) // a fork shares it
	next[name] = path
	sh.hashed = next
}

// findAll lists what a name leads to in the directories of $PATH; only the first when one is enough.
func (sh *shell) findAll(name string, one bool) (all []located) {
	path, _ := sh.get("PATH")
	seen := false
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		if fn, ok := sh.tableCommand(name); ok && !seen && slices.Contains(binDirs, strings.TrimSuffix(dir, "/")) {
			seen = true
			all = append(all, located{homeOfCommands + name, fn})
		} else if p := joinDir(dir, name); sh.executable(p) {
			all = append(all, located{path: p})
		}
		if one && len(all) > 0 {
			break
		}
	}
	return all
}

// notExecutable says whether a file of that name is in the way that may not be run.
func (sh *shell) notExecutable(name string) error {
	path, _ := sh.get("PATH")
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		if a, err := sh.fs().Stat(sh.ctx, joinDir(dir, name)); err == nil && a.Type == vfs.TypeRegular {
			return treepath.ErrAccess
		}
	}
	return errNoCommand
}

func joinDir(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// findPath finds a command by its path.
func (sh *shell) findPath(path string) (located, error) {
	a, err := sh.fs().Stat(sh.ctx, path)
	switch {
	case err == nil && a.Type == vfs.TypeDir:
		return located{}, vfs.ErrIsDir
	case err == nil:
		return located{path: path}, sh.fs().Access(sh.ctx, path, treepath.AccessExec)
	}
	if i := strings.LastIndexByte(path, '/'); slices.Contains(binDirs, path[:i]) {
		if fn, ok := sh.tableCommand(path[i+1:]); ok {
			return located{path, fn}, nil
		}
	}
	return located{}, err
}

// tableCommand finds a command of the table, or one of the shell's builtins that systems have as a file too.
func (sh *shell) tableCommand(name string) (command.Func, bool) {
	if fn, ok := sh.cfg.Commands[name]; ok {
		return fn, true
	}
	switch name {
	case "bash", "sh", "dash", "rbash":
		return sh.shellCommand, true
	case "echo", "printf", "test", "[", "true", "false", "pwd", "kill":
		b := builtins[name]
		return func(_ context.Context, p *command.Process) int { return sh.builtinFor(b, p) }, true
	}
	return nil, false
}

// builtinFor runs a builtin as a command of its own.
func (sh *shell) builtinFor(b builtin, p *command.Process) int { return b(sh, p.Args) }

func (sh *shell) executable(path string) bool {
	a, err := sh.fs().Stat(sh.ctx, path)
	return err == nil && a.Type == vfs.TypeRegular && sh.fs().Access(sh.ctx, path, treepath.AccessExec) == nil
}

func notRunStatus(err error) int {
	if errors.Is(err, vfs.ErrNotExist) || errors.Is(err, errNoCommand) {
		return command.StatusNotFound
	}
	return command.StatusNotExecutable
}

func sortEnv(env []string) {
	slices.SortFunc(env, func(a, b string) int {
		x, _, _ := strings.Cut(a, "=")
		y, _, _ := strings.Cut(b, "=")
		return strings.Compare(x, y)
	})
}

func (sh *shell) newRand() *rand.Rand {
	return rand.New(rand.NewPCG(sh.randomUint64(), 2))
}

// runFile runs a file: by the interpreter that its first line names, or as a script of this shell.
func (sh *shell) runFile(path string, args []string) int {
	b, err := sh.fs().ReadFile(sh.ctx, path, maxSourceSize)
	if err != nil {
		sh.warnf("%s: %s", path, command.Reason(err))
		return notRunStatus(err)
	}
	text := string(b)
	line, _, _ := strings.Cut(text, "\n")
	interp, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(interp)
	if ok && len(words) > 0 && words[0] != "/bin/sh" && words[0] != "/bin/bash" {
		if len(words) > 2 {
			words = []string{words[0], strings.Join(words[1:], " ")}
		}
		found, err := sh.findPath(words[0])
		if err != nil {
			sh.warnf("%s: %s: bad interpreter: %s", path, words[0], command.Reason(err))
			return command.StatusNotExecutable
		}
		full := append(append(words, path), args[1:]...)
		return sh.runCommand(found, full)
	}
	if !ok && strings.Contains(line, "\x00") {
		sh.warnf("%s: cannot execute binary file: Exec format error", path)
		return command.StatusNotExecutable
	}
	return sh.freshShell(shellStart{name: path, args: args[1:], source: text, script: true})
}
