// Open files. The daemon has them; 0 to 2 are the standard streams.
function askOpen(op, fd, o = {}) {
  if (!Number.isInteger(fd) || fd < 0 || fd > 0x7fffffff) throw wrongType('fd', 'a file descriptor', fd);
  const { data = '', bytes = 0, flag = 0, raw = 0, offset = 0, size = 0 } = o;
  const [code, text] = host.call(op, '', '', data, bytes, fd, flag, raw, offset, size);
  if (code) throw systemError(code, text, op);
  return text;
}
const readChunk = 1 << 20;
let inputLeft = new Uint8Array(0);
// readSome reads at most so much at a position, or where the file is when that is null.
function readSome(fd, size, position) {
  if (fd !== 0) {
    const at = position === null || position === undefined ? -1 : Number(position);
    return fromChars(askOpen('pread', fd, { raw: 1, offset: at, size: Math.min(size, readChunk) }));
  }
  if (inputLeft.length === 0 && !inputEnded) {
    const s = host.stdinNow();
    if (s === '') inputEnded = true;
    inputLeft = fromChars(s);
  }
  const some = inputLeft.subarray(0, size);
  inputLeft = inputLeft.subarray(some.length);
  return some;
}
let inputEnded = false;
function readAll(fd, encoding, position = null) {
  const parts = [];
  for (;;) {
    const part = readSome(fd, readChunk, position);
    if (part.length === 0) break;
    parts.push(part);
    if (position !== null) position += part.length;
  }
  const all = Buffer.concat(parts);
  return encoding === undefined ? all : all.toString(encoding);
}
// writeSome writes all of some bytes, in parts that the daemon takes.
function writeSome(fd, bytes, position) {
  if (fd === 1 || fd === 2) {
    host.write(fd, toChars(bytes), 1);
    return bytes.length;
  }
  for (let i = 0; i < bytes.length; i += readChunk) {
    const at = position === null || position === undefined ? -1 : Number(position) + i;
    askOpen('pwrite', fd, { data: toChars(bytes.subarray(i, i + readChunk)), bytes: 1, offset: at });
  }
  return bytes.length;
}
const bytesIn = (x, encoding) => (typeof x === 'string' ? encodeText(x, encoding === undefined || encoding === null ? 'utf8' : needEncoding(encoding)) : viewOf(x));
function writeAll(fd, x, encoding) { writeSome(fd, bytesIn(x, encoding), null); }

const open = (p, flags, mode) => Number(ask('open', p, { number: modeOf(mode, 0o666), offset: flagsOf(flags, 'r') }));
// rangeOf takes the arguments of read and write apart: (buffer, offset, length, position) or (buffer, {offset, length, position}).
function rangeOf(buffer, offset, length, position) {
  if (typeof offset === 'object' && offset !== null) ({ offset, length, position } = offset);
  const view = viewOf(buffer, 'buffer');
  offset ??= 0;
  length ??= view.length - offset;
  if (!(offset >= 0 && length >= 0 && offset + length <= view.length)) throw failure(RangeError, 'ERR_OUT_OF_RANGE', `The value of "length" is out of range. Received ${length}`);
  return { view: view.subarray(offset, offset + length), position: position === undefined || (typeof position === 'number' && position < 0) ? null : position };
}
const handles = {
  open,
  close(fd) { if (fd > 2) askOpen('close', fd); },
  read(fd, buffer, offset, length, position) {
    const r = rangeOf(buffer, offset, length, position), some = r.view.length ? readSome(fd, r.view.length, r.position) : r.view;
    r.view.set(some);
    return some.length;
  },
  write(fd, x, offset, length, position) {
    if (typeof x === 'string') return writeSome(fd, bytesIn(x, length), offset);
    const r = rangeOf(x, offset, length, position);
    return writeSome(fd, r.view, r.position);
  },
  fstat: (fd, o) => statOf(askOpen('fstat', fd), o),
  ftruncate(fd, n = 0) { askOpen('ftruncate', fd, { offset: Math.max(n, 0) }); },
  fsync(fd) { askOpen('fsync', fd); },
  fdatasync(fd) { askOpen('fsync', fd); },
};
class FileHandle {
  #fd;
  constructor(fd) { this.#fd = fd; }
  get fd() { return this.#fd; }
  async read(buffer, ...range) {
    if (!ArrayBuffer.isView(buffer)) {
      const o = buffer ?? {};
      range = [o.offset, o.length, o.position];
      buffer = o.buffer ?? Buffer.alloc(16 << 10);
    }
    return { bytesRead: handles.read(this.#fd, buffer, ...range), buffer };
  }
  async write(x, ...range) { return { bytesWritten: handles.write(this.#fd, x, ...range), buffer: x }; }
  async readFile(o) { return readAll(this.#fd, encodingIn(o)); }
  async writeFile(x, o) { writeAll(this.#fd, x, optionsOf(o).encoding); }
  async appendFile(x, o) { writeAll(this.#fd, x, optionsOf(o).encoding); }
  async stat(o) { return handles.fstat(this.#fd, o); }
  async truncate(n) { handles.ftruncate(this.#fd, n); }
  async sync() { handles.fsync(this.#fd); }
  async datasync() { handles.fsync(this.#fd); }
  async *readLines(o) {
    const decoder = new TextDecoder();
    let left = '';
    for (let end = false; !end;) {
      const part = readSome(this.#fd, 64 << 10, null);
      end = part.length === 0;
      const lines = (left + decoder.decode(part, { stream: !end })).split(/\r?\n/);
      left = lines.pop();
      yield* lines;
    }
    if (left !== '') yield left;
    if (optionsOf(o).autoClose !== false) await this.close();
  }
  async close() {
    if (this.#fd < 0) return;
    const fd = this.#fd;
    this.#fd = -1;
    handles.close(fd);
  }
  async [Symbol.asyncDispose ?? Symbol('asyncDispose')]() { await this.close(); }
}

// fs and fs.promises, of the operations and of callbacks.
const promises = { constants, open: async (...args) => new FileHandle(open(...args)), watch: async (...args) => refused('watch')(...args) };
const fs = { promises, constants, Stats, Dirent, Dir, watch: refused('watch'), watchFile: refused('watchFile'), unwatchFile() {},
  existsSync(p) { try { ask('stat', p); return true; } catch { return false; } } };
const withCallback = (f) => (...args) => {
  const done = args.pop();
  needFunction(done, 'cb');
  const settle = (...result) => queueMicrotask(() => done(...result));
  f(...args).then((v) => settle(null, v), settle);
};
async function gather(x) {
  if (typeof x !== 'object' || x === null || ArrayBuffer.isView(x) || isBuffer(x)) return x;
  if (!x[Symbol.asyncIterator] && !x[Symbol.iterator]) return x;
  const parts = [];
  for await (const part of x) parts.push(bytesIn(part));
  return Buffer.concat(parts);
}
for (const name of Object.keys(sync)) {
  fs[name + 'Sync'] = (...args) => sync[name](...args);
  promises[name] = async (p, ...args) => {
    if (p instanceof FileHandle) {
      if (!['readFile', 'writeFile', 'appendFile'].includes(name)) throw wrongType('path', 'of type string', p);
      p = p.fd;
    }
    if (name === 'writeFile' || name === 'appendFile') args[0] = await gather(args[0]);
    return sync[name](p, ...args);
  };
  fs[name] = withCallback(promises[name]);
}
for (const name of Object.keys(handles)) {
  fs[name + 'Sync'] = (...args) => handles[name](...args);
  fs[name] = withCallback(async (...args) => handles[name](...args));
}
fs.realpathSync.native = fs.realpathSync;
fs.realpath.native = fs.realpath;
fs.exists = (p, done) => { needFunction(done, 'cb'); queueMicrotask(() => done(fs.existsSync(p))); };
