package js_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// URLs are those of the standard (url.spec.whatwg.org): what is parsed, what of that may be set, and to what.
func TestURL(t *testing.T) {
	trueLines(t, newKit(t), urlPrelude, `
href('  https://EXAMPLE.org:443/a/./b/../c?q=1 2#f g ') === 'https://example.org/a/c?q=1%202#f%20g'
href('\thttp://ex\nample.org\r/') === 'http://example.org/' && href('http:example.org') === 'http://example.org/'
href('https:\\\\example.org\\a\\b') === 'https://example.org/a/b' && href('sc://h\\a') === null
href('HTTP://user:p%40ss:w@Host/%7Efoo/%zz') === 'http://user:p%40ss%3Aw@host/%7Efoo/%zz'
href('http://a@b@c/') === 'http://a%40b@c/' && href('http://@/') === null && href('http://') === null
href('http://h:') === 'http://h/' && href('http://h:65535') === 'http://h:65535/' && href('http://h:65536') === null && href('http://h:8x') === null
href('http://0300.1/') === 'http://192.0.0.1/' && href('http://0xffffffff') === 'http://255.255.255.255/' && href('http://1.2.3.256') === null
href('http://[::1]:8080/') === 'http://[::1]:8080/' && href('http://[1::0:0:0:2]') === 'http://[1::2]/' && href('http://[::1') === null
href('http://[::ffff:1.2.3.4]') === 'http://[::ffff:102:304]/' && href('http://[fe80::1%25eth0]') === null
href('https://b\u00fccher.example/\u00fc?\u00fc#\u00fc') === 'https://xn--bcher-kva.example/%C3%BC?%C3%BC#%C3%BC'
href('https://\uff25xample.org') === 'https://example.org/' && href('https://a\u00adb') === 'https://ab/' && href('https://xn--/') === null
href('http://a b') === null && href('http://a<b') === null && href('http://a%00b') === null && href('sc://a b') === null
href('file:c:/x/..') === 'file:///c:/' && href('file://localhost/a') === 'file:///a' && href('file://h/a') === 'file://h/a'
href('mailto:a@b?subject=x') === 'mailto:a@b?subject=x' && href('data:text/plain,a b#c') === 'data:text/plain,a b#c' && href('javascript:1+1') === 'javascript:1+1'
href('web+demo:/.//p') === 'web+demo:/.//p' && href('sc:?q') === 'sc:?q' && href('1sc:x') === null && href('') === null
href('?q', 'http://h/a/b') === 'http://h/a/b?q' && href('#f', 'http://h/a?q') === 'http://h/a?q#f' && href('', 'http://h/a#x') === 'http://h/a'
href('../../../c', 'http://h/a/b') === 'http://h/c' && href('//o/p', 'https://h/a') === 'https://o/p' && href('b/', 'http://h/a') === 'http://h/b/'
href('x', 'mailto:y') === null && href('#x', 'mailto:y') === 'mailto:y#x' && href('sc:x', 'http://h') === 'sc:x' && href('x', 'nothing') === null
href('http://h/?a\'b"c<d>') === 'http://h/?a%27b%22c%3Cd%3E' && href("sc://h/?a'b") === "sc://h/?a'b"
href('http://h/\ud800') === 'http://h/%EF%BF%BD' && href('http://h/\0x') === 'http://h/%00x'
href('http://h/' + 'x'.repeat(3e6)) === null
(() => { const u = new URL('https://u:p@h:8080/p?q#f'); return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash].join(' ') })() === 'https://u:p@h:8080/p?q#f https://h:8080 https: u p h:8080 h 8080 /p ?q #f'
new URL('file:///a').origin === 'null' && new URL('blob:https://h:1/x').origin === 'https://h:1' && new URL('blob:sc:x').origin === 'null' && new URL('wss://h').origin === 'wss://h'
set('http://h/', 'protocol', 'https') === 'https://h/' && set('http://h/', 'protocol', 'file:x') === 'file://h/' && set('http://h:443/', 'protocol', 'https:') === 'https://h/' && set('http://h/', 'protocol', 'sc') === 'http://h/'
set('http://h/', 'username', 'a:b') === 'http://a%3Ab@h/' && set('mailto:x', 'username', 'a') === 'mailto:x' && set('file:///x', 'password', 'a') === 'file:///x'
set('http://h:1/', 'host', 'x:2/y') === 'http://x:2/' && set('http://h:1/', 'hostname', 'x:2') === 'http://h:1/' && set('http://h/', 'host', '') === 'http://h/' && set('http://h/', 'host', 'a b') === 'http://h/'
set('http://h/', 'port', '99x') === 'http://h:99/' && set('http://h:9/', 'port', '') === 'http://h/' && set('http://h:9/', 'port', '80') === 'http://h/' && set('http://h:9/', 'port', '70000') === 'http://h:9/'
set('http://h/a?b', 'pathname', 'x/../y?z#') === 'http://h/y%3Fz%23?b' && set('mailto:x', 'pathname', 'y') === 'mailto:x' && set('sc://h/a', 'pathname', '') === 'sc://h'
set('http://h/?a#b', 'search', 'x y') === 'http://h/?x%20y#b' && set('http://h/?a#b', 'search', '') === 'http://h/#b' && set('http://h/#b', 'hash', '#c d') === 'http://h/#c%20d' && set('http://h/#b', 'hash', '') === 'http://h/'
set('data:x  ?a', 'search', '') === 'data:x' && set('http://h', 'href', 'sc:x') === 'sc:x' && code(() => set('http://h', 'href', 'x')) === 'ERR_INVALID_URL'
code(() => { new URL('http://h').origin = 'x' }) === 'TypeError' && code(() => new URL()) === 'ERR_MISSING_ARGS' && code(() => URL.prototype.toString.call({})) === 'ERR_INVALID_THIS'
(() => { try { new URL('x', 'y') } catch (e) { return e instanceof TypeError && e.message === 'Invalid URL' && e.input === 'x' && e.base === 'y' } })()
JSON.stringify([new URL('http://h')]) === '["http://h/"]' && String(new URL('http://h')) === 'http://h/' && Object.prototype.toString.call(new URL('http://h')) === '[object URL]' && 'href' in URL.prototype
URL.parse('x') === null && URL.parse('x', 'http://h/').href === 'http://h/x' && URL.canParse('x', 'http://h') && !URL.canParse('x')
url.pathToFileURL('/a@b,c~[x] %?#\n').href === 'file:///a@b,c%7E%5Bx%5D%20%25%3F%23%0A' && url.fileURLToPath(url.pathToFileURL('/\u00fc%41 \n')) === '/\u00fc%41 \n'
util.inspect(new URL('http://h/?a=1')).includes("searchParams: URLSearchParams { 'a' => '1' },\n  hash: ''") && util.inspect(new URLSearchParams()) === 'URLSearchParams {}'
`)
}

// Search parameters are those of the same standard, and of their URL.
func TestURLSearchParams(t *testing.T) {
	trueLines(t, newKit(t), urlPrelude, `
same([...new URLSearchParams('?a=b=c&&=x&y&%61+b=+')], [['a', 'b=c'], ['', 'x'], ['y', ''], ['a b', ' ']])
new URLSearchParams('a=\ud800&b=%ff%fe&c=%e2%82&d=%zz&e=%4').toString() === 'a=%EF%BF%BD&b=%EF%BF%BD%EF%BF%BD&c=%EF%BF%BD&d=%25zz&e=%254'
new URLSearchParams({a: '!\'()~*-._ \u20ac\n'}).toString() === 'a=%21%27%28%29%7E*-._+%E2%82%AC%0A'
same([...new URLSearchParams([['a', 1], new Set(['b', null])])], [['a', '1'], ['b', 'null']]) && same([...new URLSearchParams(new Map([['k', 'v']]))], [['k', 'v']])
code(() => new URLSearchParams([['a']])) === 'ERR_INVALID_TUPLE' && code(() => new URLSearchParams(['ab'])) === 'ERR_INVALID_TUPLE' && code(() => new URLSearchParams({[Symbol.iterator]: 5})) === 'ERR_ARG_NOT_ITERABLE'
new URLSearchParams(null).size === 0 && new URLSearchParams(5).toString() === '5=' && new URLSearchParams(new URLSearchParams('x=1&x=2')).toString() === 'x=1&x=2'
(() => { const p = new URLSearchParams('a=1&b=2&a=3'); p.set('a', 'x'); p.set('c', 4); p.delete('b', '3'); return p.toString() })() === 'a=x&b=2&c=4'
(() => { const p = new URLSearchParams('a=1&a=2&b=3'); return p.has('a', '2') && !p.has('a', '3') && p.has('a', undefined) && p.get('x') === null && same(p.getAll('a'), ['1', '2']) && p.size === 3 })()
(() => { const p = new URLSearchParams('z=1&\ufffd=2&\ud83c\udf08=3&a=4&z=0'); p.sort(); return same([...p.keys()], ['a', 'z', 'z', '\ud83c\udf08', '\ufffd']) && p.getAll('z').join() === '1,0' })()
(() => { const p = new URLSearchParams('a=1&b=2'), seen = []; for (const [k] of p) { seen.push(k); if (p.size < 4) p.append('n', k) } return same(seen, ['a', 'b', 'n', 'n']) })()
(() => { const p = new URLSearchParams('a=1&b=2&c=3'), seen = []; p.forEach(function (v, k, o) { seen.push(k + v + this.x + (o === p)); p.delete(k) }, {x: 'x'}); return same(seen, ['a1xtrue', 'c3xtrue']) })()
(() => { const u = new URL('http://h/?a=~b#f'), p = u.searchParams; p.append('c', ' d'); return u.href === 'http://h/?a=%7Eb&c=+d#f' && u.searchParams === p })()
(() => { const u = new URL('http://h/?a=1#f'), p = u.searchParams; u.search = 'b=2'; const s = p.toString(); u.href = 'http://y/?c=3'; const r = p.toString(); p.delete('c'); return s === 'b=2' && r === 'c=3' && u.href === 'http://y/' })()
code(() => new URLSearchParams().append('x')) === 'ERR_MISSING_ARGS' && code(() => URLSearchParams.prototype.get.call({}, 'a')) === 'ERR_INVALID_THIS' && code(() => new URLSearchParams().forEach(1)) === 'ERR_INVALID_ARG_TYPE'
`)
}

const urlPrelude = "import url from 'node:url'; import util from 'node:util';\n" +
	"const code = (f) => { try { f(); return 'none' } catch (e) { return e.code || e.name } };\n" +
	"const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);\n" +
	"const href = (x, base) => { try { return new URL(x, base).href } catch (e) { return e.code === 'ERR_INVALID_URL' ? null : e } };\n" +
	"const set = (x, name, v) => { const u = new URL(x); u[name] = v; return u.href };\n"

// trueLines has each line, an expression, be true after what comes before all of them.
func trueLines(t *testing.T, k kit, before, lines string) {
	t.Helper()
	list := strings.Split(strings.TrimSpace(lines), "\n")
	source := before + "const wrong = [];\n"
	for _, line := range list {
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		source += "try { if (await (" + line + ") !== true) wrong.push(" + string(text) + ") } catch (e) { wrong.push(`${e.stack} in ` + " + string(text) + ") }\n"
	}
	x, _, errs := k.run(execd.Spec{Source: source + "export default wrong.join('\\n')"})
	if string(x.Value) != `""` {
		t.Errorf("not true: %s %s", strings.ReplaceAll(string(x.Value), `\n`, "\n"), errs)
	}
}
