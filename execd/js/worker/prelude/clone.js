// structuredClone (HTML standard, 2.7): what is not data has no copy.
const uncloneable = (x) => new DOMException(`${typeof x === 'symbol' || typeof x === 'function' ? String(x) : '#<' + ((x.constructor && x.constructor.name) || 'Object') + '>'} could not be cloned.`, 'DataCloneError');
const nativeErrors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const typedArrays = Object.fromEntries([Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array,
  BigUint64Array, Float32Array, Float64Array].map((A) => [A.name, A]));
if (typeof Float16Array === 'function') typedArrays.Float16Array = Float16Array;
const tagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
const opaque = [Promise, WeakMap, WeakSet, WeakRef, FinalizationRegistry];

function cloneView(x, clone) {
  const buffer = clone(x.buffer);
  if (x instanceof DataView) return new DataView(buffer, x.byteOffset, x.byteLength);
  return new typedArrays[tagOf.call(x)](buffer, x.byteOffset, x.length);
}
function cloneError(x, keep, clone) {
  const own = (k) => { const d = Object.getOwnPropertyDescriptor(x, k); return d && 'value' in d ? d.value : undefined; };
  const y = keep(new (Object.hasOwn(nativeErrors, String(x.name)) ? nativeErrors[x.name] : Error)());
  const put = (k, value) => Object.defineProperty(y, k, { value, writable: true, configurable: true });
  if (own('message') !== undefined) put('message', String(own('message')));
  if (own('stack') !== undefined) put('stack', String(own('stack')));
  if (Object.hasOwn(x, 'cause')) put('cause', clone(x.cause));
  if (Object.hasOwn(x, 'errors') && Array.isArray(x.errors)) put('errors', clone(x.errors));
  return y;
}
function cloneWith(seen) {
  const clone = (x) => {
    if (typeof x === 'function' || typeof x === 'symbol') throw uncloneable(x);
    if (typeof x !== 'object' || x === null) return x;
    if (seen.has(x)) return seen.get(x);
    const keep = (y) => { seen.set(x, y); return y; };
    if (x instanceof Date) return keep(new Date(+x));
    if (x instanceof RegExp) return keep(new RegExp(x.source, x.flags));
    if (x instanceof ArrayBuffer) return keep(x.resizable ? cloneResizable(x) : x.slice(0));
    if (ArrayBuffer.isView(x)) return keep(cloneView(x, clone));
    if (x instanceof Number || x instanceof String || x instanceof Boolean || x instanceof BigInt) return keep(Object(x.valueOf()));
    if (x instanceof Symbol || opaque.some((C) => x instanceof C)) throw uncloneable(x);
    if (x instanceof Map) {
      const y = keep(new Map());
      for (const [k, v] of [...x]) y.set(clone(k), clone(v));
      return y;
    }
    if (x instanceof Set) {
      const y = keep(new Set());
      for (const v of [...x]) y.add(clone(v));
      return y;
    }
    if (x instanceof Error) return cloneError(x, keep, clone);
    const y = keep(Array.isArray(x) ? new Array(x.length) : {});
    for (const k of Object.keys(x)) Object.defineProperty(y, k, { value: clone(x[k]), writable: true, enumerable: true, configurable: true });
    return y;
  };
  return clone;
}
function cloneResizable(x) {
  const y = new ArrayBuffer(x.byteLength, { maxByteLength: x.maxByteLength });
  new Uint8Array(y).set(new Uint8Array(x));
  return y;
}
define('structuredClone', function structuredClone(x, options) {
  if (arguments.length === 0) throw failure(TypeError, 'ERR_MISSING_ARGS', 'The "value" argument must be specified');
  const seen = new Map(), list = [...(options?.transfer ?? [])];
  for (const t of list) {
    if (!(t instanceof ArrayBuffer) || seen.has(t) || t.detached) throw new DOMException('Value could not be transferred.', 'DataCloneError');
    seen.set(t, null);
  }
  seen.clear();
  for (const t of list) seen.set(t, cloneWith(new Map())(t)); // a copy first: when the rest fails, nothing was taken
  const y = cloneWith(seen)(x);
  for (const t of list) t.transfer();
  return y;
});
