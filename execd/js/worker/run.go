package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/quickjs"
)

// run is one module in one isolate. All of it is for one goroutine.
type run struct {
	vm      *quickjs.VM
	engine  *engine
	memory  uint64 // bytes that it may use
	link    *link
	job     Job
	loop    loop
	ticks   bool                     // some are to run
	entries map[string]quickjs.Value // of the prelude, by name
	done    *outcome                 // of the main module
}

// outcome is how a run ended.
type outcome struct {
	value  []byte
	failed string // what was thrown, with its stack
	oom    bool
}

// Entries of the prelude: what is called from here.
const (
	enterStart      = "start"      // with the job, in JSON
	enterFire       = "fire"       // a timer, with its number
	enterImmediate  = "immediate"  // the next
	enterInput      = "input"      // with standard input
	enterTicks      = "ticks"      // all there are
	enterRejections = "rejections" // that were noted
	enterIdle       = "idle"       // nothing is waited for any more; it may change that
	enterExit       = "exit"       // gives the status
)

var entryNames = []string{enterStart, enterFire, enterImmediate, enterInput, enterTicks, enterRejections, enterIdle, enterExit}

// prepare makes everything of the isolate that needs no job.
func (r *run) prepare() (err error) {
	r.vm.SetMemoryLimit(uintptr(r.memory))
	for name, f := range map[string]quickjs.HostFunc{
		"call": r.call, "write": r.write, "timer": r.timer, "ref": r.ref, "clear": r.clear, "immediate": r.immediate, "tick": r.tick,
		"stdin": r.stdin, "stdinNow": r.stdinNow, "settle": r.settle, "end": r.exit, "oom": r.outOfMemory, "now": r.now,
		"bytes": bytesOf, "base64": base64Of, "encoding": encodingOf, "decode": decode, "url": parseURL, "urlSet": setURL,
	} {
		if err := r.vm.RegisterHostFunc("__"+name, f); err != nil {
			return err
		}
	}
	if r.engine, err = engineOf(r.vm); err != nil {
		return err
	}
	if _, err := r.vm.Eval(prelude(), quickjs.EvalGlobal); err != nil {
		return fmt.Errorf("the prelude: %w", err)
	}
	return r.enterPrelude()
}

// enterPrelude takes what the prelude has left in globals for us, and takes them away.
func (r *run) enterPrelude() error {
	loader := &modules{job: &r.job, places: map[string]string{}, read: func(path string) Reply {
		return r.link.do(Call{Op: OpModule, Path: path})
	}}
	names, err := r.vm.Eval("__exports()", quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(str([]any{names}, 0)), &loader.builtins); err != nil {
		return err
	}
	if err := r.engine.attach(loader, "__meta", "__rejections"); err != nil {
		return err
	}
	entries, err := r.vm.EvalValue("__entries", quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	defer entries.Free()
	r.entries = map[string]quickjs.Value{}
	for _, name := range entryNames {
		atom, err := r.vm.NewAtom(name)
		if err != nil {
			return err
		}
		if r.entries[name], err = entries.GetPropertyValue(atom); err != nil {
			return err
		}
	}
	_, err = r.vm.Eval("for (const k of ['__exports', '__meta', '__rejections', '__entries']) delete globalThis[k]", quickjs.EvalGlobal)
	return err
}

// enter calls into the prelude.
func (r *run) enter(name string, args ...any) (any, error) {
	return r.entries[name].Call(quickjs.UndefinedValue, args...)
}

// turn calls into the module and lets everything run that follows from that.
func (r *run) turn(name string, args ...any) error {
	if _, err := r.enter(name, args...); err != nil {
		return err
	}
	for {
		if r.ticks {
			r.ticks = false
			if _, err := r.enter(enterTicks); err != nil {
				return err
			}
		}
		n, err := r.vm.ExecutePendingJobs()
		if err != nil && !isMore(n, err) {
			return err
		}
		switch {
		case n > 0 || r.ticks:
		case r.engine.noted == 0:
			return nil
		default:
			r.engine.noteModules()
			r.engine.noted = 0
			if _, err := r.enter(enterRejections, r.engine.lost); err != nil {
				return err
			}
		}
	}
}

// isMore reports whether jobs were not run to their end only because there were many.
func isMore(n int, err error) bool {
	var thrown *quickjs.Error
	return n > 0 && !errors.As(err, &thrown)
}

// main runs the module to its end: until it has settled and nothing is waited for.
func (r *run) main() End {
	r.loop.start = time.Now()
	setup, err := json.Marshal(map[string]any{
		"main": r.job.Main, "args": r.job.Args, "env": r.job.Env, "cwd": r.job.Dir, "input": json.RawMessage(orNull(r.job.Input)),
	})
	if err != nil {
		return End{Code: 1, Reason: err.Error()}
	}
	err = r.turn(enterStart, string(setup))
	for err == nil {
		var more bool
		if more, err = r.round(); err != nil || more {
			continue
		}
		if err = r.turn(enterIdle); err == nil && r.loop.refs == 0 && r.loop.immediates == 0 && r.loop.stdin == 0 {
			break
		}
	}
	switch {
	case err != nil:
		return r.ended(outcomeOf(err))
	case r.done == nil:
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

// ended translates how the run ended, as node does: what was thrown goes to standard error.
func (r *run) ended(o *outcome) End {
	if o.oom {
		return r.lackOfMemory()
	}
	r.complain(o)
	code, err := r.enter(enterExit, o.failed != "")
	if err != nil {
		if o = outcomeOf(err); o.oom {
			return r.lackOfMemory()
		}
		r.complain(o)
	}
	switch {
	case o.failed != "":
		return End{Code: 1}
	case len(o.value) > MaxValue:
		return End{Code: 1, Reason: fmt.Sprintf("the result value has %d bytes, of at most %d", len(o.value), MaxValue)}
	}
	return End{Code: int(num([]any{code}, 0)) & 0xff, Value: o.value}
}

func (r *run) complain(o *outcome) {
	if o.failed != "" {
		r.link.do(Call{Op: OpWrite, Data: []byte("Uncaught " + strings.TrimRight(o.failed, "\n") + "\n"), Flag: true})
	}
}

func (r *run) lackOfMemory() End {
	return End{Code: 137, OOM: true, Reason: fmt.Sprintf("the module used more than %d bytes of memory", r.memory)}
}

// outcomeOf translates what the engine says.
func outcomeOf(err error) *outcome {
	o := &outcome{failed: err.Error()}
	var e *quickjs.Error
	if errors.As(err, &e) {
		o.oom = e.Name == "InternalError" && e.Message == "out of memory"
		if e.Stack != "" {
			o.failed += "\n" + e.Stack
		}
	}
	return o
}

// settle is called with the value of the main module, in JSON, or with nothing when it has none.
func (r *run) settle(args []any) (any, error) {
	r.done = &outcome{}
	if len(args) > 0 {
		r.done.value = []byte(str(args, 0))
	}
	return nil, nil
}

// exit ends the run, in the middle of the module. A value that there is already counts when all went well.
func (r *run) exit(args []any) (any, error) {
	e := End{Code: int(num(args, 0)) & 0xff}
	if e.Code == 0 && r.done != nil && len(r.done.value) <= MaxValue {
		e.Value = r.done.value
	}
	r.link.end(e)
	return nil, nil
}

func (r *run) outOfMemory([]any) (any, error) {
	r.link.end(r.lackOfMemory())
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
