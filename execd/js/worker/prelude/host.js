// What a module finds: the names of node that need no machine. All files here are one function, in the order of prelude.go.
const g = globalThis;
const host = {};
for (const name of ['call', 'write', 'timer', 'ref', 'clear', 'immediate', 'tick', 'stdin', 'stdinNow', 'settle', 'end', 'oom', 'now',
  'bytes', 'base64', 'encoding', 'decode', 'url', 'urlSet']) {
  host[name] = g['__' + name];
  delete g['__' + name];
}
const define = (name, value) => Object.defineProperty(g, name, { value, writable: true, configurable: true });

// A module may put something else in the place of these.
const { parse: parseJSON, stringify: toJSON } = JSON;

// Errors have the codes that node gives them.
const failure = (Type, code, message, more) => Object.assign(new Type(message), { code, ...more });
const kindOf = (x) => (x === null ? 'null' : x === undefined ? 'undefined' : typeof x === 'function' ? `function ${x.name}`
  : typeof x === 'object' ? `an instance of ${(x.constructor && x.constructor.name) || 'Object'}` : `type ${typeof x} (${String(x).slice(0, 25)})`);
const wrongType = (name, wanted, x) => failure(TypeError, 'ERR_INVALID_ARG_TYPE',
  `The "${name}" argument must be ${wanted}. Received ${kindOf(x)}`);
const wrongValue = (name, x, why) => failure(TypeError, 'ERR_INVALID_ARG_VALUE',
  `The argument '${name}' ${why}. Received ${typeof x === 'string' ? `'${x.slice(0, 100)}'` : String(x)}`);
const needFunction = (f, name = 'callback') => { if (typeof f !== 'function') throw wrongType(name, 'of type function', f); };

const exceptionCodes = { IndexSizeError: 1, NotFoundError: 8, NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12,
  InvalidCharacterError: 5, InvalidAccessError: 15, TimeoutError: 23, AbortError: 20, DataCloneError: 25 };
class DOMException extends Error {
  #name;
  constructor(message = '', name = 'Error') {
    super(message);
    this.#name = typeof name === 'object' && name !== null ? String(name.name ?? 'Error') : String(name);
  }
  get name() { return this.#name; }
  get code() { return exceptionCodes[this.#name] ?? 0; }
}
define('DOMException', DOMException);
