// node:path, as on POSIX.
const needPath = (p, name = 'path') => {
  if (typeof p !== 'string') throw wrongType(name, 'of type string', p);
  return p;
};
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
  isAbsolute: (p) => needPath(p).startsWith('/'),
  normalize(p) {
    if (needPath(p) === '') return '.';
    const absolute = p[0] === '/', s = normalizeParts(p, absolute), end = p.endsWith('/') && s ? '/' : '';
    return (absolute ? '/' : '') + s + end || (p.endsWith('/') ? './' : '.');
  },
  join: (...list) => {
    list.forEach((p) => needPath(p));
    return path.normalize(list.filter((s) => s !== '').join('/'));
  },
  resolve(...list) {
    let p = '';
    for (let i = list.length - 1; i >= 0 && p[0] !== '/'; i--) if (needPath(list[i], `paths[${i}]`)) p = p ? `${list[i]}/${p}` : list[i];
    if (p[0] !== '/') p = `${cwd}/${p}`;
    return '/' + normalizeParts(p, true);
  },
  dirname(p) {
    if (needPath(p) === '') return '.';
    const s = p.replace(/(?<=[^/])\/+$/, ''), i = s.lastIndexOf('/');
    if (i < 0) return '.';
    const dir = s.slice(0, i);
    return dir === '' ? '/' : /^\/+$/.test(s) ? '/' : dir === '/' ? '//' : dir;
  },
  basename(p, suffix) {
    if (suffix !== undefined) needPath(suffix, 'suffix');
    const s = needPath(p).replace(/\/+$/, '').replace(/^.*\//s, '');
    return suffix && s.endsWith(suffix) && s !== suffix ? s.slice(0, -suffix.length) : s;
  },
  extname(p) {
    const s = path.basename(p), i = s.lastIndexOf('.');
    return i <= 0 || s === '..' ? '' : s.slice(i);
  },
  relative(from, to) {
    const a = path.resolve(needPath(from, 'from')).split('/').filter(Boolean), b = path.resolve(needPath(to, 'to')).split('/').filter(Boolean);
    let n = 0;
    while (n < a.length && n < b.length && a[n] === b[n]) n++;
    return [...a.slice(n).map(() => '..'), ...b.slice(n)].join('/');
  },
  parse(p) {
    const s = needPath(p).replace(/(?<=[^/])\/+$/, ''), i = s.lastIndexOf('/');
    const root = p[0] === '/' ? '/' : '', base = path.basename(s), ext = path.extname(s);
    return { root, dir: i < 0 ? '' : i === 0 || /^\/+$/.test(s) ? '/' : s.slice(0, i), base, ext, name: ext ? base.slice(0, -ext.length) : base };
  },
  format(o) {
    if (typeof o !== 'object' || o === null) throw wrongType('pathObject', 'of type object', o);
    const ext = o.ext && o.ext[0] !== '.' ? `.${o.ext}` : o.ext || '';
    const base = o.base || (o.name || '') + ext, dir = o.dir || o.root;
    return !dir ? base : dir === o.root ? dir + base : `${dir}/${base}`;
  },
  toNamespacedPath: (p) => p,
};
path.posix = path;
