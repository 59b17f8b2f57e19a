package js_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js"
)

// output gathers what a run writes.
type output struct {
	mu       sync.Mutex
	out, err strings.Builder
}

func (o *output) Write(s execd.Stream, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s == execd.Stdout {
		o.out.Write(p)
	} else {
		o.err.Write(p)
	}
}

// kit is a backend and a tree.
type kit struct {
	*js.Backend
	fs treepath.FS
	t  testing.TB
}

func newKit(t testing.TB) kit {
	b := js.New()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return kit{b, treepath.FS{Tree: vfstest.NewTree()}, t}
}

func (k kit) put(path, text string) {
	k.t.Helper()
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if err := k.fs.MkdirAll(context.Background(), path[:i], 0o755); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := k.fs.WriteFile(context.Background(), path, []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k kit) start(s execd.Spec, out execd.Output) execd.Process {
	k.t.Helper()
	if s.Dir == "" {
		s.Dir = "/"
	}
	p, err := k.Start(context.Background(), execd.Job{Spec: s, Tree: k.fs.Tree}, out)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

func (k kit) run(s execd.Spec) (x execd.Exit, out, errs string) {
	k.t.Helper()
	o := &output{}
	x = k.start(s, o).Wait()
	return x, o.out.String(), o.err.String()
}

func TestModules(t *testing.T) {
	k := newKit(t)
	k.put("/lib/a.mjs", "import {b} from './deep/b.js'; export const a = 'a' + b; export default import.meta.url")
	k.put("/lib/deep/b.js", "#!/usr/bin/env node\nexport const b = 'b'")
	k.put("/data.json", `{"n": 7}`)
	k.put("/main.mjs", "import p from 'node:process'; console.log(p.argv.slice(1).join(' '), p.cwd(), p.env.X)")
	if err := k.fs.Symlink(t.Context(), "lib/a.mjs", "/link.mjs"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name            string
		spec            execd.Spec
		out, err, value string
		code            int
	}{
		{name: "value", spec: execd.Spec{Source: "export default 1 + 1"}, value: "2"},
		{name: "none", spec: execd.Spec{Source: "1"}, value: ""},
		{name: "function", spec: execd.Spec{Source: "export default (x) => ({sum: x.a + input.b})", Input: json.RawMessage(`{"a":1,"b":2}`)},
			value: `{"sum":3}`},
		{name: "async", spec: execd.Spec{Source: "const x = await Promise.resolve(4); export default async () => x"}, value: "4"},
		{name: "static", spec: execd.Spec{Source: "import u, {a} from './lib/a.mjs'; export default [a, u]"}, value: `["ab","file:///lib/a.mjs"]`},
		{name: "dynamic", spec: execd.Spec{Source: "export default (await import('/lib/a.mjs')).a"}, value: `"ab"`},
		{name: "directory", spec: execd.Spec{Source: "import {b} from './b.js'; export default b", Dir: "/lib/deep"}, value: `"b"`},
		{name: "json", spec: execd.Spec{Source: "import d from './data.json'; export default d.n"}, value: "7"},
		{name: "file", spec: execd.Spec{Args: []string{"main.mjs", "x", "y"}, Env: []string{"X=1=2"}}, out: "/main.mjs x y / 1=2\n"},
		{name: "above the root", spec: execd.Spec{Source: "import {b} from '../../../lib/deep/b.js'; export default b"}, value: `"b"`},
		{name: "missing", spec: execd.Spec{Source: "import './none.mjs'"}, err: "ENOENT", code: 1},
		{name: "bare", spec: execd.Spec{Source: "import 'lodash'"}, err: "Cannot find package 'lodash' imported from /[source].mjs", code: 1},
		{name: "host file", spec: execd.Spec{Source: "export default await import('/etc/passwd')"}, err: "ENOENT", code: 1},
		{name: "host url", spec: execd.Spec{Source: "import 'file:///etc/passwd'"}, err: "ENOENT", code: 1},
		{name: "http", spec: execd.Spec{Source: "import 'https://example.org/x.js'"}, err: "Only file: and node: URLs", code: 1},
		{name: "syntax", spec: execd.Spec{Source: "let"}, err: "SyntaxError", code: 1},
		{name: "throw", spec: execd.Spec{Source: "function f() { throw new TypeError('no') }\nf()"}, err: "Uncaught TypeError: no", code: 1},
		{name: "throw text", spec: execd.Spec{Source: "throw 'text'"}, err: "Uncaught text", code: 1},
		{name: "throw later", spec: execd.Spec{Source: "setTimeout(() => { throw new Error('late') }, 1)"}, err: "late", code: 1},
		{name: "stack", spec: execd.Spec{Source: "function f() { f() }; f()"}, err: "stack overflow", code: 1},
		{name: "never", spec: execd.Spec{Source: "await new Promise(() => {})"}, err: "waits for what will never happen", code: 1},
		{name: "exit", spec: execd.Spec{Source: "console.log('x'); process.exit(7); console.log('y')"}, out: "x\n", code: 7},
		{name: "exitCode", spec: execd.Spec{Source: "process.exitCode = 3"}, code: 3},
		{name: "host objects", spec: execd.Spec{Source: "export default [typeof __call, typeof __exit, typeof require, typeof fetch, typeof std, " +
			"typeof os, typeof WebAssembly]"}, value: `["undefined","undefined","undefined","undefined","undefined","undefined","undefined"]`},
		{name: "prototypes", spec: execd.Spec{Source: "Object.prototype.x = 1; Array.prototype.map = null; JSON.stringify = () => 'no json'; " +
			"export default 1"}, code: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, out, errs := k.run(tt.spec)
			if x.Code != tt.code && tt.name != "prototypes" || tt.code == 0 && string(x.Value) != tt.value || out != tt.out || !strings.Contains(errs, tt.err) {
				t.Errorf("exit %+v, value %s, output %q, errors %q", x, x.Value, out, errs)
			}
		})
	}
}

// Each run is alone: nothing that one leaves is there for the next, whether it waited in the pool meanwhile or not, and
// whether it runs beside it or after it.
func TestFreshIsolate(t *testing.T) {
	k := newKit(t)
	k.put("/state.mjs", "export const state = {}")
	const find = `
		import {state} from '/state.mjs'; import fs from 'node:fs'; import process from 'node:process';
		const found = [typeof globalThis.left, [].left, Object.keys(state).join(), process.env.LEFT, process.cwd(), process.argv.length,
			process.exitCode, process.listenerCount('exit'), typeof fs.left, JSON.parse('1'), typeof setTimeout, new Error('x').left];
		globalThis.left = 1; Object.prototype.left = 1; state.left = 1; process.env.LEFT = 'yes'; process.argv.push('left');
		process.on('exit', () => { process.exitCode = 0 }); fs.left = 1; setTimeout(() => {}, 1); fs.openSync('/state.mjs');
		const parse = JSON.parse; JSON.parse = () => 2;
		console.group('left'); console.count('left'); process.chdir('/d');
		export default found.map(String)`
	if err := k.fs.Mkdir(t.Context(), "/d", 0o755); err != nil {
		t.Fatal(err)
	}
	const want = `["undefined","undefined","","undefined","/","2","undefined","0","undefined","1","function","undefined"]`
	var group sync.WaitGroup
	for range 3 {
		for range 3 {
			group.Go(func() {
				x, out, errs := k.run(execd.Spec{Source: find})
				if string(x.Value) != want || out != "left\n  left: 1\n" {
					t.Errorf("%s\n%s %q %q", x.Value, want, out, errs)
				}
			})
		}
		group.Wait()
	}
}

// Rejections that nobody has taken by the end of the turn end the module, as in node; others do not.
func TestRejections(t *testing.T) {
	k := newKit(t)
	k.put("/throws.mjs", "throw new Error('of the module')")
	k.put("/above.mjs", "import './throws.mjs'")
	k.put("/above2.mjs", "import './above.mjs'")
	k.put("/circle1.mjs", "import './circle2.mjs'")
	k.put("/circle2.mjs", "import './circle1.mjs'; throw new Error('in a circle')")
	k.put("/late.mjs", "await new Promise((r) => setTimeout(r, 1)); throw new Error('of the late')")
	k.put("/afterlate.mjs", "import './late.mjs'")
	k.put("/waits.mjs", "await new Promise((r) => setTimeout(r, 1))")
	k.put("/afterwait.mjs", "import './waits.mjs'; throw new Error('after waiting')")
	k.put("/one.mjs", "throw 'the same'")
	k.put("/two.mjs", "throw 'the same'")
	k.put("/both.mjs", "const e = new Error('both'); Promise.reject(e); throw e")
	k.put("/rejects.mjs", "Promise.reject(new Error('of the module'))")
	const later = "const later = (ms) => new Promise((r) => setTimeout(r, ms));\n"
	for _, tt := range []struct {
		name, source, out, err string
		code                   int
	}{
		{name: "plain", source: "Promise.reject(new TypeError('no'))", err: "Uncaught (in promise) TypeError: no\n    at ", code: 1},
		{name: "where", source: "\n\nasync function deep() { throw new Error('no') }\ndeep()", err: "at deep (/[source].mjs:3:", code: 1},
		{name: "text", source: "Promise.reject('text')", err: "Uncaught (in promise) text\n", code: 1},
		{name: "nothing", source: "Promise.reject()", err: "Uncaught (in promise) undefined\n", code: 1},
		{name: "async function", source: "(async () => { await null; throw new Error('no') })()", err: "Error: no", code: 1},
		{name: "then", source: "Promise.resolve().then(() => { throw new Error('no') })", err: "Error: no", code: 1},
		{name: "finally", source: "Promise.reject(new Error('no')).finally(() => {})", err: "Error: no", code: 1},
		{name: "all", source: "Promise.all([Promise.reject(new Error('no'))])", err: "Error: no", code: 1},
		{name: "any", source: "Promise.any([Promise.reject(new Error('one')), Promise.reject(new Error('two'))])", err: "[errors]: [", code: 1},
		{name: "executor", source: "new Promise(() => { throw new Error('no') })", err: "Error: no", code: 1},
		{name: "generator", source: "(async function* () { throw new Error('no') })().next()", err: "Error: no", code: 1},
		{name: "cause", source: "Promise.reject(new Error('outer', {cause: new Error('inner')}))", err: "[cause]: Error: inner", code: 1},
		{name: "import", source: "import('/throws.mjs')", err: "of the module", code: 1},
		{name: "import of nothing", source: "import('/none.mjs')", err: "Cannot find module '/none.mjs'", code: 1},
		{name: "in an import", source: "import '/rejects.mjs'", err: "of the module", code: 1},
		{name: "in a timer", source: "setTimeout(() => { Promise.reject(new Error('no')) }, 1)", err: "Error: no", code: 1},
		{name: "in an immediate", source: "setImmediate(() => { Promise.reject(new Error('no')) })", err: "Error: no", code: 1},
		{name: "in a tick", source: "process.nextTick(() => { Promise.reject(new Error('no')) })", err: "Error: no", code: 1},
		{name: "at once", source: "Promise.reject(new Error('no')); await new Promise((r) => setTimeout(r, 1e8))", err: "Error: no", code: 1},
		{name: "before output", source: "setTimeout(() => console.log('late'), 1); Promise.reject(new Error('no'))", err: "Error: no", code: 1},
		{name: "too late", source: later + "const p = Promise.reject(new Error('no')); setTimeout(() => p.catch(() => {}), 1); await later(2)", err: "Error: no", code: 1},
		{name: "of which one is caught", source: "const p = Promise.reject(new Error('no')); p.catch(() => {}); p.then(() => {})", err: "Error: no", code: 1},
		{name: "the first of two", source: "Promise.reject(new Error('one')); Promise.reject(new Error('two'))", err: "Error: one", code: 1},
		{name: "value is there", source: "export default 1; Promise.reject(new Error('no'))", err: "Error: no", code: 1},
		{name: "default that rejects", source: "export default async () => { throw new Error('no') }", err: "Uncaught Error: no", code: 1},
		{name: "await that rejects", source: "await Promise.reject(new Error('no'))", err: "Uncaught Error: no", code: 1},

		{name: "caught", source: "Promise.reject(new Error('no')).catch(() => console.log('caught'))", out: "caught\n"},
		{name: "caught by then", source: "Promise.reject(1).then(null, () => {})"},
		{name: "caught by await", source: "try { await Promise.reject(1) } catch {}"},
		{name: "caught after some promises", source: "const p = Promise.reject(1); for (let i = 0; i < 1000; i++) await null; await p.catch(() => {})"},
		{name: "caught in a tick", source: "const p = Promise.reject(1); process.nextTick(() => p.catch(() => {}))"},
		{name: "caught in a microtask", source: "const p = Promise.reject(1); queueMicrotask(() => p.catch(() => {}))"},
		{name: "caught in the turn of a timer", source: "setTimeout(async () => { const p = Promise.reject(1); await null; await null; p.catch(() => {}) }, 1)"},
		{name: "all settled", source: "export default (await Promise.allSettled([Promise.reject(1), Promise.reject(2)])).length"},
		{name: "race", source: "await Promise.race([1, Promise.reject(2)])"},
		{name: "a loser of any", source: "await Promise.any([Promise.reject(1), Promise.resolve(2)])"},
		{name: "iteration", source: "try { for await (const x of [Promise.reject(1)]); } catch {}"},
		{name: "import that is caught", source: "await import('/throws.mjs').catch(() => {}); await import('/throws.mjs').catch(() => {})"},
		{name: "import of a thrower that is caught", source: "await import('/above.mjs').catch(() => {}); await import('/above2.mjs').catch(() => {})"},
		{name: "import of a thrower later", source: "await import('/throws.mjs').catch(() => {}); await null; setTimeout(() => import('/above.mjs'), 1)", err: "of the module", code: 1},
		{name: "import in a circle that is caught", source: "await import('/circle1.mjs').catch(() => {})"},
		{name: "import in a circle", source: "import('/circle1.mjs')", err: "in a circle", code: 1},
		{name: "import of a late thrower that is caught", source: "await import('/late.mjs').catch(() => {}); await import('/afterlate.mjs').catch(() => {})"},
		{name: "import of a late thrower", source: "import('/late.mjs')", err: "of the late", code: 1},
		{name: "import after one that waits", source: "import('/afterwait.mjs')", err: "after waiting", code: 1},
		{name: "import after one that waits that is caught", source: "await import('/afterwait.mjs').catch(() => {})"},
		{name: "import of what throws the same", source: "await import('/one.mjs').catch(() => {}); await import('/two.mjs').catch(() => {})"},
		{name: "import of what rejects with what it throws", source: "await import('/both.mjs').catch(() => {})", err: "both", code: 1},
		{name: "many", source: "for (let i = 0; i < 10000; i++) Promise.reject(i).catch(() => {})"},

		{name: "listener", source: "process.on('unhandledRejection', (e, p) => console.log(e, p instanceof Promise)); Promise.reject('no')", out: "no true\n"},
		{name: "listener hears all", source: "process.on('unhandledRejection', (e) => console.log(e)); Promise.reject(1); Promise.reject(2)", out: "1\n2\n"},
		{name: "listener that throws", source: "process.on('unhandledRejection', () => { throw new Error('again') }); Promise.reject(1)", err: "Uncaught Error: again", code: 1},
		{name: "listener of exceptions", source: "process.on('uncaughtException', (e, origin) => console.log(e.code, origin)); Promise.reject(1)",
			out: "ERR_UNHANDLED_REJECTION unhandledRejection\n"},
		{name: "handled later", source: later + "process.on('unhandledRejection', () => {}); process.on('rejectionHandled', (p) => console.log('handled', p === q)); " +
			"const q = Promise.reject(1); await later(1); q.catch(() => {}); await later(1)", out: "handled true\n"},
		{name: "throw in a microtask", source: "queueMicrotask(() => { throw new Error('no') })", err: "Uncaught Error: no", code: 1},
		{name: "throw in a tick", source: "process.nextTick(() => { throw new Error('no') })", err: "Uncaught Error: no", code: 1},
		{name: "throw in a callback", source: "import fs from 'fs'; fs.readFile('/none', (e) => { throw e })", err: "Uncaught Error: ENOENT", code: 1},
		{name: "throw that is heard", source: "process.on('uncaughtException', (e) => console.log(e.message)); setTimeout(() => { throw new Error('no') }, 1)", out: "no\n"},
		{name: "memory", source: "Promise.reject(Object.assign(new Error('out of memory'), {name: 'InternalError'}))", code: 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, out, errs := k.run(execd.Spec{Source: tt.source})
			if x.Code != tt.code || out != tt.out || !strings.Contains(errs, tt.err) || tt.err == "" && errs != "" {
				t.Errorf("exit %+v, output %q, errors %q", x, out, errs)
			}
		})
	}
}
