// node:util and node:url, what there is of them.
function sameValue(a, b, seen) {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (seen.some(([x, y]) => x === a && y === b)) return true;
  const same = (x, y) => sameValue(x, y, [...seen, [a, b]]);
  if (a instanceof Date) return Object.is(+a, +b);
  if (a instanceof RegExp) return String(a) === String(b);
  if (a instanceof Error && (a.name !== b.name || a.message !== b.message)) return false;
  if (isBuffer(a)) [a, b] = [new Uint8Array(a), new Uint8Array(b)];
  if (a instanceof Map) return a.size === b.size && [...a].every(([k, v]) => (b.has(k) ? same(v, b.get(k)) : [...b].some(([l, w]) => same(k, l) && same(v, w))));
  if (a instanceof Set) return a.size === b.size && [...a].every((v) => b.has(v) || [...b].some((w) => same(v, w)));
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((k) => Object.hasOwn(b, k) && same(a[k], b[k]));
}
const util = {
  inspect, format: (...args) => format(args), isDeepStrictEqual: (a, b) => sameValue(a, b, []),
  promisify(f) {
    needFunction(f, 'original');
    return (...args) => new Promise((resolve, reject) => { f(...args, (e, v) => (e ? reject(e) : resolve(v))); });
  },
  TextEncoder: g.TextEncoder, TextDecoder,
};
const url = { URL: g.URL, URLSearchParams: g.URLSearchParams, fileURLToPath, pathToFileURL };
const builtins = { fs, 'fs/promises': promises, path, 'path/posix': path, process, url, timers, 'timers/promises': timersPromises,
  buffer: { Buffer, atob: g.atob, btoa: g.btoa }, util };
Object.defineProperty(g, '__node', { value: Object.freeze({ __proto__: null, ...builtins, json: parseJSON }) });
