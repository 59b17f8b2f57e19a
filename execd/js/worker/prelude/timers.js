// node:timers. The worker counts the time, and calls fire and immediate.
const maxDelay = 2 ** 31 - 1;
const waiting = new Map(); // by the number that the worker has for it, which an interval changes
const byPublic = new Map();
class Timeout {
  constructor(f, ms, args, every) {
    ms = Math.trunc(Number(ms));
    Object.assign(this, { f, args, every, ms: ms >= 1 && ms <= maxDelay ? ms : 1, wanted: true });
    this.#set();
    this.id = this.now;
    byPublic.set(this.id, this);
    for (const k of Object.keys(this)) Object.defineProperty(this, k, { enumerable: false });
  }
  #set() {
    this.now = host.timer(this.ms);
    waiting.set(this.now, this);
    if (!this.wanted) host.ref(this.now, 0);
  }
  fire() {
    waiting.delete(this.now);
    if (this.every) this.#set(); else this.#forget();
    this.f.apply(this, this.args);
  }
  #forget() {
    byPublic.delete(this.id);
    this.now = undefined;
  }
  close() {
    if (this.now === undefined) return this;
    host.clear(this.now);
    waiting.delete(this.now);
    this.#forget();
    return this;
  }
  refresh() {
    if (this.now === undefined) return this;
    host.clear(this.now);
    waiting.delete(this.now);
    this.#set();
    return this;
  }
  ref() { this.wanted = true; if (this.now !== undefined) host.ref(this.now, 1); return this; }
  unref() { this.wanted = false; if (this.now !== undefined) host.ref(this.now, 0); return this; }
  hasRef() { return this.wanted; }
  [Symbol.toPrimitive]() { return this.id; }
}
function schedule(f, ms, args, every) {
  needFunction(f);
  return new Timeout(f, ms, args, every);
}
function cancel(x) {
  const t = x instanceof Timeout ? x : byPublic.get(Number(x));
  if (t) t.close();
}

// Immediates are called in the order in which they were set, those of one round that were cleared too.
const immediates = [];
let firstImmediate = 0;
class Immediate {
  constructor(f, args) { Object.defineProperties(this, { f: { value: f, writable: true }, args: { value: args } }); }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
}
function nextImmediate() {
  const t = immediates[firstImmediate];
  immediates[firstImmediate++] = undefined;
  if (firstImmediate >= immediates.length) firstImmediate = immediates.length = 0;
  if (t && t.f) t.f.apply(t, t.args);
}
const timers = {
  setTimeout: (f, ms, ...args) => schedule(f, ms, args, false),
  setInterval: (f, ms, ...args) => schedule(f, ms, args, true),
  setImmediate: (f, ...args) => {
    needFunction(f);
    const t = new Immediate(f, args);
    host.immediate();
    immediates.push(t);
    return t;
  },
  clearTimeout: cancel, clearInterval: cancel, clearImmediate: (t) => { if (t instanceof Immediate) t.f = undefined; },
};
for (const k of Object.keys(timers)) define(k, timers[k]);

const timersPromises = {
  setTimeout: (ms, value) => new Promise((resolve) => { timers.setTimeout(resolve, ms, value); }),
  setImmediate: (value) => new Promise((resolve) => { timers.setImmediate(resolve, value); }),
  async *setInterval(ms, value) {
    let due = 0, wake;
    const t = timers.setInterval(() => { due++; if (wake) wake(); }, ms);
    try {
      for (;;) {
        if (due === 0) await new Promise((resolve) => { wake = resolve; });
        for (; due > 0; due--) yield value;
      }
    } finally {
      t.close();
    }
  },
};
timersPromises.scheduler = { wait: (ms) => timersPromises.setTimeout(ms), yield: () => timersPromises.setImmediate() };

// Ticks come before promises once a callback has returned.
let ticks = [];
const nextTick = (f, ...args) => {
  needFunction(f);
  if (ticks.length === 0) host.tick();
  ticks.push({ f, args });
};
function runTicks() {
  while (ticks.length > 0) {
    const list = ticks;
    ticks = [];
    list.forEach(({ f, args }) => guarded(() => f(...args)));
  }
}
define('queueMicrotask', (f) => {
  needFunction(f);
  Promise.resolve().then(() => guarded(f));
});
define('performance', { now: () => host.now(), timeOrigin: Date.now(), toJSON() { return { timeOrigin: this.timeOrigin }; } });
