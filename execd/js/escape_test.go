package js_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// What a module tries, to get at what is not its workspace's, comes to nothing: each gives an error, undefined, or what is in
// the workspace at that path, and the backend goes on.
func TestEscapes(t *testing.T) {
	k := newKit(t)
	k.put("/in/f", "inside")
	for target, path := range map[string]string{
		"/etc": "/in/etc", "../../../../../../etc/passwd": "/in/passwd", "/proc/self": "/in/self", "loop": "/in/loop",
	} {
		if err := k.fs.Symlink(t.Context(), target, path); err != nil {
			t.Fatal(err)
		}
	}
	const attempt = "import fs from 'node:fs'; let r; try { r = await (async () => (%))() } catch (e) { r = 'error ' + (e && (e.code || e.name)) }" +
		"export default r === undefined ? 'undefined' : String(r)"
	for _, tt := range []struct{ expr, want string }{
		{"fs.readFileSync('/etc/passwd', 'utf8')", "error ENOENT"},
		{"fs.readFileSync('../../../../etc/passwd', 'utf8')", "error ENOENT"},
		{"fs.readFileSync('/in/../../in/f', 'utf8')", "inside"},
		{"fs.readFileSync('/in/etc/passwd', 'utf8')", "error ENOENT"},
		{"fs.readFileSync('/in/passwd', 'utf8')", "error ENOENT"},
		{"fs.readFileSync('/in/self/environ', 'utf8')", "error ENOENT"},
		{"fs.readFileSync('/in/loop')", "error ELOOP"},
		{"fs.readFileSync('/proc/self/maps')", "error ENOENT"},
		{"fs.readFileSync('/proc/1/environ')", "error ENOENT"},
		{"fs.readFileSync('/dev/mem')", "error ENOENT"},
		{"fs.readdirSync('/sys')", "error ENOENT"},
		{"fs.readFileSync(new URL('file:///etc/shadow'))", "error ENOENT"},
		{"fs.readFileSync('/etc/passwd\\0.txt')", "error ERR_INVALID_ARG_VALUE"},
		{"fs.readFileSync({toString: () => '/etc/passwd'})", "error ERR_INVALID_ARG_TYPE"},
		{"fs.writeFileSync('/in/etc/x', 'x')", "error ENOENT"},
		{"fs.linkSync('/etc/passwd', '/p')", "error ENOENT"},
		{"(fs.symlinkSync('/etc/passwd', '/in/s'), fs.readFileSync('/in/s', 'utf8'))", "error ENOENT"},
		{"fs.rmSync('/', {recursive: true})", "error EBUSY"},
		{"import('/in/etc/passwd')", "error ERR_MODULE_NOT_FOUND"},
		{"import('../../../../proc/self/cmdline')", "error ERR_MODULE_NOT_FOUND"},
		{"import('node:child_process')", "error ERR_UNKNOWN_BUILTIN_MODULE"},
		{"import('node:net')", "error ERR_UNKNOWN_BUILTIN_MODULE"},
		{"import('node:worker_threads')", "error ERR_UNKNOWN_BUILTIN_MODULE"},
		{"import('node:fs/../os')", "error ERR_UNKNOWN_BUILTIN_MODULE"},
		{"import('std')", "error ERR_MODULE_NOT_FOUND"},
		{"import('os')", "error ERR_MODULE_NOT_FOUND"},
		{"import('data:text/javascript,export default 1')", "error ERR_UNSUPPORTED_ESM_URL_SCHEME"},
		{"import('/in/f')", "error ReferenceError"},
		{"process.binding('fs')", "error TypeError"},
		{"process.mainModule", "undefined"},
		{"process.kill(1, 9)", "error TypeError"},
		{"process.dlopen({}, '/lib/x.so')", "error TypeError"},
		{"JSON.stringify(process.env)", "{}"},
		{"(() => {}).constructor('return typeof require + typeof __call')()", "undefinedundefined"},
		{"(async () => {}).constructor('return import(\"os\")')()", "error ERR_MODULE_NOT_FOUND"},
		{"fs.readFileSync.constructor('return this')().__call", "undefined"},
		{"Object.getOwnPropertyNames(globalThis).filter((k) => k.startsWith('__'))", "__node"},
		{"delete globalThis.__node", "error TypeError"},
		{"import('%2e%2e%2f%2e%2e%2fetc/passwd')", "error ERR_MODULE_NOT_FOUND"},
		{"import('./..%2f..%2fetc/passwd')", "error ERR_INVALID_MODULE_SPECIFIER"},
		{"import('/in/%2e%2e/%2e%2e/etc/passwd')", "error ERR_MODULE_NOT_FOUND"},
		{"import('file://host/etc/passwd')", "error ERR_MODULE_NOT_FOUND"},
		{"import('/in/self/environ?x=/in/f')", "error ERR_MODULE_NOT_FOUND"},
		{"import('fs\\0')", "error ERR_INVALID_MODULE_SPECIFIER"},
		{"import('/in/f\\0.mjs')", "error ERR_INVALID_MODULE_SPECIFIER"},
		{"import('/in/f%00.mjs')", "error ERR_INVALID_MODULE_SPECIFIER"},
		{"fs.openSync('/etc/passwd')", "error ENOENT"},
		{"fs.readSync(7, new Uint8Array(9))", "error EBADF"},
		{"fs.readFileSync(3)", "error EBADF"},
		{"fs.readFileSync('/dev/stdin')", "error ENOENT"},
		{"fs.cpSync('/etc', '/x', {recursive: true})", "error ENOENT"},
		{"fs.cpSync('/in/etc', '/in/copy', {recursive: true, dereference: true})", "error ENOENT"},
		{"fs.opendirSync('/proc')", "error ENOENT"},
		{"eval('typeof std')", "undefined"},
		{"fetch('http://169.254.169.254/')", "error ReferenceError"},
		{"new WebSocket('ws://localhost')", "error ReferenceError"},
		{"new Worker('/in/f')", "error ReferenceError"},
		{"Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)", "error TypeError"},
		{"Object.prototype.toString.call(globalThis.__node.fs.promises.constructor.constructor('return this')())", "[object global]"},
	} {
		x, _, errs := k.run(execd.Spec{Source: strings.Replace(attempt, "%", tt.expr, 1)})
		var got string
		if err := json.Unmarshal(x.Value, &got); err != nil || got != tt.want {
			t.Errorf("%s: %q, want %q; %+v %s", tt.expr, got, tt.want, x, errs)
		}
	}
	if b, err := k.fs.ReadFile(t.Context(), "/in/f", 0); err != nil || string(b) != "inside" {
		t.Errorf("%q, %v", b, err)
	}
}
