// node:fs: what the daemon does with the workspace, one question at a time.
let cwd = '/';
function pathOf(p, name = 'path') {
  if (p instanceof URL) p = fileURLToPath(p);
  else if (p instanceof Uint8Array) p = decodeText(p, 'utf8');
  if (typeof p !== 'string') throw wrongType(name, 'of type string or an instance of Buffer or URL', p);
  if (p.includes('\0')) throw wrongValue(name, p, 'must be a string without null bytes');
  return p;
}
const absolute = (p) => (p === '' || p[0] === '/' ? p : `${cwd}/${p}`);
function fileURLToPath(u) {
  if (typeof u === 'string') u = new URL(u);
  if (!(u instanceof URL)) throw wrongType('path', 'of type string or an instance of URL', u);
  if (u.protocol !== 'file:') throw failure(TypeError, 'ERR_INVALID_URL_SCHEME', 'The URL must be of scheme file');
  if (u.hostname !== '' && u.hostname !== 'localhost') throw failure(TypeError, 'ERR_INVALID_FILE_URL_HOST', 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(u.pathname)) throw failure(TypeError, 'ERR_INVALID_FILE_URL_PATH', 'File URL path must not include encoded / characters');
  return decodeURIComponent(u.pathname);
}
const pathToFileURL = (p) => {
  const s = path.resolve(needPath(p));
  return new URL('file://' + s.replace(/[%\\\n\r\t?#[\]^|~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')) + (p.endsWith('/') && s !== '/' ? '/' : ''));
};

// The system calls that node names in errors, and the numbers that Linux has for them.
const syscalls = { readFile: 'open', writeFile: 'open', readdir: 'scandir', copyFile: 'copyfile', utimes: 'utime', lutimes: 'lutime', realpath: 'lstat', pread: 'read', pwrite: 'write' };
const errnos = { EPERM: 1, ENOENT: 2, EINTR: 4, EIO: 5, EBADF: 9, EACCES: 13, EBUSY: 16, EEXIST: 17, ENOTDIR: 20, EISDIR: 21, EINVAL: 22, EMFILE: 24,
  EFBIG: 27, ENOSPC: 28, EROFS: 30, EMLINK: 31, ENAMETOOLONG: 36, ENOTEMPTY: 39, ELOOP: 40, ENOTSUP: 95, EDQUOT: 122 };
function systemError(code, text, op, p, to) {
  const syscall = syscalls[op] || op;
  const where = p === undefined ? '' : ` '${p}'${to === undefined ? '' : ` -> '${to}'`}`;
  return failure(Error, code, `${code}: ${text}, ${syscall}${where}`, {
    errno: -(errnos[code] ?? 5), syscall, ...(p !== undefined && { path: p }), ...(to !== undefined && { dest: to }) });
}
// ask does something with a path, and possibly another. With raw, the answer is bytes.
function ask(op, p, { to, data = '', bytes = 0, number = 0, flag = 0, raw = 0, offset = 0, link } = {}) {
  p = pathOf(p);
  if (to !== undefined) to = pathOf(to, 'dest');
  const [code, text] = host.call(op, absolute(p), link ?? (to === undefined ? '' : absolute(to)), data, bytes, number, flag, raw, offset);
  if (code) throw systemError(code, text, op, p, to ?? link);
  return text;
}
// content is what is written, with the encoding of a text.
function content(x, encoding) {
  if (typeof x !== 'string') return { data: toChars(viewOf(x)), bytes: 1 };
  const name = encoding === undefined || encoding === null ? 'utf8' : needEncoding(encoding);
  return name === 'utf8' ? { data: x } : { data: toChars(encodeText(x, name)), bytes: 1 };
}
const optionsOf = (o) => (typeof o === 'string' ? { encoding: o } : o === undefined || o === null ? {} : o);
function encodingIn(o) {
  const e = optionsOf(o).encoding;
  if (e === undefined || e === null || e === 'buffer') return undefined;
  if (!encodingName(e)) throw wrongValue('encoding', e, 'is invalid encoding');
  return encodingName(e);
}
const modeOf = (m, usual) => {
  if (m === undefined || m === null) return usual;
  if (typeof m === 'string' && /^[0-7]+$/.test(m)) return parseInt(m, 8);
  if (typeof m !== 'number') throw wrongValue('mode', m, 'must be a 32-bit unsigned integer or an octal string');
  return m;
};

const constants = { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4,
  O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 0o100, O_EXCL: 0o200, O_TRUNC: 0o1000, O_APPEND: 0o2000, O_NOFOLLOW: 0o400000,
  S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFCHR: 0o020000, S_IFBLK: 0o060000, S_IFIFO: 0o010000, S_IFLNK: 0o120000, S_IFSOCK: 0o140000 };
// How a file is opened, as the daemon has it: read, write, append, create, exclusive, truncate, no symlink.
const openFlags = { r: 1, 'r+': 3, w: 42, wx: 58, xw: 58, 'w+': 43, 'wx+': 59, 'xw+': 59, a: 14, ax: 30, xa: 30, 'a+': 15, 'ax+': 31, 'xa+': 31 };
function flagsOf(flag, usual) {
  flag ??= usual;
  if (typeof flag === 'string') {
    const plain = flag.replace('s', '');
    if (!Object.hasOwn(openFlags, plain)) throw wrongValue('flags', flag, 'is invalid');
    return openFlags[plain];
  }
  const has = (bit) => (flag & bit) !== 0;
  return [1, 2, 3, 3][flag & 3] | (has(0o2000) ? 4 : 0) | (has(0o100) ? 8 : 0) | (has(0o200) ? 16 : 0) | (has(0o1000) ? 32 : 0) | (has(0o400000) ? 64 : 0);
}

class Stats {
  isFile() { return this.is(constants.S_IFREG); }
  isDirectory() { return this.is(constants.S_IFDIR); }
  isSymbolicLink() { return this.is(constants.S_IFLNK); }
  isFIFO() { return this.is(constants.S_IFIFO); }
  isSocket() { return this.is(constants.S_IFSOCK); }
  isCharacterDevice() { return this.is(constants.S_IFCHR); }
  isBlockDevice() { return this.is(constants.S_IFBLK); }
}
Object.defineProperty(Stats.prototype, 'is', { value(type) { return (Number(this.mode) & constants.S_IFMT) === type; } });
function statOf(text, o) {
  const s = parseJSON(text), st = new Stats();
  const number = o && o.bigint ? (n) => BigInt(Math.trunc(n)) : (n) => n;
  for (const k of ['dev', 'mode', 'nlink', 'uid', 'gid', 'rdev', 'blksize', 'ino', 'size', 'blocks']) st[k] = number(s[k] ?? 0);
  const all = { atime: s.atime, mtime: s.mtime, ctime: s.ctime, birthtime: s.ctime };
  for (const k of Object.keys(all)) st[`${k}Ms`] = number(all[k]);
  if (o && o.bigint) for (const k of Object.keys(all)) st[`${k}Ns`] = BigInt(Math.round(all[k] * 1000)) * 1000n;
  for (const k of Object.keys(all)) st[k] = new Date(all[k]);
  return st;
}
function statWith(op, p, o) {
  try {
    return statOf(ask(op, p), o);
  } catch (e) {
    if (o && o.throwIfNoEntry === false && (e.code === 'ENOENT' || e.code === 'ENOTDIR')) return undefined;
    throw e;
  }
}
class Dirent {
  #type;
  constructor(name, parent, type) {
    this.name = name;
    this.parentPath = parent;
    this.#type = type;
    Object.defineProperty(this, 'path', { value: parent, enumerable: false });
  }
  isFile() { return this.#type === 'file'; }
  isDirectory() { return this.#type === 'dir'; }
  isSymbolicLink() { return this.#type === 'symlink'; }
  isFIFO() { return this.#type === 'fifo'; }
  isSocket() { return this.#type === 'socket'; }
  isCharacterDevice() { return this.#type === 'char'; }
  isBlockDevice() { return this.#type === 'block'; }
}
// readDir lists a directory, one level after the other when it is recursive.
function readDir(p, o) {
  o = optionsOf(o);
  const top = pathOf(p), found = [], todo = [''];
  for (const below of todo) {
    const dir = below ? `${top.replace(/\/$/, '')}/${below}` : top;
    for (const [name, type] of parseJSON(ask('readdir', dir))) {
      const inside = below ? `${below}/${name}` : name;
      found.push(o.withFileTypes ? new Dirent(name, dir, type) : o.encoding === 'buffer' ? Buffer.from(inside) : inside);
      if (o.recursive && type === 'dir') todo.push(inside);
    }
  }
  return found;
}
const seconds = (t) => {
  const ms = t instanceof Date ? t.getTime() : Number(t) * 1000;
  if (!Number.isFinite(ms)) throw wrongType('time', 'of type Date or a number of seconds', t);
  return ms;
};
const ownerId = (n, name) => {
  if (!Number.isInteger(n) || n < -1 || n > 0xffffffff) throw wrongType(name, 'an integer', n);
  return n;
};
const inEncoding = (s, o) => (optionsOf(o).encoding === 'buffer' ? Buffer.from(s) : s);

// sync are the operations by name; fs and fs.promises are made of them.
const sync = {
  readFile(p, o) {
    const encoding = encodingIn(o);
    if (typeof p === 'number') return readAll(p, encoding);
    const raw = encoding === 'utf8' ? 0 : 1;
    const s = ask('readFile', p, { raw });
    return raw === 0 ? s : encoding === undefined ? bufferOf(s) : decodeText(fromChars(s), encoding);
  },
  writeFile(p, x, o) {
    o = optionsOf(o);
    if (typeof p === 'number') return writeAll(p, x, o.encoding);
    ask('writeFile', p, { ...content(x, o.encoding), number: modeOf(o.mode, 0o666), offset: flagsOf(o.flag, 'w') });
  },
  appendFile(p, x, o) { sync.writeFile(p, x, { flag: 'a', ...optionsOf(o) }); },
  stat: (p, o) => statWith('stat', p, o),
  lstat: (p, o) => statWith('lstat', p, o),
  readdir: (p, o) => readDir(p, o),
  mkdir(p, o) {
    const recursive = typeof o === 'object' && o !== null && Boolean(o.recursive);
    const made = ask('mkdir', p, { number: modeOf(typeof o === 'object' && o !== null ? o.mode : o, 0o777), flag: recursive ? 1 : 0 });
    return recursive && made ? made : undefined;
  },
  mkdtemp(prefix, o) {
    prefix = pathOf(prefix, 'prefix');
    for (;;) {
      const p = prefix + Array.from({ length: 6 }, () => randomLetters[Math.floor(Math.random() * randomLetters.length)]).join('');
      try {
        ask('mkdir', p, { number: 0o700 });
        return inEncoding(p, o);
      } catch (e) {
        if (e.code !== 'EEXIST') throw systemError(e.code, e.message.replace(/^\w+: (.*), mkdir '.*'$/s, '$1'), 'mkdtemp', `${prefix}XXXXXX`);
      }
    }
  },
  rm(p, o) {
    o = optionsOf(o);
    try {
      ask('rm', p, { flag: o.recursive ? 1 : 0 });
    } catch (e) {
      if (o.force && e.code === 'ENOENT') return;
      throw e.code === 'EISDIR' ? failure(Error, 'ERR_FS_EISDIR', `Path is a directory: rm returned EISDIR (is a directory) ${p}`, { errno: 21, syscall: 'rm', path: p }) : e;
    }
  },
  rmdir(p) { ask('rmdir', p); },
  unlink(p) { ask('unlink', p); },
  rename(p, q) { ask('rename', p, { to: q }); },
  copyFile(p, q, mode = 0) { ask('copyFile', p, { to: q, flag: mode & constants.COPYFILE_EXCL ? 1 : 0 }); },
  symlink(target, p) { ask('symlink', p, { link: pathOf(target, 'target') }); },
  link(p, q) { ask('link', p, { to: q }); },
  readlink: (p, o) => inEncoding(ask('readlink', p), o),
  realpath: (p, o) => inEncoding(ask('realpath', p), o),
  chmod(p, mode) { ask('chmod', p, { number: modeOf(mode) }); },
  chown(p, uid, gid) { ask('chown', p, { number: ownerId(uid, 'uid'), offset: ownerId(gid, 'gid') }); },
  lchown(p, uid, gid) { ask('lchown', p, { number: ownerId(uid, 'uid'), offset: ownerId(gid, 'gid') }); },
  truncate(p, n = 0) { ask('truncate', p, { number: Math.max(n, 0) }); },
  utimes(p, a, m) { ask('utimes', p, { data: toJSON([seconds(a), seconds(m)]) }); },
  lutimes(p, a, m) { ask('lutimes', p, { data: toJSON([seconds(a), seconds(m)]) }); },
  access(p, mode = 0) { ask('access', p, { number: mode }); },
};
const randomLetters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
