// What is made of other operations: copies of trees, and directories that are read one by one.
const copyFailure = (code, message, p) => failure(Error, code, `${message}: ${p}`, { path: p });
sync.cp = function cp(from, to, o) {
  o = { force: true, errorOnExist: false, ...optionsOf(o) };
  from = pathOf(from, 'src');
  to = pathOf(to, 'dest');
  const a = path.resolve(from), b = path.resolve(to);
  if (a === b) throw copyFailure('ERR_FS_CP_EINVAL', 'src and dest cannot be the same', to);
  if (sync.lstat(from).isDirectory() && `${b}/`.startsWith(`${a}/`)) throw copyFailure('ERR_FS_CP_EINVAL', `cannot copy ${from} to a subdirectory of self`, to);
  copyTree(from, to, o);
};
function copyTree(from, to, o) {
  if (o.filter && !o.filter(from, to)) return;
  const s = o.dereference ? sync.stat(from) : sync.lstat(from), t = sync.lstat(to, { throwIfNoEntry: false });
  if (s.isDirectory()) return copyDir(from, to, o, s, t);
  if (t && t.isDirectory()) throw copyFailure('ERR_FS_CP_NON_DIR_TO_DIR', 'cannot overwrite directory with non-directory', to);
  if (t && !o.force) {
    if (o.errorOnExist) throw copyFailure('ERR_FS_CP_EEXIST', 'target already exists', to);
    return;
  }
  if (!s.isFile() && !s.isSymbolicLink()) throw copyFailure('ERR_FS_CP_UNKNOWN', 'cannot copy what is no file, directory or symlink', from);
  if (t) sync.unlink(to); else sync.mkdir(path.dirname(to), { recursive: true });
  if (s.isSymbolicLink()) {
    const target = sync.readlink(from);
    sync.symlink(o.verbatimSymlinks ? target : path.resolve(path.dirname(from), target), to);
    return;
  }
  sync.copyFile(from, to);
  if (o.preserveTimestamps) sync.utimes(to, s.atime, s.mtime);
}
function copyDir(from, to, o, s, t) {
  if (!o.recursive) throw copyFailure('ERR_FS_EISDIR', 'Recursive option not enabled, cannot copy a directory', from);
  if (t && !t.isDirectory()) throw copyFailure('ERR_FS_CP_DIR_TO_NON_DIR', 'cannot overwrite non-directory with directory', to);
  if (!t) sync.mkdir(to, { recursive: true });
  for (const name of sync.readdir(from)) copyTree(path.join(from, name), path.join(to, name), o);
  if (!t) sync.chmod(to, s.mode & 0o7777);
  if (o.preserveTimestamps) sync.utimes(to, s.atime, s.mtime);
}

class Dir {
  #left; #closed = false;
  constructor(p, left) {
    this.path = p;
    this.#left = left;
  }
  #open() { if (this.#closed) throw failure(Error, 'ERR_DIR_CLOSED', 'Directory handle was closed'); }
  readSync() {
    this.#open();
    return this.#left.shift() ?? null;
  }
  closeSync() {
    this.#open();
    this.#closed = true;
  }
  async read() { return this.readSync(); }
  async close() { this.closeSync(); }
  async *[Symbol.asyncIterator]() {
    try {
      for (let e; (e = this.readSync()) !== null;) yield e;
    } finally {
      if (!this.#closed) this.closeSync();
    }
  }
}
sync.opendir = (p, o) => new Dir(pathOf(p), readDir(p, { ...optionsOf(o), withFileTypes: true }));

const refused = (what) => () => {
  throw failure(Error, 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM', `${what} is not available here: nothing changes while a module waits for itself; carrel's API has a watch`);
};
