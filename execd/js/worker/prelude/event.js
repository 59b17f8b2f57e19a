// What process and its streams have of node's EventEmitter.
class Emitter {
  #listeners = new Map();
  #add(event, f, once, first) {
    needFunction(f, 'listener');
    const list = this.#listeners.get(event) || [];
    this.#listeners.set(event, first ? [{ f, once }, ...list] : [...list, { f, once }]);
    return this;
  }
  on(event, f) { return this.#add(event, f, false, false); }
  once(event, f) { return this.#add(event, f, true, false); }
  addListener(event, f) { return this.on(event, f); }
  prependListener(event, f) { return this.#add(event, f, false, true); }
  prependOnceListener(event, f) { return this.#add(event, f, true, true); }
  off(event, f) {
    const list = this.#listeners.get(event) || [];
    const i = list.findLastIndex((l) => l.f === f);
    if (i >= 0) this.#listeners.set(event, list.toSpliced(i, 1));
    return this;
  }
  removeListener(event, f) { return this.off(event, f); }
  removeAllListeners(event) {
    if (event === undefined) this.#listeners.clear(); else this.#listeners.delete(event);
    return this;
  }
  listeners(event) { return (this.#listeners.get(event) || []).map((l) => l.f); }
  listenerCount(event) { return (this.#listeners.get(event) || []).length; }
  eventNames() { return [...this.#listeners.keys()].filter((e) => this.listenerCount(e) > 0); }
  setMaxListeners() { return this; }
  emit(event, ...args) {
    const list = this.#listeners.get(event) || [];
    for (const l of list) {
      if (l.once) this.off(event, l.f);
      l.f.apply(this, args);
    }
    return list.length > 0;
  }
}
