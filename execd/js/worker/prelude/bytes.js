// Bytes cross to the worker as strings with a character for each.
const chars = String.fromCharCode;
function toChars(bytes) {
  let s = '';
  for (let i = 0; i < bytes.length; i += 8192) s += chars.apply(null, bytes.subarray(i, i + 8192));
  return s;
}
function fromChars(s, bytes = new Uint8Array(s.length)) {
  for (let i = 0; i < s.length; i++) bytes[i] = s.charCodeAt(i);
  return bytes;
}
const isBuffer = (x) => x instanceof ArrayBuffer || (typeof SharedArrayBuffer === 'function' && x instanceof SharedArrayBuffer);
function viewOf(x, name = 'data') {
  if (ArrayBuffer.isView(x)) return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
  if (isBuffer(x)) return new Uint8Array(x);
  throw wrongType(name, 'a string or a buffer', x);
}

// Encodings, by the names that node has for them.
const encodings = { utf8: 'utf8', 'utf-8': 'utf8', latin1: 'latin1', binary: 'latin1', ascii: 'ascii', hex: 'hex', base64: 'base64',
  base64url: 'base64url', ucs2: 'utf16le', 'ucs-2': 'utf16le', utf16le: 'utf16le', 'utf-16le': 'utf16le' };
const encodingName = (e) => (typeof e === 'string' ? encodings[e.toLowerCase()] : undefined);
function needEncoding(e) {
  const name = encodingName(e);
  if (!name) throw failure(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${String(e)}`);
  return name;
}
function encodeText(s, encoding) {
  switch (encoding) {
    case 'utf8': return fromChars(host.bytes(s));
    case 'latin1': case 'ascii': return fromChars(s);
    case 'utf16le': {
      const bytes = new Uint8Array(2 * s.length);
      for (let i = 0; i < s.length; i++) {
        bytes[2 * i] = s.charCodeAt(i);
        bytes[2 * i + 1] = s.charCodeAt(i) >> 8;
      }
      return bytes;
    }
    case 'hex': {
      const pairs = (/^(?:[0-9a-f]{2})*/i.exec(s)[0].match(/../g)) || [];
      return Uint8Array.from(pairs, (p) => parseInt(p, 16));
    }
    default: { // base64, of either kind: as node, to the first that is wrong
      const clean = s.replace(/[-_]/g, (c) => (c === '-' ? '+' : '/')).replace(/[^A-Za-z0-9+/=]/g, '').replace(/=.*$/s, '');
      return fromChars(host.base64(clean.length % 4 === 1 ? clean.slice(0, -1) : clean, 1) ?? '');
    }
  }
}
const hexDigits = '0123456789abcdef';
function decodeText(bytes, encoding) {
  switch (encoding) {
    case 'utf8': return host.decode('utf-8', toChars(bytes), 0, 0)[0];
    case 'latin1': return toChars(bytes);
    case 'ascii': return toChars(bytes.map((b) => b & 0x7f));
    case 'utf16le': return toChars2(bytes);
    case 'hex': {
      let s = '';
      for (const b of bytes) s += hexDigits[b >> 4] + hexDigits[b & 15];
      return s;
    }
    default: {
      const s = host.base64(toChars(bytes), 0);
      return encoding === 'base64' ? s : s.replace(/[+/=]/g, (c) => (c === '+' ? '-' : c === '/' ? '_' : ''));
    }
  }
}
function toChars2(bytes) {
  let s = '';
  for (let i = 0; i + 1 < bytes.length; i += 2) s += chars(bytes[i] | bytes[i + 1] << 8);
  return s;
}
