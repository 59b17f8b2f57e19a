package js_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// hostile is a module that does what nobody should, and how it must end.
type hostile struct {
	name, source string
	input        string
	limits       execd.Limits

	value  string // the result value
	errs   string // is in standard error
	reason string // is in the exit's reason
	code   int
	oom    bool
	slow   bool // it is tried only when CARREL_HOSTILE is set
}

// CARREL_HOSTILE tries all of them, also those that take a second or more.
//
//	CARREL_HOSTILE=1 go test ./execd/js -run TestHostile

// small is memory that is soon used up.
var small = execd.Limits{Memory: 12 << 20}

var hostiles = []hostile{
	// What is there for all is changed.
	{name: "toJSON of all", source: "Object.prototype.toJSON = () => 'x'; export default {a: 1}", value: `"x"`},
	{name: "then of all", source: "Object.prototype.then = function (f) { f(7) }; export default {}", value: `7`},
	{name: "getters of all", source: "for (const k of ['get', 'set', 'value', 'writable', 'enumerable', 'configurable']) Object.prototype[k] = 1; console.log(1); export default 1", value: `1`},
	{name: "no iterators", source: "Array.prototype[Symbol.iterator] = undefined; console.log([1]); export default 1", code: 1, errs: `TypeError: value is not iterable`},
	{name: "no methods", source: "for (const C of [Array, String, Map, Set, Promise, Function, RegExp]) for (const k of Object.getOwnPropertyNames(C.prototype)) try { C.prototype[k] = undefined } catch {} console.log([1], 'x'); export default 1", code: 1, errs: `TypeError: not a function`},
	{name: "another JSON", source: "JSON.stringify = () => '{'; JSON.parse = null; export default {a: 1}", value: `{"a":1}`},
	{name: "another JSON that is no text", source: "JSON.stringify = () => ({}); export default {a: 1}", value: `{"a":1}`},
	{name: "no globals", source: "for (const k of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[k] } catch {} export default 1", code: 1, errs: `ReferenceError: 'Error' is not defined`},
	{name: "a setter for names of ours", source: "for (const k of ['main', 'args', 'env', 'cwd', 'input']) Object.defineProperty(Object.prototype, k, {set() { throw new Error('set') }, get() { throw new Error('got') }}); export default 1", value: `1`},
	{name: "prototype by input", input: `{"__proto__": {"polluted": 1}}`, source: "export default (i) => [typeof ({}).polluted, Object.keys(i)]", value: `["undefined",["__proto__"]]`},
	{name: "prototype by clone", source: "const o = JSON.parse('{\"__proto__\": {\"polluted\": 1}}'); structuredClone(o); export default typeof ({}).polluted", value: `"undefined"`},

	// Results that are none.
	{name: "a value that throws", source: "export default {get a() { throw new Error('getter') }}", code: 1, errs: `Error: getter`},
	{name: "toJSON that throws", source: "export default {toJSON() { throw new Error('toJSON') }}", code: 1, errs: `Error: toJSON`},
	{name: "toJSON that gives itself", source: "const o = {toJSON() { return o }}; export default o", value: `{}`},
	{name: "a number too large for JSON", source: "export default 10n ** 30n", code: 1, errs: `TypeError: Do not know how to serialize a BigInt`},
	{name: "a proxy that throws", source: "export default new Proxy({}, {ownKeys() { throw new Error('trap') }})", code: 1, errs: `Error: trap`},
	{name: "a revoked proxy", source: "const r = Proxy.revocable({}, {}); r.revoke(); export default r.proxy", code: 1, errs: `[TypeError: revoked proxy]`},
	{name: "a proxy without end", source: "const p = () => new Proxy({}, {ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true}), get: (t, k) => k === 'a' ? p() : undefined}); export default p()", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a proxy of many keys", source: "export default new Proxy({}, {ownKeys: () => Array.from({length: 500}, (_, i) => 'k' + i), getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true}), get: (t, k) => typeof k === 'string' && k[0] === 'k' ? 'x'.repeat(10000) : undefined})", code: 1, reason: "bytes, of at most 4194304", slow: true},
	{name: "a deep value", source: "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; export default a", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a symbol", source: "export default Symbol('s')"},
	{name: "a value that exits", source: "export default {toJSON() { process.exit(3) }}", code: 3},

	// What is thrown.
	{name: "throw null", source: "throw null", code: 1, errs: `null`},
	{name: "throw undefined", source: "throw undefined", code: 1, errs: `undefined`},
	{name: "throw a symbol", source: "throw Symbol('s')", code: 1, errs: `Symbol(s)`},
	{name: "throw a revoked proxy", source: "const r = Proxy.revocable({}, {}); r.revoke(); throw r.proxy", code: 1, errs: `TypeError: revoked proxy`},
	{name: "throw a stack that throws", source: "const e = new Error('e'); Object.defineProperty(e, 'stack', {get() { throw new Error('stack') }}); throw e", code: 1, errs: `an error that cannot be shown`},
	{name: "throw a message that throws", source: "throw {get message() { throw new Error('message') }, toString() { throw new Error('toString') }}", code: 1, errs: `{ message: [Getter], toString: [Function: toString] }`},
	{name: "throw its own cause", source: "const e = new Error('e'); e.cause = e; throw e", code: 1, errs: `Error: e`},
	{name: "reject with a revoked proxy", source: "const r = Proxy.revocable({}, {}); r.revoke(); Promise.reject(r.proxy)", code: 1, errs: `TypeError: revoked proxy`},
	{name: "an exit code that throws", source: "process.exitCode = {valueOf() { throw new Error('code') }}", code: 1, errs: `Error: code`},
	{name: "a huge exit code", source: "process.exit(1e9)"},
	{name: "a listener that throws", source: "process.on('exit', () => { throw new Error('listener') }); export default 1", value: `1`, code: 1, errs: `Error: listener`},
	{name: "listeners without end", source: "process.on('uncaughtException', () => { throw new Error('again') }); throw new Error('first')", code: 1, errs: `Error: again`},

	// Too much.
	{name: "a huge array", source: "new Array(2 ** 32 - 1).fill(0)", limits: small, code: 137, oom: true, slow: true},
	{name: "a huge text", source: "'x'.repeat(2 ** 30 - 1)", limits: small, code: 137, oom: true},
	{name: "a huge buffer", source: "new ArrayBuffer(2 ** 40)", limits: small, code: 1, errs: `RangeError: invalid array buffer length`},
	{name: "a huge shared buffer", source: "new SharedArrayBuffer(2 ** 40)", limits: small, code: 1, errs: `RangeError: invalid array buffer length`},
	{name: "a huge Buffer", source: "Buffer.alloc(2 ** 40)", limits: small, code: 1, errs: `RangeError: invalid array buffer length`},
	{name: "a buffer of a false length", source: "Buffer.from({length: 2 ** 50})", limits: small, code: 1, errs: `RangeError: invalid array buffer length`},
	{name: "promises", source: "for (;;) Promise.resolve().then(() => {})", limits: small, code: 137, oom: true, slow: true},
	{name: "promises that wait", source: "const all = []; for (;;) all.push(new Promise(() => {}))", limits: small, code: 137, oom: true, slow: true},
	{name: "rejections", source: "for (;;) Promise.reject(new Error('x'))", limits: small, code: 137, oom: true, slow: true},
	{name: "immediates", source: "for (;;) setImmediate(() => {})", limits: small, code: 137, oom: true, slow: true},
	{name: "ticks", source: "for (;;) process.nextTick(() => {})", limits: small, code: 137, oom: true, slow: true},
	{name: "closures", source: "let f = () => 0; for (;;) { const g = f; f = () => g() }", limits: small, code: 137, oom: true, slow: true},
	{name: "a map", source: "const m = new Map(); for (let i = 0;; i++) m.set(i, {i})", limits: small, code: 137, oom: true, slow: true},
	{name: "atoms", source: "const o = {}; for (let i = 0;; i++) o['property ' + i] = 1", limits: small, code: 137, oom: true, slow: true},
	{name: "output to nobody", source: "const s = 'x'.repeat(1 << 20); for (let i = 0; i < 8; i++) console.log(s)"},

	// Too deep.
	{name: "a getter of itself", source: "const o = {get a() { return this.a }}; o.a", code: 1, errs: `InternalError: stack overflow`},
	{name: "a proxy of itself", source: "const p = new Proxy({}, {get(t, k, r) { return r[k] }}); p.a", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a prototype of proxies", source: "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.a", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "toString of itself", source: "const o = {toString() { return '' + this }}; '' + o", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "an array in itself", source: "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; '' + a", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a deep clone", source: "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; structuredClone(a)", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a deep log", source: "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; console.log(a); export default 1", value: `1`},
	{name: "a deep expression", source: "eval('('.repeat(1e5) + '1' + ')'.repeat(1e5))", code: 1, errs: `SyntaxError: stack overflow`},
	{name: "a deep array of source", source: "eval('['.repeat(1e5))", code: 1, errs: `SyntaxError: stack overflow`},
	{name: "a deep block", source: "eval('{'.repeat(1e5))", code: 1, errs: `SyntaxError: stack overflow`},
	{name: "a deep template", source: "eval('`${'.repeat(1e5))", code: 1, errs: `SyntaxError: stack overflow`, slow: true},
	{name: "a deep regular expression", source: "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", code: 1, errs: `SyntaxError: too many captures`},
	{name: "a wide regular expression", source: "new RegExp('(a|'.repeat(1e4) + 'b' + ')'.repeat(1e4)).test('a')", code: 1, errs: `SyntaxError: too many captures`},
	{name: "a regular expression of many counts", source: "new RegExp('((a{1,1000}){1,1000}){1,1000}').test('b')"},
	{name: "arguments without end", source: "Math.max(...Array(1e6))", code: 1, errs: `RangeError: too many arguments in function call (only 65534 allowed)`, slow: true},
	{name: "apply without end", source: "Math.max.apply(null, {length: 2 ** 32 - 1})", code: 1, errs: `RangeError: too many arguments in function call (only 65534 allowed)`},
	{name: "a constructor of itself", source: "class A extends (class {}) { constructor() { super(); new A() } } new A()", code: 1, errs: `InternalError: stack overflow`, slow: true},
	{name: "a bound function of bound functions", source: "let f = () => 0; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()", limits: small, code: 137, oom: true},

	// Modules.
	{name: "a cycle", source: "import {a} from '/cycle/a.mjs'; export default a()", value: `"afunction"`},
	{name: "itself", source: "export const x = 1; export default (await import('/self.mjs')).default", code: 1, errs: `ReferenceError: default is not initialized`},
	{name: "a module that waits for its importer", source: "export default (await import('/wait/a.mjs')).default", code: 1, errs: `the module waits for what will never happen`},
	{name: "a chain of modules", source: "export default (await import('/chain/0.mjs')).default", code: 1, errs: `Error: more than 2000 modules`, slow: true},
	{name: "imports of one file without end", source: "for (let i = 0;; i++) await import('/one.mjs?' + i)", code: 1, errs: `Error: more than 2000 modules`, slow: true},
	{name: "imports at once", source: "for (let i = 0;; i++) import('/one.mjs?' + i)", limits: small, code: 137, oom: true, slow: true},
	{name: "imports of what is not there", source: "for (let i = 0; i < 3000; i++) try { await import('/none' + i) } catch {} export default 1", value: `1`, slow: true},
	{name: "a long line", source: "export default (await import('/long.mjs')).default", value: `1`, slow: true},
	{name: "a module too large", source: "export default (await import('/huge.mjs')).default", code: 1, errs: `Error: Cannot read module '/huge.mjs': EFBIG: file too large`, slow: true},
	{name: "a module that is no text", source: "export default (await import('/noise.mjs')).default", code: 1, errs: `SyntaxError: unexpected character`},

	// What looks at things.
	{name: "log a proxy that throws", source: "console.log(new Proxy({}, new Proxy({}, {get() { throw new Error('trap') }}))); export default 1", code: 1, errs: `Error: trap`},
	{name: "log a revoked proxy", source: "const r = Proxy.revocable({}, {}); r.revoke(); console.log(r.proxy); export default 1", code: 1, errs: `TypeError: revoked proxy`},
	{name: "log a getter that throws", source: "console.log({get a() { throw new Error('getter') }}); export default 1", value: `1`},
	{name: "log a name that throws", source: "console.log(Object.create({get constructor() { throw new Error('constructor') }})); export default 1", value: `1`},
	{name: "log what inspects itself", source: "const o = {[Symbol.for('nodejs.util.inspect.custom')]() { return o }}; console.log(o); export default 1", value: `1`},
	{name: "log what throws when inspected", source: "console.log({[Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('custom') }}); export default 1", value: `1`},
	{name: "log a tag that throws", source: "console.log({get [Symbol.toStringTag]() { throw new Error('tag') }}); export default 1", code: 1, errs: `Error: tag`},
	{name: "log a huge array", source: "console.log(new Array(1e6).fill(1)); export default 1", value: `1`, slow: true},
	{name: "log a sparse array", source: "const a = []; a[4294967294] = 1; console.log(a); export default 1", value: `1`},
	{name: "log a huge map", source: "console.log(new Map(Array.from({length: 1e5}, (_, i) => [i, i]))); export default 1", value: `1`, slow: true},
	{name: "log a format that throws", source: "console.log('%s %d %o', {toString() { throw new Error('s') }}, {valueOf() { throw new Error('d') }}, Symbol('o')); export default 1", code: 1},
	{name: "log a false date and a false error", source: "console.log(new Date(NaN), Object.create(Error.prototype), ...[Date, Map, Set, Number, URL, RegExp, Promise].map((C) => Object.create(C.prototype))); export default 1", value: `1`},
	{name: "clone a proxy that throws", source: "structuredClone(new Proxy({}, {ownKeys() { throw new Error('trap') }}))", code: 1, errs: `trap`},

	// Calls of ours with what they do not expect.
	{name: "a path that throws", source: "import fs from 'fs'; fs.readFileSync(new Proxy({}, {get() { throw new Error('trap') }}))", code: 1},
	{name: "options that throw", source: "import fs from 'fs'; fs.writeFileSync('/x', 'x', {get mode() { throw new Error('mode') }})", code: 1, errs: `mode`},
	{name: "a name of a megabyte", source: "import fs from 'fs'; fs.writeFileSync('/' + 'x'.repeat(1 << 20), '')", code: 1, errs: `ENAMETOOLONG`, slow: true},
	{name: "a path of many parts", source: "import fs from 'fs'; fs.statSync('/x'.repeat(1 << 20))", code: 1, errs: `EN`, slow: true},
	{name: "a huge directory", source: "import fs from 'fs'; fs.readdirSync('/many')", code: 1, errs: `ERR_FS_DIR_TOO_LARGE`},
	{name: "a range without end", source: "import fs from 'fs'; fs.readSync(fs.openSync('/one.mjs'), new Uint8Array(8), 0, 8, 2 ** 62)"},
	{name: "write far away", source: "import fs from 'fs'; fs.writeSync(fs.openSync('/far', 'w'), 'x', 2 ** 52)", code: 1, errs: `EFBIG`},
	{name: "open files without end", source: "import fs from 'fs'; for (;;) fs.openSync('/one.mjs')", code: 1, errs: `EMFILE`, slow: true},
	{name: "wait for shared memory", source: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", code: 1, errs: `TypeError`},
	{name: "a URL of a megabyte", source: "new URL('http://' + 'x.'.repeat(1 << 20))", code: 1, errs: `Invalid URL`},
}

// endlessPatience is how long one of hostiles may take; it only tells what is slow from what hangs.
const endlessPatience = 20 * time.Second

// endless are modules that have no end by themselves: they say that they have begun.
var endless = map[string]string{
	"a regular expression": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
	"microtasks":           "const f = () => Promise.resolve().then(f); await f()",
	"ticks":                "const f = () => process.nextTick(f); f(); await new Promise(() => {})",
	"immediates":           "const f = () => setImmediate(f); f()",
	"an interval":          "setInterval(() => {}, 0)",
	"timers that set more": "const f = () => { setTimeout(f, 0); setTimeout(f, 1e8) }; try { f() } catch {} for (;;) await 1",
	"an async generator":   "async function* g() { for (;;) yield 1 } for await (const x of g());",
	"a generator":          "function* g() { for (;;) yield 1 } for (const x of g());",
	"a thenable of itself": "await {then(f) { f(this) }}",
	"a join":               "Array(1e9).join('xxxx')",
	"finally":              "for (;;) try { throw 1 } catch { continue } finally { continue }",
	"a sort":               "Array.from({length: 1e4}, (_, i) => i).sort(() => { for (;;); })",
	"a replacement":        "'x'.repeat(1e6).replace(/x/g, () => { for (;;); })",
	"a getter":             "JSON.stringify({get a() { for (;;); }})",
	"a collection":         "for (;;) new Array(1e4).fill({})",
	"standard input":       "for await (const c of process.stdin);",
	"files":                "const fs = await import('fs'); for (;;) fs.writeFileSync('/again', 'x')",
	"a number":             "let n = 1n; for (;;) n = n * 3n % (1n << 4096n)",
	"what it was told":     "process.on('SIGTERM', () => {}); process.on('exit', () => { for (;;); }); process.exit()",
}

func putHostile(k kit) {
	k.put("/cycle/a.mjs", "import {b} from './b.mjs'; export const a = () => 'a' + b()")
	k.put("/cycle/b.mjs", "import {a} from './a.mjs'; export const b = () => typeof a")
	k.put("/self.mjs", "import * as self from './self.mjs'; export default Object.keys(self).length")
	k.put("/wait/a.mjs", "export default (await import('./b.mjs')).default")
	k.put("/wait/b.mjs", "export default (await import('./a.mjs')).default")
	for i := range 2100 {
		k.put(fmt.Sprintf("/chain/%d.mjs", i), fmt.Sprintf("import x from './%d.mjs'; export default x", i+1))
	}
	k.put("/one.mjs", "export default 1")
	k.put("/long.mjs", "export default 1 /* "+strings.Repeat("x", 10<<20)+" */")
	k.put("/sum.mjs", "export default 1"+strings.Repeat("+1", 5<<20))
	k.put("/huge.mjs", "export default 1 /* "+strings.Repeat("x", worker.MaxFile)+" */")
	k.put("/noise.mjs", "export default \xff\xfe\x00")
	k.put("/many/one", "")
}

// crowded is a tree in which a directory has no end.
type crowded struct {
	vfs.Tree
	dir vfs.Ino
}

func (c crowded) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	if dir != c.dir {
		return c.Tree.ReadDir(ctx, dir, after, yield)
	}
	for i := 0; yield(vfs.Dirent{Name: strconv.Itoa(i), Type: vfs.TypeRegular}); i++ {
	}
	return nil
}

// Whatever a module does has an end with an error of its own, or is ended, and the backend goes on.
func TestHostile(t *testing.T) {
	k := newKit(t)
	putHostile(k)
	many, err := k.fs.Stat(t.Context(), "/many")
	if err != nil {
		t.Fatal(err)
	}
	k.fs.Tree = crowded{k.fs.Tree, many.Ino}
	all := os.Getenv("CARREL_HOSTILE") != ""
	for _, tt := range hostiles {
		if tt.slow && !all {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			var input json.RawMessage
			if tt.input != "" {
				input = json.RawMessage(tt.input)
			}
			o := &output{}
			p := k.start(execd.Spec{Source: tt.source, Input: input, Limits: tt.limits}, o)
			late := time.AfterFunc(endlessPatience, func() {
				t.Error("it does not end")
				_ = p.Signal(int(syscall.SIGKILL)) // which has no error
			})
			x := p.Wait()
			late.Stop()
			out, errs := o.out.String(), o.err.String()
			if string(x.Value) != tt.value || x.Code != tt.code || x.OOM != tt.oom || !strings.Contains(x.Reason, tt.reason) ||
				!strings.Contains(errs, tt.errs) {
				t.Errorf("%+v, value %s, %d bytes of output, errors %.300q", x, x.Value, len(out), errs)
			}
		})
	}
	for name, source := range endless {
		o := &started{came: make(chan struct{})}
		p := k.start(execd.Spec{Source: "console.log('begun'); " + source, Open: true}, o)
		<-o.came
		if err := p.Signal(int(syscall.SIGKILL)); err != nil {
			t.Error(err)
		}
		if x := p.Wait(); x.Code != 137 || x.Signal != int(syscall.SIGKILL) {
			t.Errorf("%s: %+v %s", name, x, o.err.String())
		}
	}
	if x, _, errs := k.run(execd.Spec{Source: "export default 1"}); string(x.Value) != "1" {
		t.Errorf("afterwards: %+v %s", x, errs)
	}
}
