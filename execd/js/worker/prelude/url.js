// URL and URLSearchParams (url.spec.whatwg.org). The worker parses; a URL here is what it gave last.
const urlText = (x) => `${x}`.toWellFormed();
const needArguments = (given, ...names) => {
  if (given >= names.length) return;
  const quoted = names.map((n) => `"${n}"`);
  throw failure(TypeError, 'ERR_MISSING_ARGS', names.length === 1 ? `The ${quoted[0]} argument must be specified` : `The ${quoted.join(' and ')} arguments must be specified`);
};
const invalidThis = (type) => failure(TypeError, 'ERR_INVALID_THIS', `Value of "this" must be of type ${type}`);
// formText decodes a name or value of application/x-www-form-urlencoded, which has no errors.
const formBytes = new g.TextEncoder(), formDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
function formText(s) {
  s = s.replaceAll('+', ' ');
  if (!s.includes('%')) return s;
  const from = formBytes.encode(s);
  let n = 0;
  for (let i = 0; i < from.length; i++) {
    const hex = from[i] === 37 && i + 2 < from.length ? chars(from[i + 1], from[i + 2]) : '';
    const escaped = /^[0-9a-f]{2}$/i.test(hex);
    from[n++] = escaped ? parseInt(hex, 16) : from[i];
    if (escaped) i += 2;
  }
  return formDecoder.decode(from.subarray(0, n));
}
const formEscaped = (s) => encodeURIComponent(s).replace(/%20|[!'()~]/g, (c) => (c === '%20' ? '+' : '%' + c.charCodeAt(0).toString(16).toUpperCase()));
function formPairs(s) {
  const list = [];
  for (const part of s.split('&')) {
    if (part === '') continue;
    const i = part.indexOf('=');
    list.push(i < 0 ? [formText(part), ''] : [formText(part.slice(0, i)), formText(part.slice(i + 1))]);
  }
  return list;
}
const tuple = (p) => {
  const pair = (typeof p === 'object' && p !== null) || typeof p === 'function' ? typeof p[Symbol.iterator] === 'function' && [...p] : null;
  if (!pair || pair.length !== 2) throw failure(TypeError, 'ERR_INVALID_TUPLE', 'Each query pair must be an iterable [name, value] tuple');
  return pair.map(urlText);
};
function pairsOf(init) {
  if (init === undefined || init === null) return [];
  if (typeof init !== 'object' && typeof init !== 'function') return formPairs(urlText(init).replace(/^\?/, ''));
  const each = init[Symbol.iterator];
  if (each !== undefined && each !== null) {
    if (typeof each !== 'function') throw failure(TypeError, 'ERR_ARG_NOT_ITERABLE', 'Query pairs must be iterable');
    return Array.from(init, tuple);
  }
  const record = new Map();
  for (const k of Reflect.ownKeys(init)) if (Object.getOwnPropertyDescriptor(init, k)?.enumerable) record.set(urlText(k), urlText(init[k]));
  return [...record];
}
// What the two classes do with each other, and nobody else can.
let paramsOf, refill, setQuery, hrefOf;
class URLSearchParams {
  #list = [];
  #url = null;
  static {
    paramsOf = (u, query) => {
      const p = new URLSearchParams(query);
      p.#url = u;
      return p;
    };
    refill = (p, query) => { p.#list = formPairs(query.replace(/^\?/, '')); };
  }
  constructor(init = undefined) { this.#list = pairsOf(init); }
  #changed() { if (this.#url) setQuery(this.#url, this.toString()); }
  static #at(p) {
    if (typeof p !== 'object' || p === null || !(#list in p)) throw invalidThis('URLSearchParams');
    return p.#list;
  }
  get size() { return URLSearchParams.#at(this).length; }
  append(name, value) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name', 'value');
    list.push([urlText(name), urlText(value)]);
    this.#changed();
  }
  delete(name, value = undefined) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name');
    name = urlText(name);
    if (value !== undefined) value = urlText(value);
    for (let i = 0; i < list.length;) if (list[i][0] === name && (value === undefined || list[i][1] === value)) list.splice(i, 1); else i++;
    this.#changed();
  }
  get(name) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name');
    name = urlText(name);
    return list.find((p) => p[0] === name)?.[1] ?? null;
  }
  getAll(name) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name');
    name = urlText(name);
    return list.filter((p) => p[0] === name).map((p) => p[1]);
  }
  has(name, value = undefined) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name');
    name = urlText(name);
    if (value !== undefined) value = urlText(value);
    return list.some((p) => p[0] === name && (value === undefined || p[1] === value));
  }
  set(name, value) {
    const list = URLSearchParams.#at(this);
    needArguments(arguments.length, 'name', 'value');
    name = urlText(name);
    value = urlText(value);
    const first = list.find((p) => p[0] === name);
    if (first) first[1] = value; else list.push([name, value]);
    for (let i = list.length - 1; i >= 0; i--) if (list[i][0] === name && list[i] !== (first ?? list[i])) list.splice(i, 1);
    this.#changed();
  }
  sort() {
    URLSearchParams.#at(this).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    this.#changed();
  }
  forEach(callback, self = undefined) {
    const list = URLSearchParams.#at(this);
    needFunction(callback);
    for (const [k, v] of list) callback.call(self, v, k, this);
  }
  *#each(of) { for (let i = 0; i < this.#list.length; i++) yield of(this.#list[i]); } // what is added meanwhile comes too
  entries() { URLSearchParams.#at(this); return this.#each((p) => [...p]); }
  keys() { URLSearchParams.#at(this); return this.#each((p) => p[0]); }
  values() { URLSearchParams.#at(this); return this.#each((p) => p[1]); }
  toString() { return URLSearchParams.#at(this).map(([k, v]) => `${formEscaped(k)}=${formEscaped(v)}`).join('&'); }
}
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });

// The parts of a URL, as the worker gives them; all but the origin can be set.
const urlParts = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];
const invalidURL = (input, base) => failure(TypeError, 'ERR_INVALID_URL', 'Invalid URL', { input, ...(base !== undefined && { base }) });
const parseURL = (href, base) => (base === undefined ? host.url(href) : host.url(href, base));
class URL {
  #parts; // the URL
  #params = null; // made when they are asked for
  static {
    const at = (u) => {
      if (typeof u !== 'object' || u === null || !(#parts in u)) throw invalidThis('URL');
      return u.#parts;
    };
    const become = (u, list) => {
      u.#parts = list;
      if (u.#params) refill(u.#params, list[9]);
    };
    hrefOf = (u) => at(u)[0];
    setQuery = (u, query) => { u.#parts = host.urlSet(u.#parts[0], 'search', query); };
    const setters = {
      href: (u, x) => {
        const list = host.url(x);
        if (!list) throw invalidURL(x);
        become(u, list);
      },
    };
    urlParts.forEach((name, i) => {
      const set = setters[name] ?? ((u, x) => become(u, host.urlSet(at(u)[0], name, x)));
      Object.defineProperty(URL.prototype, name, {
        get() { return at(this)[i]; }, set: name === 'origin' ? undefined : function (x) { at(this); set(this, urlText(x)); },
        enumerable: true, configurable: true,
      });
    });
    Object.defineProperty(URL.prototype, 'searchParams', {
      get() {
        const search = at(this)[9];
        return this.#params ??= paramsOf(this, search);
      }, enumerable: true, configurable: true,
    });
  }
  constructor(input, base = undefined) {
    needArguments(arguments.length, 'url');
    input = urlText(input);
    if (base !== undefined) base = urlText(base);
    const list = parseURL(input, base);
    if (!list) throw invalidURL(input, base);
    this.#parts = list;
  }
  static parse(input, base = undefined) {
    needArguments(arguments.length, 'url');
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }
  static canParse(input, base = undefined) {
    needArguments(arguments.length, 'url');
    return Boolean(parseURL(urlText(input), base === undefined ? undefined : urlText(base)));
  }
  toString() { return hrefOf(this); }
  toJSON() { return hrefOf(this); }
}
for (const [C, names] of [[URL, ['toString', 'toJSON']], [URLSearchParams, ['size', 'append', 'delete', 'get', 'getAll', 'has', 'set', 'sort', 'forEach', 'entries', 'keys', 'values', 'toString']]]) {
  for (const name of names) Object.defineProperty(C.prototype, name, { enumerable: true });
  Object.defineProperty(C.prototype, Symbol.toStringTag, { value: C.name, configurable: true });
}
define('URL', URL);
define('URLSearchParams', URLSearchParams);
