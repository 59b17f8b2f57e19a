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
  delete(k, v) { this.#list = this.#list.filter((p) => !this.#is(p, k, v)); this.#tell(); }
  #is(p, k, v) { return p[0] === String(k) && (v === undefined || p[1] === String(v)); }
  get(k) { const p = this.#list.find((q) => q[0] === String(k)); return p ? p[1] : null; }
  getAll(k) { return this.#list.filter((p) => p[0] === String(k)).map((p) => p[1]); }
  has(k, v) { return this.#list.some((p) => this.#is(p, k, v)); }
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
    if (!list) throw failure(TypeError, 'ERR_INVALID_URL', 'Invalid URL', { input: String(href) });
    parts.forEach((k, i) => { this.#p[k] = list[i]; });
    this.#slashes = list[8];
    this.#params = new URLSearchParams(this.#p.search, (s) => { this.#p.search = s && '?' + s; });
  }
  static parse(href, base) { return URL.canParse(href, base) ? new URL(href, base) : null; }
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
const { URL, URLSearchParams } = g;
for (const k of parts) {
  const { _get, _set } = URL.prototype;
  Object.defineProperty(URL.prototype, k, { get() { return _get.call(this, k); }, set(v) { _set.call(this, k, v); }, enumerable: true, configurable: true });
}
delete URL.prototype._get;
delete URL.prototype._set;
