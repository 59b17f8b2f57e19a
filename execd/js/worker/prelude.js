// What a module finds: the names of node that need no machine. It is evaluated once, before the job is known.
(() => {
'use strict';
const g = globalThis;
const host = {};
for (const name of ['call', 'write', 'timer', 'clear', 'stdin', 'exit', 'settle', 'utf8', 'bytes', 'base64', 'url', 'now']) {
  host[name] = g['__' + name];
  delete g['__' + name];
}
const define = (name, value) => Object.defineProperty(g, name, { value, writable: true, configurable: true });

// Bytes.
const chars = String.fromCharCode;
function toString(bytes) {
  let s = '';
  for (let i = 0; i < bytes.length; i += 8192) s += chars.apply(null, bytes.subarray(i, i + 8192));
  return s;
}
function toBytes(s) {
  const bytes = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) bytes[i] = s.charCodeAt(i);
  return bytes;
}
function viewOf(x) {
  if (x instanceof Uint8Array) return x;
  if (ArrayBuffer.isView(x)) return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
  if (x instanceof ArrayBuffer) return new Uint8Array(x);
  throw new TypeError('expected a buffer');
}
define('TextEncoder', class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(s = '') { return toBytes(host.bytes(String(s))); }
  encodeInto(s, into) {
    const bytes = this.encode(s).subarray(0, into.length);
    into.set(bytes);
    return { read: s.length, written: bytes.length };
  }
});
define('TextDecoder', class TextDecoder {
  #fatal; #bom;
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^(utf-?8|unicode-1-1-utf-8)$/i.test(String(label).trim())) throw new RangeError(`the encoding ${label} is not supported`);
    this.#fatal = fatal;
    this.#bom = ignoreBOM;
  }
  get encoding() { return 'utf-8'; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#bom; }
  decode(x) {
    if (x === undefined) return '';
    let s;
    try { s = host.utf8(toString(viewOf(x)), this.#fatal); } catch (e) { throw new TypeError(e.message); }
    return !this.#bom && s.charCodeAt(0) === 0xFEFF ? s.slice(1) : s;
  }
});

define('btoa', (s) => {
  s = String(s);
  if (/[^\0-\xff]/.test(s)) throw new Error('the string has characters that are no bytes');
  return host.base64(s, 0);
});
define('atob', (s) => host.base64(String(s).replace(/[\t\n\f\r ]/g, ''), 1));

// structuredClone.
class DataCloneError extends Error { get name() { return 'DataCloneError'; } }
function clone(x, seen) {
  if (typeof x === 'function' || typeof x === 'symbol') throw new DataCloneError(`${String(x)} could not be cloned.`);
  if (typeof x !== 'object' || x === null) return x;
  if (seen.has(x)) return seen.get(x);
  const keep = (y) => { seen.set(x, y); return y; };
  if (x instanceof Date) return keep(new Date(x.getTime()));
  if (x instanceof RegExp) return keep(new RegExp(x.source, x.flags));
  if (x instanceof ArrayBuffer) return keep(x.slice(0));
  if (ArrayBuffer.isView(x)) {
    const buffer = clone(x.buffer, seen);
    return keep(x instanceof DataView ? new DataView(buffer, x.byteOffset, x.byteLength) : new x.constructor(buffer, x.byteOffset, x.length));
  }
  if (x instanceof Number || x instanceof String || x instanceof Boolean) return keep(Object(x.valueOf()));
  if (x instanceof Promise || x instanceof WeakMap || x instanceof WeakSet) throw new DataCloneError(`${String(x)} could not be cloned.`);
  if (x instanceof Map) {
    const y = keep(new Map());
    for (const [k, v] of x) y.set(clone(k, seen), clone(v, seen));
    return y;
  }
  if (x instanceof Set) {
    const y = keep(new Set());
    for (const v of x) y.add(clone(v, seen));
    return y;
  }
  if (x instanceof Error) {
    const y = keep(Object.create(x.constructor.prototype));
    for (const k of ['message', 'stack', 'cause', 'name']) {
      if (Object.prototype.hasOwnProperty.call(x, k)) Object.defineProperty(y, k, { value: clone(x[k], seen), writable: true, configurable: true });
    }
    return y;
  }
  const y = keep(Array.isArray(x) ? new Array(x.length) : {});
  for (const k of Object.keys(x)) y[k] = clone(x[k], seen);
  return y;
}
define('structuredClone', (x) => clone(x, new Map()));

// Timers.
const waiting = new Map();
function schedule(f, ms, args, every) {
  if (typeof f !== 'function') throw new TypeError('the callback is not a function');
  const t = { f, args, ms: Number(ms) || 0, every, id: 0, ref() { return t; }, unref() { return t; }, hasRef: () => true,
    [Symbol.toPrimitive]: () => t.id };
  t.id = host.timer(t.ms);
  t.now = t.id;
  waiting.set(t.id, t);
  byPublic.set(t.id, t);
  return t;
}
const byPublic = new Map();
function cancel(x) {
  const t = typeof x === 'object' && x !== null ? x : byPublic.get(Number(x));
  if (!t || t.now === undefined) return;
  host.clear(t.now);
  waiting.delete(t.now);
  byPublic.delete(t.id);
  t.now = undefined;
}
define('__fire', (n) => {
  const t = waiting.get(n);
  if (!t) return;
  waiting.delete(n);
  if (t.every) {
    t.now = host.timer(t.ms);
    waiting.set(t.now, t);
  } else {
    byPublic.delete(t.id);
    t.now = undefined;
  }
  t.f.apply(undefined, t.args);
});
const timers = {
  setTimeout: (f, ms, ...args) => schedule(f, ms, args, false),
  setInterval: (f, ms, ...args) => schedule(f, ms, args, true),
  setImmediate: (f, ...args) => schedule(f, 0, args, false),
  clearTimeout: cancel, clearInterval: cancel, clearImmediate: cancel,
};
for (const k of Object.keys(timers)) define(k, timers[k]);
define('queueMicrotask', (f) => { Promise.resolve().then(f); });
define('performance', { now: () => host.now(), timeOrigin: 0 });

// Console.
function show(x, depth, seen) {
  switch (typeof x) {
    case 'string': return depth === 0 ? x : `'${x.replace(/[\\']/g, '\\$&').replace(/\n/g, '\\n')}'`;
    case 'bigint': return `${x}n`;
    case 'symbol': return x.toString();
    case 'function': return /^class\b/.test(Function.prototype.toString.call(x)) ? `[class ${x.name || '(anonymous)'}]` : `[Function: ${x.name || '(anonymous)'}]`;
    case 'number': return Object.is(x, -0) ? '-0' : String(x);
    case 'object': break;
    default: return String(x);
  }
  if (x === null) return 'null';
  if (seen.includes(x)) return '[Circular]';
  if (x instanceof Error) return `${x.name}: ${x.message}${x.stack ? '\n' + x.stack.trimEnd() : ''}`;
  if (x instanceof Date) return Number.isNaN(x.getTime()) ? 'Invalid Date' : x.toISOString();
  if (x instanceof RegExp) return String(x);
  if (x instanceof Promise) return 'Promise {}';
  const below = [...seen, x];
  const name = x.constructor && x.constructor.name;
  if (depth > 3) return Array.isArray(x) ? '[Array]' : `[${name || 'Object'}]`;
  const inner = (y) => show(y, depth + 1, below);
  const list = (items, more) => items.slice(0, 100).map(inner).concat(more > 100 ? [`... ${more - 100} more items`] : []);
  const wrap = (open, parts, close) => {
    if (parts.length === 0) return open + close;
    const one = `${open} ${parts.join(', ')} ${close}`;
    return one.length <= 76 && !one.includes('\n') ? one : `${open}\n${parts.map((p) => '  ' + p.replace(/\n/g, '\n  ')).join(',\n')}\n${close}`;
  };
  if (Array.isArray(x)) return wrap('[', list(x, x.length), ']');
  if (ArrayBuffer.isView(x) && !(x instanceof DataView)) return wrap(`${name}(${x.length}) [`, list(Array.from(x.subarray(0, 101)), x.length), ']');
  if (x instanceof Set) return wrap(`Set(${x.size}) {`, list([...x], x.size), '}');
  if (x instanceof Map) return wrap(`Map(${x.size}) {`, [...x].slice(0, 100).map(([k, v]) => `${inner(k)} => ${inner(v)}`), '}');
  const key = (k) => (/^[A-Za-z_$][\w$]*$/.test(k) ? k : `'${k}'`);
  const parts = Object.keys(x).slice(0, 100).map((k) => `${key(k)}: ${inner(x[k])}`);
  return wrap(name && name !== 'Object' ? `${name} {` : '{', parts, '}');
}
function format(args) {
  args = [...args];
  let head = '';
  if (typeof args[0] === 'string' && args[0].includes('%')) {
    head = args.shift().replace(/%[sdifjoOc%]/g, (m) => {
      if (m === '%%') return '%';
      if (args.length === 0) return m;
      const x = args.shift();
      switch (m[1]) {
        case 's': return typeof x === 'string' ? x : show(x, 0, []);
        case 'd': return typeof x === 'bigint' ? `${x}n` : String(Number(x));
        case 'i': return String(Number.parseInt(x, 10));
        case 'f': return String(Number.parseFloat(x));
        case 'j': return JSON.stringify(x);
        case 'c': return '';
        default: return show(x, 1, []);
      }
    });
    args.unshift(head);
  }
  return args.map((x) => show(x, 0, [])).join(' ');
}
let indent = '';
const print = (fd) => (...args) => { host.write(fd, format(args).replace(/^/gm, indent) + '\n', 0); };
const out = print(1), err = print(2), counts = new Map(), times = new Map();
define('console', {
  log: out, info: out, debug: out, error: err, warn: err, dir: (x) => out(x),
  trace: (...args) => err('Trace: ' + format(args) + '\n' + new Error().stack),
  assert: (ok, ...args) => { if (!ok) err('Assertion failed' + (args.length ? ': ' + format(args) : '')); },
  group: (...args) => { if (args.length) out(...args); indent += '  '; },
  groupEnd: () => { indent = indent.slice(2); },
  count: (k = 'default') => { counts.set(k, (counts.get(k) || 0) + 1); out(`${k}: ${counts.get(k)}`); },
  time: (k = 'default') => { times.set(k, host.now()); },
  timeEnd: (k = 'default') => { out(`${k}: ${(host.now() - times.get(k)).toFixed(3)}ms`); times.delete(k); },
  table: (x) => out(x),
});

// URL.
define('URLSearchParams', class URLSearchParams {
  #list = []; #changed;
  constructor(init = '', changed) {
    this.#changed = changed;
    if (typeof init === 'string') {
      const decode = (s) => { s = s.replace(/\+/g, ' '); try { return decodeURIComponent(s); } catch { return s; } };
      for (const part of init.replace(/^\?/, '').split('&')) {
        if (part === '') continue;
        const i = part.indexOf('=');
        this.#list.push(i < 0 ? [decode(part), ''] : [decode(part.slice(0, i)), decode(part.slice(i + 1))]);
      }
    } else {
      for (const [k, v] of init[Symbol.iterator] ? init : Object.entries(init)) this.#list.push([String(k), String(v)]);
    }
  }
  #tell() { if (this.#changed) this.#changed(this.toString()); }
  get size() { return this.#list.length; }
  append(k, v) { this.#list.push([String(k), String(v)]); this.#tell(); }
  delete(k) { this.#list = this.#list.filter((p) => p[0] !== String(k)); this.#tell(); }
  get(k) { const p = this.#list.find((q) => q[0] === String(k)); return p ? p[1] : null; }
  getAll(k) { return this.#list.filter((p) => p[0] === String(k)).map((p) => p[1]); }
  has(k) { return this.#list.some((p) => p[0] === String(k)); }
  set(k, v) {
    const i = this.#list.findIndex((p) => p[0] === String(k));
    if (i < 0) return this.append(k, v);
    this.#list = this.#list.filter((p, j) => j <= i || p[0] !== String(k));
    this.#list[i] = [String(k), String(v)];
    this.#tell();
  }
  sort() { this.#list.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)); this.#tell(); }
  forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this); }
  *entries() { for (const p of this.#list) yield [...p]; }
  *keys() { for (const p of this.#list) yield p[0]; }
  *values() { for (const p of this.#list) yield p[1]; }
  [Symbol.iterator]() { return this.entries(); }
  toString() {
    const encode = (s) => encodeURIComponent(s).replace(/%20/g, '+').replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
    return this.#list.map(([k, v]) => `${encode(k)}=${encode(v)}`).join('&');
  }
});
const parts = ['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'search', 'hash'];
define('URL', class URL {
  #p = {}; #params; #slashes;
  constructor(href, base) {
    const list = host.url(String(href), base === undefined ? '' : String(base));
    if (!list) throw Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL', input: String(href) });
    parts.forEach((k, i) => { this.#p[k] = list[i]; });
    this.#slashes = list[8];
    this.#params = new URLSearchParams(this.#p.search, (s) => { this.#p.search = s && '?' + s; });
  }
  static canParse(href, base) { return Boolean(host.url(String(href), base === undefined ? '' : String(base))); }
  get host() { return this.#p.hostname + (this.#p.port && ':' + this.#p.port); }
  get origin() { return /^(https?|wss?|ftp):$/.test(this.#p.protocol) ? `${this.#p.protocol}//${this.host}` : 'null'; }
  get searchParams() { return this.#params; }
  get href() {
    const p = this.#p;
    const user = p.username || p.password ? p.username + (p.password && ':' + p.password) + '@' : '';
    return p.protocol + (this.#slashes ? '//' : '') + user + this.host + p.pathname + p.search + p.hash;
  }
  _get(k) { return this.#p[k]; }
  _set(k, v) {
    v = String(v);
    if (k === 'search') { v = v && (v[0] === '?' ? v : '?' + v); this.#params = new URLSearchParams(v, (s) => { this.#p.search = s && '?' + s; }); }
    if (k === 'hash') v = v && (v[0] === '#' ? v : '#' + v);
    if (k === 'protocol') v = v.replace(/:?$/, ':');
    if (k === 'pathname' && this.#slashes && v[0] !== '/') v = '/' + v;
    this.#p[k] = v;
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
});
for (const k of parts) {
  const { _get, _set } = URL.prototype;
  Object.defineProperty(URL.prototype, k, { get() { return _get.call(this, k); }, set(v) { _set.call(this, k, v); }, enumerable: true, configurable: true });
}
delete URL.prototype._get;
delete URL.prototype._set;

// node:path, as on POSIX.
const normalizeParts = (p, absolute) => {
  const list = [];
  for (const s of p.split('/')) {
    if (s === '' || s === '.') continue;
    if (s === '..' && list.length && list[list.length - 1] !== '..') list.pop();
    else if (s !== '..' || !absolute) list.push(s);
  }
  return list.join('/');
};
const path = {
  sep: '/', delimiter: ':',
  isAbsolute: (p) => p.startsWith('/'),
  normalize(p) {
    if (p === '') return '.';
    const absolute = p[0] === '/', s = normalizeParts(p, absolute), end = p.endsWith('/') && s ? '/' : '';
    return (absolute ? '/' : '') + s + end || '.';
  },
  join: (...list) => path.normalize(list.filter((s) => s !== '').join('/')),
  resolve(...list) {
    let p = '';
    for (let i = list.length - 1; i >= 0 && p[0] !== '/'; i--) if (list[i]) p = p ? `${list[i]}/${p}` : list[i];
    if (p[0] !== '/') p = `${process.cwd()}/${p}`;
    return '/' + normalizeParts(p, true);
  },
  dirname(p) {
    const s = p.replace(/\/+$/, ''), i = s.lastIndexOf('/');
    if (i < 0) return p[0] === '/' ? '/' : '.';
    return s.slice(0, i).replace(/\/+$/, '') || '/';
  },
  basename(p, suffix = '') {
    const s = p.replace(/\/+$/, '').replace(/^.*\//s, '');
    return suffix && s.endsWith(suffix) && s !== suffix ? s.slice(0, -suffix.length) : s;
  },
  extname(p) {
    const s = path.basename(p), i = s.lastIndexOf('.');
    return i <= 0 ? '' : s.slice(i);
  },
  relative(from, to) {
    const a = path.resolve(from).split('/').filter(Boolean), b = path.resolve(to).split('/').filter(Boolean);
    let n = 0;
    while (n < a.length && n < b.length && a[n] === b[n]) n++;
    return [...a.slice(n).map(() => '..'), ...b.slice(n)].join('/');
  },
  parse(p) {
    const base = path.basename(p), ext = path.extname(p), dir = path.dirname(p);
    return { root: p[0] === '/' ? '/' : '', dir: dir === '.' && !p.startsWith('.') ? '' : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
  },
  format(o) {
    const base = o.base || (o.name || '') + (o.ext || ''), dir = o.dir || o.root;
    return !dir ? base : dir === o.root ? dir + base : `${dir}/${base}`;
  },
};
path.posix = path;

// node:fs.
let cwd = '/';
function pathOf(p) {
  if (p instanceof URL) {
    if (p.protocol !== 'file:') throw new TypeError('the URL must be of scheme file');
    return decodeURIComponent(p.pathname);
  }
  if (p instanceof Uint8Array) return new TextDecoder().decode(p);
  if (typeof p !== 'string') throw new TypeError(`the path must be a string, not ${show(p, 1, [])}`);
  if (p.includes('\0')) throw Object.assign(new TypeError('the path has a NUL in it'), { code: 'ERR_INVALID_ARG_VALUE' });
  return p === '' || p[0] === '/' ? p : `${cwd}/${p}`;
}
function ask(op, p, { to = '', data = '', bytes = 0, number = 0, flag = 0, raw = 0 } = {}) {
  const [code, text] = host.call(op, p, to, data, bytes, number, flag, raw);
  if (code) {
    const e = new Error(`${code}: ${text}, ${op} '${p}'${to ? ` -> '${to}'` : ''}`);
    throw Object.assign(e, { code, syscall: op, path: p, ...(to && { dest: to }) });
  }
  return text;
}
const encodingOf = (o) => {
  const e = typeof o === 'string' ? o : o && o.encoding;
  if (e && !/^(utf-?8|latin1|binary|ascii|hex|base64)$/i.test(e)) throw new TypeError(`unknown encoding: ${e}`);
  return e && e.toLowerCase();
};
const content = (x) => (typeof x === 'string' ? { data: x } : { data: toString(viewOf(x)), bytes: 1 });
function statOf(text) {
  const s = JSON.parse(text);
  const is = (t) => () => s.type === t;
  return Object.assign(s, {
    atimeMs: s.atime, mtimeMs: s.mtime, ctimeMs: s.ctime, birthtimeMs: s.ctime,
    atime: new Date(s.atime), mtime: new Date(s.mtime), ctime: new Date(s.ctime), birthtime: new Date(s.ctime),
    isFile: is('file'), isDirectory: is('dir'), isSymbolicLink: is('symlink'), isFIFO: is('fifo'), isSocket: is('socket'),
    isCharacterDevice: is('char'), isBlockDevice: is('block'),
  });
}
function dirent(parent, [name, type]) {
  const is = (t) => () => type === t;
  return { name, parentPath: parent, path: parent, isFile: is('file'), isDirectory: is('dir'), isSymbolicLink: is('symlink'), isFIFO: is('fifo'),
    isSocket: is('socket'), isCharacterDevice: is('char'), isBlockDevice: is('block') };
}
function list(dir, below, o, found) {
  for (const e of JSON.parse(ask('readdir', dir))) {
    const name = below ? `${below}/${e[0]}` : e[0];
    found.push(o.withFileTypes ? dirent(dir, e) : name);
    if (o.recursive && e[1] === 'dir') list(`${dir}/${e[0]}`, name, o, found);
  }
  return found;
}
const seconds = (t) => (t instanceof Date ? t.getTime() : Number(t) * 1000);
const sync = {
  readFile(p, o) {
    const e = encodingOf(o);
    if (e === 'utf8' || e === 'utf-8') return ask('readFile', pathOf(p));
    const s = ask('readFile', pathOf(p), { raw: 1 });
    switch (e) {
      case undefined: return toBytes(s);
      case 'hex': return Array.from(toBytes(s), (b) => b.toString(16).padStart(2, '0')).join('');
      case 'base64': return btoa(s);
      default: return s;
    }
  },
  writeFile(p, x, o) {
    const flag = (o && o.flag) || 'w';
    if (flag[0] === 'a') return sync.appendFile(p, x, o);
    ask('writeFile', pathOf(p), { ...content(x), number: (o && o.mode) ?? 0o666, flag: flag.includes('x') ? 1 : 0 });
  },
  appendFile(p, x, o) { ask('appendFile', pathOf(p), { ...content(x), number: (o && o.mode) ?? 0o666 }); },
  stat: (p) => statOf(ask('stat', pathOf(p))),
  lstat: (p) => statOf(ask('lstat', pathOf(p))),
  readdir: (p, o) => list(pathOf(p), '', o || {}, []),
  mkdir(p, o) {
    const recursive = typeof o === 'object' && o !== null && o.recursive;
    return ask('mkdir', pathOf(p), { number: (typeof o === 'number' ? o : o && o.mode) ?? 0o777, flag: recursive ? 1 : 0 }) || undefined;
  },
  rm(p, o) {
    o = o || {};
    try { ask('rm', pathOf(p), { flag: o.recursive ? 1 : 0 }); } catch (e) { if (!(o.force && e.code === 'ENOENT')) throw e; }
  },
  rmdir(p) { ask('rmdir', pathOf(p)); },
  unlink(p) { ask('unlink', pathOf(p)); },
  rename(p, q) { ask('rename', pathOf(p), { to: pathOf(q) }); },
  copyFile(p, q, mode) { ask('copyFile', pathOf(p), { to: pathOf(q), flag: mode & 1 ? 1 : 0 }); },
  symlink(target, p) { ask('symlink', pathOf(p), { to: String(target) }); },
  link(p, q) { ask('link', pathOf(p), { to: pathOf(q) }); },
  readlink: (p) => ask('readlink', pathOf(p)),
  realpath: (p) => ask('realpath', pathOf(p)),
  chmod(p, mode) { ask('chmod', pathOf(p), { number: typeof mode === 'string' ? parseInt(mode, 8) : mode }); },
  truncate(p, n = 0) { ask('truncate', pathOf(p), { number: n }); },
  utimes(p, a, m) { ask('utimes', pathOf(p), { data: JSON.stringify([seconds(a), seconds(m)]) }); },
  access(p, mode = 0) { ask('access', pathOf(p), { number: mode }); },
};
const constants = { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1 };
const promises = { constants }, fs = { promises, constants, existsSync(p) { try { sync.stat(p); return true; } catch { return false; } } };
for (const name of Object.keys(sync)) {
  promises[name] = async (...args) => sync[name](...args);
  fs[name + 'Sync'] = (...args) => sync[name](...args);
}

// process.
let reading = [], ended = false, encoding;
const listeners = { data: [], end: [] };
define('__input', (s, end) => {
  const chunk = encoding ? new TextDecoder().decode(toBytes(s)) : toBytes(s);
  ended = ended || end;
  const next = reading.shift();
  if (next) next(end ? { done: true, value: undefined } : { done: false, value: chunk });
  if (end) {
    for (const other of reading.splice(0)) other({ done: true, value: undefined });
    listeners.end.forEach((f) => f());
    return;
  }
  listeners.data.forEach((f) => f(chunk));
  if (reading.length || listeners.data.length) host.stdin();
});
const stdin = {
  fd: 0, isTTY: false,
  setEncoding(e) { encoding = e; return stdin; },
  on(event, f) {
    if (!listeners[event]) return stdin;
    listeners[event].push(f);
    if (!ended) host.stdin();
    return stdin;
  },
  resume() { return stdin; },
  [Symbol.asyncIterator]: () => ({
    next: () => new Promise((resolve) => {
      if (ended) return resolve({ done: true, value: undefined });
      reading.push(resolve);
      host.stdin();
    }),
    return: async () => ({ done: true, value: undefined }),
    [Symbol.asyncIterator]() { return this; },
  }),
};
const stream = (fd) => ({
  fd, isTTY: false,
  write(x, ...rest) {
    const { data, bytes = 0 } = content(x);
    host.write(fd, data, bytes);
    const done = rest.find((f) => typeof f === 'function');
    if (done) queueMicrotask(done);
    return true;
  },
  end(x) { if (x !== undefined) this.write(x); },
  on() { return this; }, once() { return this; },
});
const process = {
  env: {}, argv: [], argv0: 'carrel', execArgv: [], pid: 1, ppid: 0, platform: 'linux', arch: 'js', version: 'v22.0.0',
  versions: { quickjs: '2026-06-04' }, title: 'carrel', exitCode: undefined,
  cwd: () => cwd, chdir: (p) => { cwd = path.resolve(p); },
  exit: (code) => host.exit(Number(code ?? process.exitCode ?? 0)),
  nextTick: (f, ...args) => queueMicrotask(() => f(...args)),
  hrtime: Object.assign((then) => {
    const ns = Math.round(host.now() * 1e6), t = [Math.floor(ns / 1e9), ns % 1e9];
    if (!then) return t;
    const d = (t[0] - then[0]) * 1e9 + t[1] - then[1];
    return [Math.floor(d / 1e9), d % 1e9];
  }, { bigint: () => BigInt(Math.round(host.now() * 1e6)) }),
  uptime: () => host.now() / 1000,
  stdin, stdout: stream(1), stderr: stream(2),
  on() { return process; }, once() { return process; }, emitWarning: (w) => err(String(w)),
};
define('process', process);
const url = { URL, URLSearchParams, fileURLToPath: (u) => pathOf(new URL(u)),
  pathToFileURL: (p) => new URL('file://' + path.resolve(p).split('/').map(encodeURIComponent).join('/')) };
Object.defineProperty(g, '__node', { value: Object.freeze({ fs, 'fs/promises': promises, path, process, url, timers }) });

// The main module.
define('__start', (text) => {
  const { main, args, env, cwd: dir, input } = JSON.parse(text);
  delete g.__start;
  cwd = dir;
  for (const e of env || []) process.env[e.slice(0, e.indexOf('='))] = e.slice(e.indexOf('=') + 1);
  process.argv.push('carrel', main, ...(args || []));
  define('input', input);
  (async () => {
    const m = await import(main);
    const value = typeof m.default === 'function' ? await m.default(input) : await m.default;
    return value === undefined ? undefined : JSON.stringify(value);
  })().then(
    (v) => host.settle(v === undefined ? 'none' : 'value', v),
    (e) => {
      const isError = e instanceof Error;
      host.settle('error', isError ? String(e.name) : '', isError ? String(e.message) : show(e, 0, []), isError ? String(e.stack || '') : '');
    });
});
})();
