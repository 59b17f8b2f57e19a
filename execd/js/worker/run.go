package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"modernc.org/quickjs"
)

// run is one module in one isolate. All of it is for one goroutine.
type run struct {
	vm      *quickjs.VM
	memory  uint64 // bytes that it may use
	link    *link
	job     Job
	loop    loop
	modules map[string]bool
	done    *outcome
}

// outcome is how the main module ended.
type outcome struct {
	value  []byte
	failed string // what it threw, with its stack
	oom    bool
}

// prepare makes everything of the isolate that needs no job.
func (r *run) prepare() error {
	r.vm.SetMemoryLimit(uintptr(r.memory))
	r.vm.SetModuleLoader(r.load, r.resolve)
	for name, f := range map[string]quickjs.HostFunc{
		"__call": r.call, "__write": r.write, "__timer": r.timer, "__clear": r.clear, "__stdin": r.stdin, "__exit": r.exit,
		"__settle": r.settle, "__utf8": utf8Of, "__bytes": bytesOf, "__base64": base64Of, "__url": parseURL, "__now": r.now,
	} {
		if err := r.vm.RegisterHostFunc(name, f); err != nil {
			return err
		}
	}
	_, err := r.vm.Eval(prelude, quickjs.EvalGlobal)
	return err
}

// main runs the module to its end: until it has settled and nothing is waited for.
func (r *run) main() End {
	setup, err := json.Marshal(map[string]any{
		"main": r.job.Main, "args": r.job.Args, "env": r.job.Env, "cwd": r.job.Dir, "input": json.RawMessage(orNull(r.job.Input)),
	})
	if err != nil {
		return End{Code: 1, Reason: err.Error()}
	}
	if _, err := r.vm.Call("__start", string(setup)); err != nil {
		return r.ended(outcomeOf(err))
	}
	if err := r.wait(); err != nil {
		return r.ended(outcomeOf(err))
	}
	if r.done == nil {
		return r.ended(&outcome{failed: "the module waits for what will never happen"})
	}
	return r.ended(r.done)
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// ended translates how the module ended, as node does: what was thrown goes to standard error.
func (r *run) ended(o *outcome) End {
	switch {
	case o.oom:
		return End{Code: 137, OOM: true, Reason: fmt.Sprintf("the module used more than %d bytes of memory", r.memory)}
	case o.failed != "":
		r.link.do(Call{Op: OpWrite, Data: []byte("Uncaught " + strings.TrimRight(o.failed, "\n") + "\n"), Flag: true})
		return End{Code: 1}
	case len(o.value) > MaxValue:
		return End{Code: 1, Reason: fmt.Sprintf("the result value has %d bytes, of at most %d", len(o.value), MaxValue)}
	}
	return End{Code: r.exitCode(), Value: o.value}
}

// exitCode is what the module has left in process.exitCode.
func (r *run) exitCode() int {
	v, err := r.vm.Eval("Number(globalThis.process?.exitCode ?? 0) & 255", quickjs.EvalGlobal)
	if err != nil {
		return 1
	}
	return int(num([]any{v}, 0))
}

// outcomeOf translates what the engine says.
func outcomeOf(err error) *outcome {
	o := &outcome{failed: err.Error()}
	var e *quickjs.Error
	if errors.As(err, &e) {
		o.oom = isOOM(e.Name, e.Message)
		if e.Stack != "" {
			o.failed += "\n" + e.Stack
		}
	}
	return o
}

func isOOM(name, message string) bool { return name == "InternalError" && message == "out of memory" }

// settle is called with how the main module ended: its value in JSON, or the name, message and stack of what it threw.
func (r *run) settle(args []any) (any, error) {
	o := &outcome{}
	if kind, text := str(args, 0), str(args, 1); kind == "value" {
		o.value = []byte(text)
	} else if kind == "error" {
		o.oom = isOOM(text, str(args, 2))
		o.failed = strings.TrimPrefix(text+": ", ": ") + str(args, 2) + "\n" + str(args, 3)
	}
	r.done = o
	return nil, nil
}

func (r *run) exit(args []any) (any, error) {
	r.link.end(End{Code: int(num(args, 0)) & 0xff})
	return nil, nil
}

// write writes to standard output or error, and returns when the daemon has taken it.
func (r *run) write(args []any) (any, error) {
	c := Call{Op: OpWrite, Flag: num(args, 0) == 2}
	if c.Data = []byte(str(args, 1)); num(args, 2) == 1 {
		c.Data = latin1(str(args, 1))
	}
	for len(c.Data) > 0 {
		part := c
		n := min(len(c.Data), writeChunk)
		part.Data, c.Data = c.Data[:n], c.Data[n:]
		r.link.do(part)
	}
	return nil, nil
}

// writeChunk is how much is written at once.
const writeChunk = 256 << 10

// resolve gives a module its name: node:NAME, or an absolute path in the workspace.
func (r *run) resolve(_ *quickjs.VM, base, name string) (string, error) {
	name = strings.TrimPrefix(name, "file://")
	switch {
	case builtin[strings.TrimPrefix(name, "node:")]:
		return "node:" + strings.TrimPrefix(name, "node:"), nil
	case strings.HasPrefix(name, "/"):
		return path.Clean(name), nil
	case strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"), name == ".", name == "..":
		return path.Join("/", path.Dir(base), name), nil // ".." at the root stays there
	}
	return "", fmt.Errorf("cannot find module %q: only paths and node:fs, node:fs/promises, node:path, node:process, node:url and "+
		"node:timers are there", name)
}

var builtin = map[string]bool{"fs": true, "fs/promises": true, "path": true, "process": true, "url": true, "timers": true}

// load gives the text of a module.
func (r *run) load(_ *quickjs.VM, name string) (string, error) {
	if b, ok := strings.CutPrefix(name, "node:"); ok {
		return builtinModule(b), nil
	}
	if r.modules[name] = true; len(r.modules) > maxModules {
		return "", fmt.Errorf("more than %d modules", maxModules)
	}
	text := r.job.Source
	if name != r.job.Main || text == "" {
		reply := r.link.do(Call{Op: OpModule, Path: name})
		if reply.Code != "" {
			return "", fmt.Errorf("%s: %s", reply.Code, reply.Message)
		}
		text = string(reply.Data)
	}
	if strings.HasSuffix(name, ".json") {
		if !json.Valid([]byte(text)) {
			return "", fmt.Errorf("%s is not JSON", name)
		}
		return "export default " + text, nil
	}
	// The engine knows no other way to set it. On the first line, so that the numbers of lines stay.
	if strings.HasPrefix(text, "#!") {
		text = "//" + text
	}
	url, err := json.Marshal("file://" + name)
	if err != nil {
		return "", err
	}
	return "import.meta.url=" + string(url) + ";" + text, nil
}

// builtinModule exports what prelude.js has made.
func builtinModule(name string) string {
	object := "globalThis.__node[" + fmt.Sprintf("%q", name) + "]"
	text := "const m = " + object + "; export default m;\n"
	for _, export := range exports[name] {
		text += "export const " + export + " = m." + export + ";\n"
	}
	return text
}

// exports are the names that a built-in module exports beside its default.
var exports = map[string][]string{
	"fs/promises": promiseNames,
	"fs":          append([]string{"promises", "existsSync"}, syncNames(promiseNames)...),
	"path": {"join", "resolve", "normalize", "dirname", "basename", "extname", "relative", "isAbsolute", "parse", "format", "sep",
		"delimiter", "posix"},
	"process": {"env", "argv", "cwd", "exit", "stdin", "stdout", "stderr", "platform", "nextTick", "hrtime"},
	"url":     {"URL", "URLSearchParams", "fileURLToPath", "pathToFileURL"},
	"timers":  {"setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate"},
}

var promiseNames = []string{"readFile", "writeFile", "appendFile", "stat", "lstat", "readdir", "mkdir", "rm", "rmdir", "unlink",
	"rename", "copyFile", "symlink", "link", "readlink", "realpath", "chmod", "truncate", "utimes", "access"}

func syncNames(names []string) (out []string) {
	for _, n := range names {
		out = append(out, n+"Sync")
	}
	return out
}
