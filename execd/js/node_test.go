package js_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// What a module finds of node's names does what it does there. Each case is an expression that must be true, with fs, path,
// url and process imported.
func TestNode(t *testing.T) {
	k := newKit(t)
	k.put("/d/text", "héllo\n")
	k.put("/d/sub/f", "x")
	k.put("/bytes", "\x00\xff\x80")
	const imports = "import fs, {readFileSync} from 'node:fs'; import * as fsp from 'node:fs/promises'; import path from 'path'; " +
		"import url, {fileURLToPath} from 'node:url'; import process from 'node:process';\n" +
		"const code = async (f) => { try { await f(); return 'none' } catch (e) { return e.code || e.name } };\n" +
		"const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);\n"
	for _, expr := range strings.Split(strings.TrimSpace(`
await fsp.readFile('/d/text', 'utf8') === 'h\u00e9llo\n'
fs.readFileSync('d/text', {encoding: 'utf-8'}) === readFileSync('/d/text', 'utf8')
same([...fs.readFileSync('/bytes')], [0, 255, 128])
fs.readFileSync('/bytes', 'hex') === '00ff80'
fs.readFileSync('/bytes', 'base64') === 'AP+A'
(fs.writeFileSync('/new', 'a'), fs.appendFileSync('/new', 'b'), fs.readFileSync('/new', 'utf8')) === 'ab'
(fs.writeFileSync('/raw', new Uint8Array([0, 200, 255])), same([...fs.readFileSync('/raw')], [0, 200, 255]))
await code(() => fsp.writeFile('/new', 'x', {flag: 'wx'})) === 'EEXIST'
await code(() => fsp.readFile('/none')) === 'ENOENT'
await code(() => fsp.readFile('/d')) === 'EISDIR'
await code(() => fsp.readdir('/new')) === 'ENOTDIR'
await code(() => fsp.rmdir('/d')) === 'ENOTEMPTY'
await code(() => fsp.unlink('/d')) === 'EISDIR'
await code(() => fsp.readFile('')) === 'ENOENT'
await code(() => fsp.readFile('a\0b')) === 'ERR_INVALID_ARG_VALUE'
await code(() => fsp.readFile(7)) === 'TypeError'
await code(() => fsp.access('/d/text', 1)) === 'EACCES'
await code(() => fsp.mkdir('/d')) === 'EEXIST'
same(fs.readdirSync('/d'), ['sub', 'text'])
same(fs.readdirSync('/d', {recursive: true}), ['sub', 'sub/f', 'text'])
fs.readdirSync('/d', {withFileTypes: true})[0].isDirectory()
(await fsp.stat('/d/text')).size === 7 && fs.statSync('/d').isDirectory() && fs.statSync('/d/text').mtime instanceof Date
(await fsp.mkdir('/m/n/o', {recursive: true}), fs.existsSync('/m/n/o'))
(await fsp.rm('/m', {recursive: true}), !fs.existsSync('/m'))
(await fsp.rm('/none', {force: true}), true)
(await fsp.copyFile('/d/text', '/copy'), fs.readFileSync('/copy', 'utf8') === 'h\u00e9llo\n')
(await fsp.rename('/copy', '/moved'), fs.existsSync('/moved') && !fs.existsSync('/copy'))
(await fsp.symlink('d/text', '/l'), await fsp.readlink('/l') === 'd/text' && fs.lstatSync('/l').isSymbolicLink() && await fsp.realpath('/l') === '/d/text')
(await fsp.chmod('/new', 0o600), (fs.statSync('/new').mode & 0o777) === 0o600)
(await fsp.truncate('/new', 1), fs.statSync('/new').size === 1)
(await fsp.utimes('/new', 1, new Date(2000)), fs.statSync('/new').mtimeMs === 2000)
fs.readFileSync(new URL('file:///d/sub/f'), 'utf8') === 'x'
(process.chdir('/d'), fs.readFileSync('sub/f', 'utf8') === 'x' && process.cwd() === '/d' && path.resolve('x') === '/d/x')
path.join('a', '..', '/b/', 'c') === 'b/c' && path.normalize('/a/../../b/') === '/b/' && path.resolve('/a', '../b') === '/b'
path.dirname('/a/b/') === '/a' && path.dirname('a') === '.' && path.dirname('/a') === '/' && path.basename('/a/b.c', '.c') === 'b'
path.extname('a.b.c') === '.c' && path.extname('.a') === '' && path.relative('/a/b/c', '/a/d') === '../../d' && path.isAbsolute('/a')
same(path.parse('/a/b.c'), {root: '/', dir: '/a', base: 'b.c', ext: '.c', name: 'b'}) && path.format({dir: '/a', base: 'b'}) === '/a/b'
new URL('../x?a=1&b=%20#h', 'https://User:pw@Example.org:443/p/q/r').href === 'https://User:pw@example.org/p/x?a=1&b=%20#h'
new URL('https://e.org').pathname === '/' && new URL('https://e.org:8080/').host === 'e.org:8080' && new URL('https://e.org/').origin === 'https://e.org'
(() => { const u = new URL('https://e.org/?a=1'); u.searchParams.append('b', 'x y'); u.pathname = 'p'; u.hash = 'h'; return u.href })() === 'https://e.org/p?a=1&b=x+y#h'
await code(() => new URL('nothing')) === 'ERR_INVALID_URL' && !URL.canParse('/a') && URL.canParse('/a', 'file:///b')
same([...new URLSearchParams('a=1&b=2&a=%2B+')], [['a', '1'], ['b', '2'], ['a', '+ ']])
fileURLToPath('file:///a%20b') === '/a b' && url.pathToFileURL('/a b').href === 'file:///a%20b'
same([...new TextEncoder().encode('h\u00e9\u{1F600}')], [104, 195, 169, 240, 159, 152, 128])
new TextDecoder().decode(new Uint8Array([0xEF, 0xBB, 0xBF, 104, 195, 169, 255])) === 'h\u00e9\uFFFD'
await code(() => new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([255]))) === 'TypeError'
btoa('\u00ff\0') === '/wA=' && atob('/wA=') === '\u00ff\0' && await code(() => atob('?')) !== 'none'
(() => { const a = {d: new Date(5), m: new Map([[1, new Set([2])]]), b: new Uint8Array([1])}; a.self = a; const c = structuredClone(a); return c !== a && c.self === c && +c.d === 5 && c.m.get(1).has(2) && c.b[0] === 1 && c.b !== a.b })()
await code(() => structuredClone(() => 1)) === 'DataCloneError'
await new Promise((r) => { const seen = []; setTimeout(() => r(same(seen, [1])), 1000); setTimeout((x) => seen.push(x), 0, 1); clearTimeout(setTimeout(() => seen.push(0), 0)) })
await new Promise((r) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); r(true) } }, 1) })
await new Promise((r) => setImmediate(r, true))
await new Promise((r) => { const seen = []; queueMicrotask(() => seen.push(1)); process.nextTick(() => seen.push(2)); setTimeout(() => r(same(seen, [1, 2])), 0) })
performance.now() >= 0 && process.hrtime.bigint() >= 0n && process.platform === 'linux'
`), "\n") {
		x, _, errs := k.run(execd.Spec{Source: imports + "export default Boolean(" + expr + ")"})
		if string(x.Value) != "true" {
			t.Errorf("%s\n\t%s %+v %s", expr, x.Value, x, errs)
		}
	}
}

func TestConsole(t *testing.T) {
	k := newKit(t)
	for source, want := range map[string]string{
		"console.log('a', 1, null, undefined, true, 10n, -0)":                             "a 1 null undefined true 10n -0\n",
		"console.log({a: 1, b: 'x', c: [1, 'y']}, [])":                                    "{ a: 1, b: 'x', c: [ 1, 'y' ] } []\n",
		"console.log('%s is %d%%', 'x', 5, 'more')":                                       "x is 5% more\n",
		"console.log(new Map([[1, {a: 2}]]), new Set(['s']))":                             "Map(1) { 1 => { a: 2 } } Set(1) { 's' }\n",
		"const a = {}; a.a = a; console.log(a)":                                           "{ a: [Circular] }\n",
		"console.group('g'); console.log('in\\nside'); console.groupEnd()":                "g\n  in\n  side\n",
		"class A { x = 1 }; console.log(new A(), A, () => 1)":                             "A { x: 1 } [class A] [Function: (anonymous)]\n",
		"process.stdout.write('no line end'); process.stdout.write(new Uint8Array([33]))": "no line end!",
	} {
		if _, out, errs := k.run(execd.Spec{Source: source}); out != want || errs != "" {
			t.Errorf("%s: %q, want %q; %s", source, out, want, errs)
		}
	}
	_, out, errs := k.run(execd.Spec{Source: "console.error('e'); console.warn('w')"})
	if out != "" || errs != "e\nw\n" {
		t.Errorf("output %q, errors %q", out, errs)
	}
}

func TestStdin(t *testing.T) {
	k := newKit(t)
	const all = "let s = ''; for await (const c of process.stdin) s += new TextDecoder().decode(c); export default s"
	for source, stdin := range map[string]string{
		all: "one\ntwo",
		"let s = ''; process.stdin.setEncoding('utf8'); process.stdin.on('data', (c) => { s += c }); " +
			"export default await new Promise((r) => process.stdin.on('end', () => r(s)))": "three",
		all + " ": "",
	} {
		x, _, errs := k.run(execd.Spec{Source: source, Stdin: []byte(stdin)})
		if want, err := json.Marshal(stdin); err != nil || string(x.Value) != string(want) {
			t.Errorf("%s: value %s, errors %q", source, x.Value, errs)
		}
	}
	// Input that comes later, with timers running meanwhile.
	o := &output{}
	p := k.start(execd.Spec{Open: true, Source: "setTimeout(() => {}, 1);" + all}, o)
	for _, part := range []string{"a", "b"} {
		if err := p.Input(context.Background(), []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); string(x.Value) != `"ab"` {
		t.Errorf("value %s, errors %q", x.Value, o.err.String())
	}
	// A module that does not read ends all the same, and so does one that is reading.
	p = k.start(execd.Spec{Open: true, Source: "export default 1"}, o)
	if x := p.Wait(); string(x.Value) != "1" {
		t.Errorf("value %s", x.Value)
	}
	p = k.start(execd.Spec{Open: true, Source: "setTimeout(() => process.exit(4), 1); for await (const c of process.stdin);"}, o)
	if x := p.Wait(); x.Code != 4 {
		t.Errorf("%+v", x)
	}
}
