package js_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
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
	lines := strings.Split(strings.TrimSpace(`
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
await code(() => fsp.readFile({})) === 'ERR_INVALID_ARG_TYPE' && await code(() => fsp.readFile(7)) === 'EBADF'
await code(() => fsp.access('/d/text', 1)) === 'EACCES'
await code(() => fsp.mkdir('/d')) === 'EEXIST'
same(fs.readdirSync('/d'), ['sub', 'text'])
same(fs.readdirSync('/d', {recursive: true}), ['sub', 'text', 'sub/f'])
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
await code(() => new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([255]))) === 'ERR_ENCODING_INVALID_ENCODED_DATA'
btoa('\u00ff\0') === '/wA=' && atob('/wA=') === '\u00ff\0' && await code(() => atob('?')) !== 'none'
(() => { const a = {d: new Date(5), m: new Map([[1, new Set([2])]]), b: new Uint8Array([1])}; a.self = a; const c = structuredClone(a); return c !== a && c.self === c && +c.d === 5 && c.m.get(1).has(2) && c.b[0] === 1 && c.b !== a.b })()
await new Promise((r) => { const seen = []; setTimeout(() => r(same(seen, [1])), 1000); setTimeout((x) => seen.push(x), 0, 1); clearTimeout(setTimeout(() => seen.push(0), 0)) })
await new Promise((r) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); r(true) } }, 1) })
await new Promise((r) => setImmediate(r, true))
await new Promise((r) => { const seen = []; queueMicrotask(() => seen.push(1)); process.nextTick(() => seen.push(2)); setTimeout(() => r(same(seen, [1, 2])), 0) })
performance.now() >= 0 && process.hrtime.bigint() >= 0n && process.platform === 'linux'
String(fs.readFileSync('/d/text')) === 'h\u00e9llo\n' && Buffer.isBuffer(fs.readFileSync('/d/text')) && JSON.stringify(fs.readFileSync('/bytes')) === '{"type":"Buffer","data":[0,255,128]}'
fs.readFileSync('/bytes', 'latin1') === '\u0000\u00ff\u0080' && fs.readFileSync('/bytes', 'base64url') === 'AP-A' && fs.readFileSync('/bytes', 'utf8') === '\0\uFFFD\uFFFD'
(fs.writeFileSync('/enc', '00ff', 'hex'), same([...fs.readFileSync('/enc')], [0, 255])) && (fs.writeFileSync('/enc', 'ab', 'utf16le'), fs.readFileSync('/enc', 'ucs2') === 'ab')
await code(() => fsp.readFile('/d/text', 'none')) === 'ERR_INVALID_ARG_VALUE' && await code(() => fsp.writeFile('/new', 7)) === 'ERR_INVALID_ARG_TYPE'
await (async () => { try { await fsp.readFile('none/x') } catch (e) { return e.message === "ENOENT: no such file or directory, open 'none/x'" && e.path === 'none/x' && e.errno === -2 && e.syscall === 'open' } })()
(fs.writeFileSync('/plus', 'abc'), fs.writeFileSync('/plus', 'X', {flag: 'r+'}), fs.readFileSync('/plus', 'utf8') === 'Xbc') && await code(() => fsp.writeFile('/nothere', '', {flag: 'r+'})) === 'ENOENT'
await code(() => fsp.appendFile('/plus', '', {flag: 'ax'})) === 'EEXIST' && await code(() => fsp.writeFile('/x', '', {flag: 'q'})) === 'ERR_INVALID_ARG_VALUE'
(await fsp.writeFile('/gen', (function* () { yield 'a'; yield Buffer.from('b') })()), fs.readFileSync('/gen', 'utf8') === 'ab')
fs.statSync('/none', {throwIfNoEntry: false}) === undefined && fs.statSync('/d/text', {bigint: true}).size === 7n && fs.statSync('/d/text').isFile() && !fs.statSync('/d').isFile()
(await fsp.mkdir('/mk2/a', {recursive: true})) === '/mk2' && (await fsp.mkdir('/mk2/a', {recursive: true})) === undefined
await (async () => { const a = await fsp.mkdtemp('/tmp-'), b = fs.mkdtempSync('/tmp-'); return /^\/tmp-[A-Za-z0-9]{6}$/.test(a) && a !== b && fs.statSync(a).isDirectory() && (fs.statSync(a).mode & 0o777) === 0o700 })()
await code(() => fsp.mkdtemp('/none/x-')) === 'ENOENT' && await code(() => fsp.rm('/d')) === 'ERR_FS_EISDIR'
await (async () => { await fsp.cp('/d', '/cp', {recursive: true}); fs.symlinkSync('text', '/cp/l'); await fsp.cp('/cp', '/cp2', {recursive: true, filter: (s) => !s.endsWith('/f')}); return fs.readFileSync('/cp/sub/f', 'utf8') === 'x' && fs.readlinkSync('/cp2/l') === '/cp/text' && !fs.existsSync('/cp2/sub/f') })()
await code(() => fsp.cp('/d', '/dcp')) === 'ERR_FS_EISDIR' && await code(() => fsp.cp('/d', '/d/in', {recursive: true})) === 'ERR_FS_CP_EINVAL' && await code(() => fsp.cp('/bytes', '/new', {force: false, errorOnExist: true})) === 'ERR_FS_CP_EEXIST'
await (async () => { const dir = await fsp.opendir('/d'), names = []; for await (const e of dir) names.push(e.name, e.isDirectory()); return same(names, ['sub', true, 'text', false]) && await code(() => dir.read()) === 'ERR_DIR_CLOSED' })()
(() => { const dir = fs.opendirSync('/d'), first = dir.readSync(); dir.readSync(); const end = dir.readSync(); dir.closeSync(); return first.name === 'sub' && first.parentPath === '/d' && end === null })()
await code(() => fsp.watch('/d')) === 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' && await code(() => fs.watch('/d')) === 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' && await code(() => fs.watchFile('/d', () => {})) !== 'none'
await (async () => { const f = await fsp.open('/handle', 'w+'); await f.write('hello world'); const b = Buffer.alloc(5); const {bytesRead} = await f.read(b, 0, 5, 6); const s = await f.stat(); await f.truncate(5); await f.close(); await f.close(); return bytesRead === 5 && b.toString() === 'world' && s.size === 11 && fs.readFileSync('/handle', 'utf8') === 'hello' })()
(() => { const fd = fs.openSync('/d/text'), b = Buffer.alloc(100); const n = fs.readSync(fd, b), m = fs.readSync(fd, b), size = fs.fstatSync(fd).size; fs.closeSync(fd); return fd === 3 && n === 7 && m === 0 && size === 7 && fs.openSync('/d/text') === 3 })()
await code(() => fs.readSync(99, Buffer.alloc(1))) === 'EBADF' && await code(() => fs.closeSync(99)) === 'EBADF' && await code(() => fs.writeSync(fs.openSync('/d/text'), 'x')) === 'EBADF' && await code(() => fs.openSync('/d/text', 'wx')) === 'EEXIST'
await (async () => { for (let i = 0; i < 1030; i++) { const c = await code(() => { fs.openSync('/d/text') }); if (c !== 'none') return c === 'EMFILE' } })()
await (async () => { fs.writeFileSync('/lines', 'one\ntwo\r\nthree'); const f = await fsp.open('/lines'), all = []; for await (const l of f.readLines()) all.push(l); return same(all, ['one', 'two', 'three']) && f.fd === -1 })()
await (async () => { const f = await fsp.open('/d/text'); const s = await fsp.readFile(f, 'utf8'); await f.close(); return s === 'h\u00e9llo\n' })()
(fs.writeFileSync('/ap', ''), (() => { const fd = fs.openSync('/ap', 'a'); fs.writeSync(fd, 'a'); fs.appendFileSync('/ap', 'b'); fs.writeSync(fd, Buffer.from('c')); return fs.readFileSync('/ap', 'utf8') === 'abc' })())
await new Promise((r) => fs.readFile('/d/text', 'utf8', (e, s) => r(e === null && s === 'h\u00e9llo\n'))) && await new Promise((r) => fs.stat('/none', (e, s) => r(e.code === 'ENOENT' && s === undefined)))
(await fsp.lutimes('/l', 1, 2), fs.lstatSync('/l').mtimeMs === 2000) && (await fsp.chown('/new', 7, 8), fs.statSync('/new').uid === 7 && fs.statSync('/new').gid === 8)
await code(() => fsp.chown('/new', 'x', 8)) === 'ERR_INVALID_ARG_TYPE' && await code(() => fsp.chmod('/new', 'rwx')) === 'ERR_INVALID_ARG_VALUE' && (fs.chmodSync('/new', '640'), (fs.statSync('/new').mode & 0o777) === 0o640)
await code(() => process.chdir('/none')) === 'ENOENT' && await code(() => process.chdir('/d/text')) === 'ENOTDIR' && process.cwd() === '/'
path.dirname('/') === '/' && path.dirname('') === '.' && path.dirname('a//') === '.' && path.dirname('//a') === '//' && path.basename('/') === '' && path.extname('..') === '' && path.extname('a.') === '.'
same(path.parse('.x'), {root: '', dir: '', base: '.x', ext: '', name: '.x'}) && same(path.parse('./x.y'), {root: '', dir: '.', base: 'x.y', ext: '.y', name: 'x'}) && same(path.parse('/'), {root: '/', dir: '/', base: '', ext: '', name: ''})
path.format({name: 'a', ext: 'b'}) === 'a.b' && path.normalize('./') === './' && path.normalize('') === '.' && path.join() === '.' && path.relative('/a', '/a') === '' && await code(() => path.join('a', null)) === 'ERR_INVALID_ARG_TYPE'
Buffer.from('h\u00e9').toString('hex') === '68c3a9' && Buffer.concat([Buffer.from('a'), Buffer.from('b')]).toString() === 'ab' && Buffer.from('YWI', 'base64').toString() === 'ab' && Buffer.from('zz', 'hex').length === 0
Buffer.alloc(4).fill('ab').toString() === 'abab' && Buffer.from('abcb').indexOf('b') === 1 && Buffer.from('abcb').lastIndexOf('b') === 3 && Buffer.from('abc').includes('bc') && Buffer.from('abc').slice(1).toString() === 'bc' && Buffer.byteLength('\u20ac') === 3
(() => { const b = Buffer.alloc(8); b.writeUInt32BE(0xdeadbeef, 0); b.writeInt16LE(-2, 4); return b.readUInt32BE(0) === 0xdeadbeef && b.readInt16LE(4) === -2 && b.write('\u20ac', 6) === 0 && Buffer.compare(Buffer.from('a'), Buffer.from('b')) === -1 && b.equals(Buffer.from(b)) })()
await code(() => Buffer.alloc(1).readUInt16LE(0)) === 'ERR_OUT_OF_RANGE' && await code(() => Buffer.from('a', 'none')) === 'ERR_UNKNOWN_ENCODING'
new TextDecoder('utf-16le').decode(new Uint8Array([0xFF, 0xFE, 0x61, 0, 0x3D, 0xD8, 0, 0xDE])) === 'a\u{1F600}' && new TextDecoder('utf-16be').decode(new Uint8Array([0, 0x61])) === 'a' && new TextDecoder('latin1').encoding === 'windows-1252'
new TextDecoder('windows-1251').decode(new Uint8Array([0xEF, 0xF0])) === '\u043f\u0440' && new TextDecoder('shift_jis').decode(new Uint8Array([0x82, 0xA0])) === '\u3042' && new TextDecoder('gbk').decode(new Uint8Array([0xC4, 0xE3])) === '\u4f60' && new TextDecoder('euc-kr').decode(new Uint8Array([0xB0, 0xA1])) === '\uac00'
await code(() => new TextDecoder('none')) === 'ERR_ENCODING_NOT_SUPPORTED' && await code(() => new TextDecoder('replacement')) === 'ERR_ENCODING_NOT_SUPPORTED' && new TextDecoder(' UTF8 ').encoding === 'utf-8'
new TextDecoder().decode(new Uint8Array([0xE2, 0x82, 0x41, 0xF0, 0x9F, 0xFF, 0xC0, 0x80, 0xED, 0xA0, 0x80])) === '\uFFFDA\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD'
(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xE2, 0x82]), {stream: true}) === '' && d.decode(new Uint8Array([0xAC]), {stream: true}) === '\u20ac' && d.decode(new Uint8Array([0xE2]), {stream: true}) === '' && d.decode() === '\uFFFD' && d.decode(new Uint8Array([0xEF, 0xBB, 0xBF, 65])) === 'A' })()
(() => { const d = new TextDecoder('utf-8', {ignoreBOM: true}); return d.decode(new Uint8Array([0xEF, 0xBB, 0xBF, 65])) === '\uFEFFA' && d.ignoreBOM && !d.fatal })()
(() => { const into = new Uint8Array(4), r = new TextEncoder().encodeInto('a\u20ac\u{1F600}', into); return same(r, {read: 2, written: 4}) && same([...into], [97, 226, 130, 172]) })()
(() => { try { structuredClone(() => 1) } catch (e) { return e instanceof DOMException && e instanceof Error && e.name === 'DataCloneError' && e.code === 25 } })() && [Symbol(), new WeakMap(), Promise.resolve(), {f() {}}, [Symbol()]].every((x) => { try { structuredClone(x) } catch (e) { return e.name === 'DataCloneError' } })
(() => { const b = new ArrayBuffer(8), c = structuredClone({a: new Int16Array(b, 2, 2), b: new DataView(b, 1), c: b, d: Buffer.from('x')}); return c.a.buffer === c.b.buffer && c.a.buffer === c.c && c.a.length === 2 && c.a.byteOffset === 2 && c.b.byteOffset === 1 && c.d.constructor === Uint8Array })()
(() => { class A { x = 1; get y() { return 2 } } const c = structuredClone([new A(), , /a/g, new Error('e', {cause: 1}), Object(1n), new Map([[NaN, -0]])]); return c[0].constructor === Object && c[0].x === 1 && !(1 in c) && c[2].flags === 'g' && c[3] instanceof Error && c[3].cause === 1 && c[4].valueOf() === 1n && Object.is(c[5].get(NaN), -0) })()
(() => { const m = new Map(), s = new Set([m]); m.set('s', s); m.set(m, 1); const c = structuredClone(m); return c.get('s').has(c) && c.get(c) === 1 })() && structuredClone(new RangeError('r')) instanceof RangeError && await code(() => structuredClone()) === 'ERR_MISSING_ARGS'
(() => { const b = new ArrayBuffer(4), c = structuredClone({b}, {transfer: [b]}); return c.b.byteLength === 4 && b.byteLength === 0 })()
atob('YQ') === 'a' && atob(' Y Q = = ') === 'a' && (() => { try { atob('YQ=') } catch (e) { return e.name === 'InvalidCharacterError' } })() && (() => { try { btoa('\u0100') } catch (e) { return e.code === 5 } })()
await new Promise((r) => { const seen = [], see = (x) => { if (seen.push(x) === 5) r(same(seen.filter((y) => y !== 'i'), ['p', 'm', 'n', 't1'])) }; setTimeout(see, 1, 't1'); setImmediate(see, 'i'); process.nextTick(see, 'n'); Promise.resolve('p').then(see); queueMicrotask(() => see('m')) })
await new Promise((r) => { const seen = []; setTimeout(() => { process.nextTick(() => seen.push('n')); Promise.resolve().then(() => seen.push('p')); seen.push('t') }, 1); setTimeout(() => r(same(seen, ['t', 'n', 'p'])), 20) })
await new Promise((r) => { const seen = []; setTimeout(() => seen.push(1), 1.9); setTimeout(() => seen.push(2), 1); setTimeout(() => seen.push(3), 0); setTimeout(() => r(same(seen, [1, 2, 3])), 20) })
await new Promise((r) => { const seen = []; setImmediate(() => { seen.push(1); setImmediate(() => { seen.push(4); r(same(seen, [1, 2, 3, 4])) }); Promise.resolve().then(() => seen.push(2)) }); const x = setImmediate(() => seen.push('never')); clearImmediate(x); setImmediate(() => seen.push(3)) })
await new Promise((r) => setTimeout(r, 2 ** 40, true)) && await new Promise((r) => setTimeout(r, NaN, true)) && await code(() => setTimeout('x')) === 'ERR_INVALID_ARG_TYPE'
(() => { const t = setTimeout(() => {}, 1e8); const was = t.hasRef(); t.unref(); return was && !t.hasRef() && Number(t) > 0 })()
await (async () => { const t = await import('node:timers/promises'); let n = 0; for await (const v of t.setInterval(1, 'v')) if (++n === 3) break; return await t.setTimeout(1, 'x') === 'x' && await t.setImmediate('y') === 'y' && n === 3 })()
import.meta.url === 'file:///%5Bsource%5D.mjs' && import.meta.filename === '/[source].mjs' && import.meta.dirname === '/' && import.meta.resolve('./d/text') === 'file:///d/text' && import.meta.resolve('fs') === 'node:fs'
await code(() => import('node:nothing')) === 'ERR_UNKNOWN_BUILTIN_MODULE' && await code(() => import('lodash')) === 'ERR_MODULE_NOT_FOUND' && await code(() => import('./none.js')) === 'ERR_MODULE_NOT_FOUND' && await code(() => import('https://x')) === 'ERR_UNSUPPORTED_ESM_URL_SCHEME'
(fs.writeFileSync('/j.json', '\uFEFF{"__proto__": {"x": 1}, "a": "\u2028"}'), await (async () => { const {default: j} = await import('/j.json', {with: {type: 'json'}}); return Object.hasOwn(j, '__proto__') && j.x === undefined && j.a === '\u2028' && j === (await import('/j.json')).default })())
(fs.writeFileSync('/bad.json', '{'), fs.writeFileSync('/c.cjs', 'module.exports = 1'), await code(() => import('/bad.json')) === 'ERR_INVALID_JSON' && await code(() => import('/c.cjs')) === 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' && await code(() => import('/j.json', {with: {type: 'css'}})) !== 'x')
(fs.mkdirSync('/sp ace'), fs.writeFileSync('/sp ace/a#b.mjs', 'export default import.meta.url'), await (async () => { const one = await import('/sp%20ace/a%23b.mjs'), two = await import('/sp%20ace/a%23b.mjs?v=2'); return one.default === 'file:///sp%20ace/a%23b.mjs' && two.default === one.default + '?v=2' && one !== two })())
(fs.writeFileSync('/counter.mjs', 'export let n = 0; export const up = () => ++n; export default {}'), await (async () => { const a = await import('/counter.mjs'), b = await import('./counter.mjs'), c = await import('file:///counter.mjs'); a.up(); return a === b && b === c && c.n === 1 })())
(fs.writeFileSync('/tla.mjs', 'await new Promise((r) => setTimeout(r, 1)); export default 7'), (await import('/tla.mjs')).default === 7)
(fs.writeFileSync('/cyc1.mjs', "import {b} from './cyc2.mjs'; export const a = () => b() + 1"), fs.writeFileSync('/cyc2.mjs', "import {a} from './cyc1.mjs'; export const b = () => typeof a"), (await import('/cyc1.mjs')).a() === 'function1')
await (async () => { const u = await import('node:util'); return u.format('%s %o', 'a', {b: 1}) === 'a { b: 1 }' && u.isDeepStrictEqual({a: [1, new Map([[1, {}]])]}, {a: [1, new Map([[1, {}]])]}) && !u.isDeepStrictEqual([0], [-0]) && await u.promisify(fs.readFile)('/d/sub/f', 'utf8') === 'x' })()
new URLSearchParams('a=1&a=2').has('a', '2') && (() => { const p = new URLSearchParams('a=1&a=2&b=3'); p.delete('a', '1'); return p.toString() === 'a=2&b=3' })() && URL.parse('nothing') === null
(() => { let r; process.once('x', (v) => { r = v }); return process.emit('x', 1) && !process.emit('x', 2) && r === 1 })() && same(process.hrtime().map((n) => typeof n), ['number', 'number']) && process.hrtime(process.hrtime())[0] === 0
`), "\n")
	// A worker takes a while to start: some expressions share one. Each begins in the root, with no file open.
	const some = 12
	for list := range slices.Chunk(lines, some) {
		var source strings.Builder
		source.WriteString(imports + "const seen = [];\n")
		for _, expr := range list {
			source.WriteString("try { seen.push(Boolean(" + expr + ")) } catch (e) { seen.push(String(e.stack ?? e) + e) }\n" +
				"process.chdir('/'); for (let fd = 3; fd < 1030; fd++) try { fs.closeSync(fd) } catch { break }\n")
		}
		x, _, errs := k.run(execd.Spec{Source: source.String() + "export default seen"})
		var seen []any
		if err := json.Unmarshal(x.Value, &seen); err != nil || len(seen) != len(list) {
			t.Fatalf("%s\n\t%s %+v %s", strings.Join(list, "\n"), x.Value, x, errs)
		}
		for i, got := range seen {
			if got != true {
				t.Errorf("%s\n\t%v", list[i], got)
			}
		}
	}
}

func TestConsole(t *testing.T) {
	k := newKit(t)
	for source, want := range map[string]string{
		"console.log('a', 1, null, undefined, true, 10n, -0)":                                                                                 "a 1 null undefined true 10n -0\n",
		"console.log({a: 1, b: 'x', c: [1, 'y']}, [])":                                                                                        "{ a: 1, b: 'x', c: [ 1, 'y' ] } []\n",
		"console.log('%s is %d%%', 'x', 5, 'more')":                                                                                           "x is 5% more\n",
		"console.log(new Map([[1, {a: 2}]]), new Set(['s']))":                                                                                 "Map(1) { 1 => { a: 2 } } Set(1) { 's' }\n",
		"const a = {}; a.a = a; console.log(a)":                                                                                               "{ a: [Circular] }\n",
		"console.group('g'); console.log('in\\nside'); console.groupEnd()":                                                                    "g\n  in\n  side\n",
		"class A { x = 1 }; console.log(new A(), A, () => 1)":                                                                                 "A { x: 1 } [class A] [Function (anonymous)]\n",
		"console.log({a: {b: {c: {d: 1}}}}, [[[[1]]]])":                                                                                       "{ a: { b: { c: [Object] } } } [ [ [ [Array] ] ] ]\n",
		"console.log([, 1, , ,], Object.create(null), new (class extends Map {})())":                                                          "[ <1 empty item>, 1, <2 empty items> ] [Object: null prototype] {} Map(0) {}\n",
		"console.log({get a() { return 1 }, set b(x) {}, [Symbol('s')]: 1, 'x-y': \"it's\"})":                                                 "{ a: [Getter], b: [Setter], 'x-y': \"it's\", [Symbol(s)]: 1 }\n",
		"console.log(new Date(0), /a/g, Symbol('x'), Object(1), async () => {}, Buffer.from('ab'), new Uint8Array(2))":                        "1970-01-01T00:00:00.000Z /a/g Symbol(x) [Number: 1] [AsyncFunction (anonymous)] <Buffer 61 62> Uint8Array(2) [ 0, 0 ]\n",
		"console.log('%s %i %f %j %O %c|', {a: {b: {}}}, '7.9', '1.5', {x: 1}, {y: 2}, 'css', 'rest')":                                        "{ a: [Object] } 7 1.5 {\"x\":1} { y: 2 } | rest\n",
		"console.log('100%', 1); console.log('%d', '0x10'); console.log()":                                                                    "100% 1\n16\n\n",
		"console.count(); console.count('x'); console.count(); console.countReset(); console.count()":                                         "default: 1\nx: 1\ndefault: 2\ndefault: 1\n",
		"console.dir({a: {b: {c: {}}}}, {depth: 0}); console.info('i'); console.debug('d')":                                                   "{ a: [Object] }\ni\nd\n",
		"console.assert(true, 'no'); console.groupCollapsed(); console.log('in'); console.groupEnd(); console.groupEnd(); console.log('out')": "  in\nout\n",
		"console.table([{a: 1, b: 'x'}, {a: 2}, 3])": "┌─────────┬───┬─────┬────────┐\n│ (index) │ a │ b   │ Values │\n├─────────┼───┼─────┼────────┤\n" +
			"│ 0       │ 1 │ 'x' │        │\n│ 1       │ 2 │     │        │\n│ 2       │   │     │ 3      │\n└─────────┴───┴─────┴────────┘\n",
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
	const complaints = "console.assert(false, 'a %s', 1); console.assert(0); console.countReset('n'); console.timeEnd('n'); console.trace('t');" +
		"console.error(Object.assign(new Error('e', {cause: 'c'}), {code: 'X'}))"
	_, out, errs = k.run(execd.Spec{Source: complaints})
	for _, want := range []string{
		"Assertion failed: a 1\nAssertion failed\nWarning: Count for 'n' does not exist\nWarning: No such label 'n' for console.timeEnd()\nTrace: t\n    at ",
		"\nError: e\n    at ", " {\n  code: 'X',\n  [cause]: 'c'\n}\n",
	} {
		if !strings.Contains(errs, want) || out != "" {
			t.Errorf("output %q, errors %q, want %q", out, errs, want)
		}
	}
	_, out, _ = k.run(execd.Spec{Source: "console.time(); console.timeLog('default', 'x'); console.timeEnd()"})
	if !regexp.MustCompile(`^default: [0-9.]+ms x\ndefault: [0-9.]+ms\n$`).MatchString(out) {
		t.Errorf("%q", out)
	}
}

// A module ends as one of node's does: when nothing is waited for, or when it says so, and its listeners hear of it.
func TestEnd(t *testing.T) {
	k := newKit(t)
	for _, tt := range []struct {
		source, out, err, value string
		code                    int
	}{
		{source: "process.on('exit', (c) => console.log('exit', c))", out: "exit 0\n"},
		{source: "process.on('exit', (c) => console.log('exit', c)); process.exit(3)", out: "exit 3\n", code: 3},
		{source: "process.on('exit', (c) => console.log('exit', c)); process.exitCode = 4", out: "exit 4\n", code: 4},
		{source: "process.on('exit', () => { process.exitCode = 5 })", code: 5},
		{source: "process.on('exit', () => process.exit(6)); process.exit(1)", code: 6},
		{source: "process.on('exit', (c) => console.log('exit', c)); throw new Error('no')", out: "exit 1\n", err: "Uncaught Error: no", code: 1},
		{source: "process.on('exit', () => { throw new Error('no') })", err: "Uncaught Error: no", code: 1},
		{source: "process.on('exit', () => setTimeout(() => console.log('never'), 1))"},
		{source: "let n = 0; process.on('beforeExit', () => { if (n++ < 2) setTimeout(() => console.log(n), 1) })", out: "1\n2\n"},
		{source: "setTimeout(() => console.log('never'), 1e8).unref(); setInterval(() => {}, 1).unref()"},
		{source: "const t = setInterval(() => {}, 1); t.unref(); t.ref(); setTimeout(() => t.close(), 5)"},
		{source: "export default 7; setTimeout(() => process.exit(), 1)", value: "7"},
		{source: "export default 7; setTimeout(() => process.exit(2), 1)", code: 2},
		{source: "process.exit(256 + 7)", code: 7},
		{source: "let n = 0; await new Promise((r) => { const f = () => ++n < 1000 ? setImmediate(f) : r(); f() }); export default n", value: "1000"},
		{source: "import fs from 'fs'; export default fs.readFileSync(0, 'utf8') + fs.readFileSync(0).length", value: `"in0"`},
		{source: "import fs from 'fs'; const b = Buffer.alloc(1); let s = ''; while (fs.readSync(0, b)) s += b; export default s", value: `"in"`},
		{source: "process.stdin.on('end', () => console.log('end')).resume()", out: "end\n"},
		{source: "import fs from 'fs'; fs.writeSync(1, 'one'); fs.writeFileSync(2, 'two')", out: "one", err: "two"},
	} {
		x, out, errs := k.run(execd.Spec{Source: tt.source, Stdin: []byte("in")})
		if x.Code != tt.code || out != tt.out || !strings.Contains(errs, tt.err) || tt.err == "" && errs != "" || string(x.Value) != tt.value {
			t.Errorf("%s\n\texit %+v, value %s, output %q, errors %q", tt.source, x, x.Value, out, errs)
		}
	}
}

// Where something was thrown is said as it is in the file, the first line and those after it.
func TestPlaces(t *testing.T) {
	k := newKit(t)
	k.put("/lib/late.mjs", "#!/usr/bin/env node\nexport function late() {\n  throw new Error('late')\n}\n")
	k.put("/bad.mjs", "const a = 1;\nconst a = 2;\n")
	for _, tt := range []struct{ source, want string }{
		{"throw new Error('x')", "at <anonymous> (/[source].mjs:1:"},
		{"import {late} from './lib/late.mjs'\nlate()", "at late (/lib/late.mjs:3:"},
		{"import '/bad.mjs'", "/bad.mjs:2:"},
		{"1 +", "/[source].mjs:1:"},
		{"const f = () => { null.x }; f()", "at f (/[source].mjs:1:23)"},
	} {
		if x, _, errs := k.run(execd.Spec{Source: tt.source}); x.Code != 1 || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: %+v %q, want %q", tt.source, x, errs, tt.want)
		}
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
		"process.stdin.setEncoding('utf8'); let s = ''; for await (const c of process.stdin) s += c; export default s": "h\u00e9\u20ac",
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
		if _, err := p.Input(context.Background(), []byte(part)); err != nil {
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
