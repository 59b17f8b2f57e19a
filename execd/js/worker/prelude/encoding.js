// TextEncoder, TextDecoder, atob and btoa.
define('TextEncoder', class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(s = '') { return encodeText(String(s), 'utf8'); }
  encodeInto(s, into) {
    let read = 0, written = 0;
    for (const c of String(s)) {
      const bytes = encodeText(c, 'utf8');
      if (written + bytes.length > into.length) break;
      into.set(bytes, written);
      read += c.length;
      written += bytes.length;
    }
    return { read, written };
  }
});
class TextDecoder {
  #name; #fatal; #bom; #rest = ''; #begun = false;
  constructor(label = 'utf-8', options) {
    this.#name = host.encoding(String(label));
    if (!this.#name) throw failure(RangeError, 'ERR_ENCODING_NOT_SUPPORTED', `The "${label}" encoding is not supported`);
    this.#fatal = Boolean(options?.fatal);
    this.#bom = Boolean(options?.ignoreBOM);
  }
  get encoding() { return this.#name; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#bom; }
  decode(x, options) {
    const more = Boolean(options?.stream);
    const bytes = this.#rest + (x === undefined ? '' : toChars(viewOf(x, 'list')));
    this.#rest = '';
    const result = host.decode(this.#name, bytes, more ? 1 : 0, this.#fatal ? 1 : 0);
    if (!result) {
      this.#begun = false;
      throw failure(TypeError, 'ERR_ENCODING_INVALID_ENCODED_DATA', `The encoded data was not valid for encoding ${this.#name}`);
    }
    let s = result[0];
    if (!this.#begun && s !== '') {
      if (!this.#bom && s.charCodeAt(0) === 0xFEFF && this.#name.startsWith('utf-')) s = s.slice(1);
      this.#begun = true;
    }
    if (more) this.#rest = result[1]; else this.#begun = false;
    return s;
  }
}
define('TextDecoder', TextDecoder);
const notBase64 = () => new DOMException('The string to be decoded is not correctly encoded.', 'InvalidCharacterError');
define('btoa', (s) => {
  s = String(s);
  if (/[^\0-\xff]/.test(s)) throw new DOMException('Invalid character', 'InvalidCharacterError');
  return host.base64(s, 0);
});
define('atob', (s) => {
  const text = String(s).replace(/[\t\n\f\r ]/g, '');
  const bytes = /^[A-Za-z0-9+/]*=?=?$/.test(text) ? host.base64(text, 1) : null;
  if (bytes === null) throw notBase64();
  return bytes;
});
