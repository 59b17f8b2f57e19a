// node:buffer. What reads files gives these, as in node: they are texts to whoever asks them.
class Buffer extends Uint8Array {
  static from(x, a, b) {
    if (typeof x === 'string') return Buffer.#of(encodeText(x, a === undefined ? 'utf8' : needEncoding(a)));
    if (isBuffer(x)) return new Buffer(x, a, b);
    if (ArrayBuffer.isView(x) || Array.isArray(x)) return Buffer.#of(Uint8Array.from(x));
    if (x && x.type === 'Buffer' && Array.isArray(x.data)) return Buffer.#of(Uint8Array.from(x.data));
    if (x && typeof x === 'object' && typeof x.length === 'number') return Buffer.#of(Uint8Array.from(x));
    if (x && typeof x.valueOf === 'function' && x.valueOf() !== x) return Buffer.from(x.valueOf(), a, b);
    throw wrongType('first', 'a string, a buffer or an array', x);
  }
  static #of(view) { return new Buffer(view.buffer, view.byteOffset, view.byteLength); }
  static alloc(size, fill, encoding) {
    const b = new Buffer(size);
    return fill === undefined || fill === 0 ? b : b.fill(fill, encoding);
  }
  static allocUnsafe(size) { return new Buffer(size); }
  static allocUnsafeSlow(size) { return new Buffer(size); }
  static isBuffer(x) { return x instanceof Buffer; }
  static isEncoding(e) { return encodingName(e) !== undefined; }
  static byteLength(x, encoding = 'utf8') { return typeof x === 'string' ? encodeText(x, encodingName(encoding) ?? 'utf8').length : x.byteLength; }
  static compare(a, b) {
    const n = Math.min(a.length, b.length);
    for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return Math.sign(a.length - b.length);
  }
  static concat(list, length = list.reduce((n, b) => n + b.length, 0)) {
    const all = Buffer.alloc(length);
    let at = 0;
    for (const b of list) {
      const part = b.subarray(0, Math.max(length - at, 0));
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
  toString(encoding = 'utf8', start = 0, end = this.length) { return decodeText(new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(start, end), needEncoding(encoding)); }
  toJSON() { return { type: 'Buffer', data: Array.from(this) }; }
  equals(other) { return Buffer.compare(this, other) === 0; }
  compare(other) { return Buffer.compare(this, other); }
  slice(start, end) { return this.subarray(start, end); }
  copy(into, at = 0, start = 0, end = this.length) {
    const part = this.subarray(start, end).subarray(0, Math.max(into.length - at, 0));
    into.set(part, at);
    return part.length;
  }
  write(s, at = 0, length, encoding) {
    if (typeof at === 'string') [at, length, encoding] = [0, undefined, at];
    else if (typeof length === 'string') [length, encoding] = [undefined, length];
    const room = Math.min(this.length - at, length ?? Infinity), name = encoding === undefined ? 'utf8' : needEncoding(encoding);
    let bytes = encodeText(s, name);
    while (bytes.length > room) { // whole characters
      s = name === 'utf8' && bytes.length > 4 * room ? s.slice(0, room) : [...s].slice(0, -1).join('');
      bytes = encodeText(s, name);
    }
    this.set(bytes, at);
    return bytes.length;
  }
  fill(x, start = 0, end = this.length, encoding) {
    if (typeof start === 'string') [start, end, encoding] = [0, this.length, start];
    if (typeof x === 'number' || typeof x === 'boolean') return super.fill(Number(x) & 0xff, start, end);
    const bytes = typeof x === 'string' ? encodeText(x, encoding === undefined ? 'utf8' : needEncoding(encoding)) : viewOf(x);
    for (let i = start; i < end; i++) this[i] = bytes.length ? bytes[(i - start) % bytes.length] : 0;
    return this;
  }
  #find(x, from, encoding, step) {
    const what = typeof x === 'number' ? [x & 0xff] : typeof x === 'string' ? encodeText(x, encodingName(encoding) ?? 'utf8') : x;
    for (let i = from; i >= 0 && i + what.length <= this.length; i += step) {
      let n = 0;
      while (n < what.length && this[i + n] === what[n]) n++;
      if (n === what.length) return i;
    }
    return -1;
  }
  indexOf(x, from = 0, encoding) { return this.#find(x, from < 0 ? Math.max(this.length + from, 0) : from, encoding, 1); }
  lastIndexOf(x, from = this.length, encoding) {
    const size = typeof x === 'number' ? 1 : typeof x === 'string' ? Buffer.byteLength(x, encoding) : x.length;
    return this.#find(x, Math.min(from < 0 ? this.length + from : from, this.length - size), encoding, -1);
  }
  includes(x, from, encoding) { return this.indexOf(x, from, encoding) >= 0; }
}
for (const [name, size] of Object.entries({ UInt8: 1, Int8: 1, UInt16: 2, Int16: 2, UInt32: 4, Int32: 4, Float: 4, Double: 8, BigUInt64: 8, BigInt64: 8 })) {
  const method = { Float: 'Float32', Double: 'Float64', BigUInt64: 'BigUint64' }[name] || name.replace('UInt', 'Uint');
  for (const [end, little] of size === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
    const view = (b) => new DataView(b.buffer, b.byteOffset, b.byteLength);
    const outside = (at) => failure(RangeError, 'ERR_OUT_OF_RANGE', `The value of "offset" is out of range. Received ${at}`);
    const methods = {
      [`read${name}${end}`](at = 0) {
        if (!(at >= 0 && at + size <= this.length)) throw outside(at);
        return view(this)[`get${method}`](at, little);
      },
      [`write${name}${end}`](x, at = 0) {
        if (!(at >= 0 && at + size <= this.length)) throw outside(at);
        view(this)[`set${method}`](at, x, little);
        return at + size;
      },
    };
    for (const k of Object.keys(methods)) {
      Object.defineProperty(Buffer.prototype, k, { value: methods[k], writable: true, configurable: true });
      Object.defineProperty(Buffer.prototype, k.replace('UInt', 'Uint'), { value: methods[k], writable: true, configurable: true });
    }
  }
}
define('Buffer', Buffer);
const bufferOf = (s) => Buffer.from(fromChars(s).buffer);
