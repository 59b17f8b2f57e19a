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
		{name: "bare", spec: execd.Spec{Source: "import 'lodash'"}, err: "cannot find module", code: 1},
		{name: "host file", spec: execd.Spec{Source: "export default await import('/etc/passwd')"}, err: "ENOENT", code: 1},
		{name: "host url", spec: execd.Spec{Source: "import 'file:///etc/passwd'"}, err: "ENOENT", code: 1},
		{name: "http", spec: execd.Spec{Source: "import 'https://example.org/x.js'"}, err: "cannot find module", code: 1},
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

// Each run is alone: nothing that one leaves is there for the next.
func TestFreshIsolate(t *testing.T) {
	k := newKit(t)
	for range 3 {
		x, _, errs := k.run(execd.Spec{Source: "export default typeof globalThis.left; globalThis.left = 1"})
		if string(x.Value) != `"undefined"` {
			t.Errorf("%s %s", x.Value, errs)
		}
	}
}

func BenchmarkModule(b *testing.B) {
	k := newKit(b)
	for b.Loop() {
		if x, _, errs := k.run(execd.Spec{Source: "export default 1"}); string(x.Value) != "1" {
			b.Fatal(x, errs)
		}
	}
}
