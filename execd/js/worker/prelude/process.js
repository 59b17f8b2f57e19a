// process: its events, its streams, and its end.
class Stdin extends Emitter {
  fd = 0;
  isTTY = false;
  #decoder; #readers = []; #flowing = false; #ended = false;
  setEncoding(e = 'utf8') {
    const name = needEncoding(e);
    this.#decoder = new TextDecoder(name === 'utf8' ? 'utf-8' : name === 'utf16le' ? 'utf-16le' : 'latin1');
    return this;
  }
  on(event, f) {
    super.on(event, f);
    if (event === 'data' || event === 'readable') this.resume();
    return this;
  }
  once(event, f) {
    super.once(event, f);
    if (event === 'data') this.resume();
    return this;
  }
  addListener(event, f) { return this.on(event, f); }
  resume() {
    this.#flowing = true;
    if (this.#ended) nextTick(() => this.#end()); else host.stdin();
    return this;
  }
  pause() { this.#flowing = false; return this; }
  unref() { return this; }
  ref() { return this; }
  // came is called with more of it, or with nothing at its end.
  came(s) {
    if (s === '') return this.#end();
    const chunk = this.#decoder ? this.#decoder.decode(fromChars(s), { stream: true }) : bufferOf(s);
    const reader = this.#readers.shift();
    if (reader) reader({ done: false, value: chunk }); else this.emit('data', chunk);
    if (this.#readers.length || this.#flowing) host.stdin();
  }
  #end() {
    const told = this.#ended;
    this.#ended = inputEnded = true;
    for (const reader of this.#readers.splice(0)) reader({ done: true, value: undefined });
    if (!told) { this.emit('end'); this.emit('close'); }
  }
  async *[Symbol.asyncIterator]() {
    for (;;) {
      const { done, value } = await new Promise((resolve) => {
        if (this.#ended || inputEnded) return resolve({ done: true });
        this.#readers.push(resolve);
        host.stdin();
      });
      if (done) return;
      yield value;
    }
  }
}
const stdin = new Stdin();
class Output extends Emitter {
  isTTY = false;
  writable = true;
  constructor(fd) { super(); this.fd = fd; }
  write(x, ...rest) {
    const { data, bytes = 0 } = content(x, rest.find((e) => typeof e === 'string'));
    host.write(this.fd, data, bytes);
    const done = rest.find((f) => typeof f === 'function');
    if (done) nextTick(done);
    return true;
  }
  end(x, ...rest) {
    if (typeof x === 'function') rest = [x], x = undefined;
    if (x !== undefined && x !== null) this.write(x, ...rest); else rest.filter((f) => typeof f === 'function').forEach((f) => nextTick(f));
    return this;
  }
}
const since = (then) => {
  const ns = BigInt(Math.round(host.now() * 1e6)), all = ns - (then ? BigInt(then[0]) * 1_000_000_000n + BigInt(then[1]) : 0n);
  return [Number(all / 1_000_000_000n), Number(all % 1_000_000_000n)];
};
const process = Object.assign(new Emitter(), {
  env: {}, argv: [], argv0: 'carrel', execArgv: [], execPath: 'carrel', pid: 1, ppid: 0, platform: 'linux', arch: 'js', version: 'v22.0.0',
  versions: { quickjs: '2026-06-04' }, title: 'carrel', exitCode: undefined,
  cwd: () => cwd,
  chdir: (p) => {
    const to = path.resolve(needPath(p, 'directory'));
    if (!sync.stat(to).isDirectory()) throw systemError('ENOTDIR', 'not a directory', 'chdir', p);
    cwd = to;
  },
  exit: (code) => exit(code ?? process.exitCode),
  nextTick, umask: () => 0o22,
  hrtime: Object.assign(since, { bigint: () => BigInt(Math.round(host.now() * 1e6)) }),
  uptime: () => host.now() / 1000,
  stdin, stdout: new Output(1), stderr: new Output(2),
  emitWarning: (w, o) => err(`(carrel) ${w instanceof Error ? `${w.name}: ${w.message}` : `${(typeof o === 'string' ? o : o?.type) ?? 'Warning'}: ${w}`}`),
});
define('process', process);

// statusOf is an exit status, of what a module says it is.
const statusOf = (code) => {
  const n = Number(code ?? 0);
  return Number.isFinite(n) ? Math.trunc(n) & 0xff : 1;
};
let exiting = false;
// leaving tells the module that it ends, and gives the status then.
function leaving(code) {
  if (exiting) return statusOf(code);
  exiting = true;
  process.exitCode = code;
  try {
    process.emit('exit', statusOf(code));
  } catch (e) {
    complain(e, '');
    process.exitCode = 1;
  }
  return statusOf(process.exitCode);
}
const exit = (code) => host.end(leaving(code));

function complain(e, where) {
  let text;
  try { text = show(e, 0, []); } catch { text = 'an error that cannot be shown'; }
  host.write(2, `Uncaught ${where}${text.trimEnd()}\n`, 0);
}
// uncaught ends the module because of what it threw, unless it has a listener for that.
function uncaught(e, origin, ...rest) {
  let reason = rest.length ? rest[0] : e;
  if (e instanceof Error && e.name === 'InternalError' && e.message === 'out of memory') host.oom();
  try {
    if (!exiting && process.emit('uncaughtException', e, origin)) return;
  } catch (again) {
    reason = again;
  }
  complain(reason, origin === 'unhandledRejection' ? '(in promise) ' : '');
  exit(1);
}
function guarded(f) {
  try { f(); } catch (e) { uncaught(e, 'uncaughtException'); }
}

// Rejections. The worker notes each promise that was rejected while nobody took that, and each that somebody has come for
// since, with why, and which it was; and what modules have thrown, for each of which there is one promise too many. Those
// that are left at the end of a turn are what a module should have heard of.
const noted = [];
const unhandled = new Map(), reported = new WeakSet();
function rejections(lost) {
  if (lost) host.oom();
  const late = [], thrown = [];
  for (let i = 0; i < noted.length; i += 3) {
    const promise = noted[i];
    if (noted[i + 2] === 0) unhandled.set(promise, noted[i + 1]);
    else if (noted[i + 2] === 2) thrown.push(noted[i + 1]);
    else if (!unhandled.delete(promise) && reported.delete(promise)) late.push(promise);
  }
  noted.length = 0;
  for (const e of thrown) {
    for (const [promise, reason] of unhandled) {
      if (!Object.is(reason, e)) continue;
      unhandled.delete(promise);
      break;
    }
  }
  for (const promise of late) guarded(() => process.emit('rejectionHandled', promise));
  for (const [promise, reason] of unhandled) {
    unhandled.delete(promise);
    reported.add(promise);
    rejected(promise, reason);
  }
}
function rejected(promise, reason) {
  let heard = false;
  guarded(() => { heard = true; heard = process.emit('unhandledRejection', reason, promise); });
  if (heard) return;
  const e = reason instanceof Error ? reason : failure(Error, 'ERR_UNHANDLED_REJECTION',
    'This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was ' +
    `not handled with .catch(). The promise rejected with the reason "${typeof reason === 'symbol' ? String(reason) : show(reason, 0, [])}".`);
  uncaught(e, 'unhandledRejection', reason);
}
