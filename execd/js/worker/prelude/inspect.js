// How the console and util.inspect show values, as node does: three levels, a hundred of each, 76 columns.
const quote = (s) => {
  const mark = !s.includes("'") ? "'" : !s.includes('"') ? '"' : !s.includes('`') && !s.includes('${') ? '`' : "'";
  const escapes = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f', '\v': '\\v', '\\': '\\\\', "'": mark === "'" ? "\\'" : "'" };
  return mark + s.replace(/[\x00-\x1f\x7f\\']/g, (c) => escapes[c] ?? '\\x' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')) + mark;
};
const showKey = (k) => (typeof k === 'symbol' ? `[${k.toString()}]` : /^[A-Za-z_$][\w$]*$/.test(k) ? k : quote(k));
const maxItems = 100, maxLine = 76, maxLevels = 3;

function showPlain(x, top) {
  switch (typeof x) {
    case 'string': return top ? x : quote(x);
    case 'bigint': return `${x}n`;
    case 'symbol': return x.toString();
    case 'number': return Object.is(x, -0) ? '-0' : String(x);
    default: return String(x); // undefined, null, boolean
  }
}
function nameOf(x) {
  for (let o = x; o !== null; o = Object.getPrototypeOf(o)) {
    const d = Object.getOwnPropertyDescriptor(o, 'constructor');
    if (d && typeof d.value === 'function' && d.value.name) return d.value.name;
  }
  return undefined;
}
function showFunction(f) {
  if (!/^class\b/.test(Function.prototype.toString.call(f))) return `[${nameOf(f) || 'Function'}: ${f.name || '(anonymous)'}]`.replace(/: \(anonymous\)\]/, ' (anonymous)]');
  const base = Object.getPrototypeOf(f);
  return `[class ${f.name || '(anonymous)'}${typeof base === 'function' && base.name ? ` extends ${base.name}` : ''}]`;
}
function showError(x, inner) {
  const name = String(x.name ?? 'Error'), message = String(x.message ?? '');
  const stack = typeof x.stack === 'string' ? x.stack.trimEnd() : '';
  let s = message ? `${name}: ${message}` : name;
  if (stack) s = stack.startsWith(s) ? stack : `${s}\n${stack}`; else s = `[${s}]`;
  const parts = Object.keys(x).filter((k) => k !== 'stack' && k !== 'message').map((k) => `${showKey(k)}: ${inner(x[k])}`);
  if (Object.hasOwn(x, 'cause')) parts.push(`[cause]: ${inner(x.cause)}`);
  if (Array.isArray(x.errors)) parts.push(`[errors]: ${inner(x.errors)}`);
  return parts.length ? `${s} {\n${parts.map((p) => '  ' + p.replace(/\n/g, '\n  ')).join(',\n')}\n}` : s;
}
function wrapParts(open, parts, close) {
  if (parts.length === 0) return open + close;
  const one = `${open} ${parts.join(', ')} ${close}`;
  return one.length <= maxLine && !one.includes('\n') ? one : `${open}\n${parts.map((p) => '  ' + p.replace(/\n/g, '\n  ')).join(',\n')}\n${close}`;
}
const more = (n) => (n > maxItems ? [`... ${n - maxItems} more item${n === maxItems + 1 ? '' : 's'}`] : []);
const isIndex = (k) => typeof k === 'string' && /^\d+$/.test(k);
// showItems looks at no more of an array than it shows: its length says nothing of how much is in it.
function showItems(x, inner) {
  const parts = [];
  let i = 0, keys;
  while (i < x.length && parts.length < maxItems) {
    if (Object.hasOwn(x, i)) { parts.push(inner(x[i++])); continue; }
    keys ??= Object.keys(x); // indices come first, in order
    const next = Number(keys.find((k) => !isIndex(k) || Number(k) > i) ?? x.length), to = next < x.length ? next : x.length;
    parts.push(`<${to - i} empty item${to - i === 1 ? '' : 's'}>`);
    i = to;
  }
  const left = x.length - i;
  return left > 0 ? [...parts, `... ${left} more item${left === 1 ? '' : 's'}`] : parts;
}
// named are the keys of an array that are no indices.
function named(x) {
  const keys = Object.keys(x);
  let n = keys.length;
  while (n > 0 && !isIndex(keys[n - 1])) n--;
  return keys.slice(n);
}
function showProperties(x, inner, names = Object.keys(x)) {
  const keys = [...names, ...Object.getOwnPropertySymbols(x).filter((k) => Object.prototype.propertyIsEnumerable.call(x, k))];
  return keys.slice(0, maxItems).map((k) => {
    const d = Object.getOwnPropertyDescriptor(x, k);
    const value = !d || 'value' in d ? inner(x[k]) : d.get && d.set ? '[Getter/Setter]' : d.get ? '[Getter]' : '[Setter]';
    return `${showKey(k)}: ${value}`;
  }).concat(more(keys.length));
}
// genuine tells what a constructor has made from what only has its prototype, of which f of a method of it throws.
const genuine = (x, C, f) => {
  if (!(x instanceof C)) return false;
  try { f(x); return true; } catch { return false; }
};
const boxed = (x) => [Number, String, Boolean, BigInt, Symbol].some((C) => genuine(x, C, (v) => C.prototype.valueOf.call(v)));
// show shows a value at a level, of which those in seen are above it.
function show(x, level, seen, levels = maxLevels) {
  if ((typeof x !== 'object' && typeof x !== 'function') || x === null) return showPlain(x, level === 0);
  if (seen.includes(x)) return '[Circular]';
  const inner = (y) => show(y, level + 1, [...seen, x], levels);
  if (typeof x === 'function') {
    const parts = showProperties(x, inner);
    return parts.length ? wrapParts(`${showFunction(x)} {`, parts, '}') : showFunction(x);
  }
  if (x instanceof Error) return level > 0 && level >= levels ? `[${x.name}: ${x.message}]` : showError(x, inner);
  if (genuine(x, Date, (d) => d.getTime())) return Number.isNaN(x.getTime()) ? 'Invalid Date' : x.toISOString();
  if (genuine(x, RegExp, (r) => r.source)) return String(x);
  if (boxed(x)) return `[${nameOf(x)}: ${showPlain(x.valueOf(), false)}]`;
  const name = nameOf(x);
  if (level >= levels) return Array.isArray(x) ? '[Array]' : `[${name || 'Object: null prototype'}]`;
  if (Array.isArray(x)) {
    const prefix = name === 'Array' ? '' : `${name}(${x.length}) `;
    return wrapParts(`${prefix}[`, [...showItems(x, inner), ...showProperties(x, inner, named(x))], ']');
  }
  if (x instanceof Buffer) return `<Buffer${Array.from(x.subarray(0, 50), (b) => ' ' + b.toString(16).padStart(2, '0')).join('')}${x.length > 50 ? ` ... ${x.length - 50} more bytes` : ''}>`;
  if (ArrayBuffer.isView(x) && !(x instanceof DataView)) return wrapParts(`${name}(${x.length}) [`, [...Array.from(x.subarray(0, maxItems), inner), ...more(x.length)], ']');
  if (isBuffer(x)) return `${name} { byteLength: ${x.byteLength} }`;
  if (genuine(x, Set, (s) => s.size)) return wrapParts(`${name}(${x.size}) {`, [...[...x].slice(0, maxItems).map(inner), ...more(x.size)], '}');
  if (genuine(x, Map, (m) => m.size)) return wrapParts(`${name}(${x.size}) {`, [...[...x].slice(0, maxItems).map(([k, v]) => `${inner(k)} => ${inner(v)}`), ...more(x.size)], '}');
  if (x instanceof Promise || x instanceof WeakMap || x instanceof WeakSet) return wrapParts(`${name} {`, showProperties(x, inner), '}');
  if (genuine(x, URL, (u) => u.href)) return wrapParts('URL {', [...urlParts.slice(0, -1), 'searchParams', 'hash'].map((k) => `${k}: ${inner(x[k])}`), '}');
  if (genuine(x, URLSearchParams, (p) => p.size)) return wrapParts('URLSearchParams {', [...x].map(([k, v]) => `${quote(k)} => ${quote(v)}`), '}');
  const tag = x[Symbol.toStringTag];
  let prefix = name === undefined ? '[Object: null prototype] ' : name === 'Object' ? '' : `${name} `;
  if (typeof tag === 'string' && tag && tag !== name) prefix = `${prefix || 'Object '}[${tag}] `;
  return wrapParts(`${prefix}{`, showProperties(x, inner), '}');
}
function inspect(x, options) {
  const depth = typeof options === 'object' && options !== null ? options.depth : undefined;
  if (typeof x === 'string') return quote(x);
  return show(x, 0, [], depth === undefined ? maxLevels : depth === null ? Infinity : depth + 1);
}
function format(args) {
  args = [...args];
  if (typeof args[0] === 'string' && args[0].includes('%')) {
    const head = args.shift().replace(/%[sdifjoOc%]/g, (m) => {
      if (m === '%%') return '%';
      if (args.length === 0) return m;
      const x = args.shift();
      switch (m[1]) {
        case 's': return typeof x === 'object' && x !== null && !(x instanceof Error) ? show(x, 1, [], 2) : show(x, 0, []);
        case 'd': return typeof x === 'bigint' ? `${x}n` : typeof x === 'symbol' ? 'NaN' : showPlain(Number(x));
        case 'i': return typeof x === 'bigint' ? `${x}n` : showPlain(Number.parseInt(x, 10));
        case 'f': return typeof x === 'symbol' ? 'NaN' : showPlain(Number.parseFloat(x));
        case 'j': try { return String(toJSON(x)); } catch (e) { return e instanceof TypeError ? '[Circular]' : String(e); }
        case 'c': return '';
        default: return inspect(x, { depth: m[1] === 'o' ? 4 : undefined });
      }
    });
    args.unshift(head);
  }
  return args.map((x) => show(x, 0, [])).join(' ');
}
