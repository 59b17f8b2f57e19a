// console.
let indent = '';
const print = (fd, text) => { host.write(fd, (indent ? text.replace(/^/gm, indent) : text) + '\n', 0); };
const out = (...args) => print(1, format(args));
const err = (...args) => print(2, format(args));
const counts = new Map(), times = new Map();
function elapsed(k, then, ...args) {
  k = String(k);
  if (!times.has(k)) return err(`Warning: No such label '${k}' for console.${then}()`);
  const ms = host.now() - times.get(k);
  return out(`${k}: ${ms < 1000 ? `${ms.toFixed(3)}ms` : `${(ms / 1000).toFixed(3)}s`}`, ...args);
}
// table draws values as rows: what they have in common by name is a column.
function table(x, only) {
  if (typeof x !== 'object' || x === null) return out(x);
  const rows = x instanceof Map ? [...x].map(([k, v], i) => [i, { Key: k, Values: v }]) : x instanceof Set ? [...x].map((v, i) => [i, v]) : Object.entries(x);
  const columns = new Set(only), values = rows.map(([, v]) => v);
  let plain = false;
  for (const v of values) {
    if ((typeof v !== 'object' && typeof v !== 'function') || v === null) plain = true;
    else if (!only) Object.keys(v).forEach((k) => columns.add(k));
  }
  const cell = (v, k) => (typeof v === 'object' && v !== null && Object.hasOwn(v, k) ? show(v[k], 1, [], 2) : '');
  const head = [x instanceof Map || x instanceof Set ? '(iteration index)' : '(index)', ...columns, ...(plain ? ['Values'] : [])];
  const lines = rows.map(([k, v]) => [String(k), ...[...columns].map((c) => cell(v, c)),
    ...(plain ? [typeof v === 'object' && v !== null ? '' : show(v, 1, [])] : [])]);
  const widths = head.map((h, i) => Math.max(...[head, ...lines].map((l) => l[i].length)) + 2);
  const rule = (a, b, c) => a + widths.map((w) => '─'.repeat(w)).join(b) + c;
  const line = (l) => `│${l.map((s, i) => ` ${s}`.padEnd(widths[i])).join('│')}│`;
  print(1, [rule('┌', '┬', '┐'), line(head), rule('├', '┼', '┤'), ...lines.map(line), rule('└', '┴', '┘')].join('\n'));
}
const console = {
  log: out, info: out, debug: out, error: err, warn: err, dirxml: out,
  dir: (x, options) => print(1, inspect(x, options)),
  trace: (...args) => print(2, `Trace${args.length ? ': ' + format(args) : ''}\n${new Error().stack.replace(/^.*\n/, '').trimEnd()}`),
  assert: (ok, ...args) => {
    if (ok) return;
    if (typeof args[0] === 'string') err(`Assertion failed: ${args[0]}`, ...args.slice(1)); else err('Assertion failed', ...args);
  },
  group: (...args) => { if (args.length) out(...args); indent += '  '; },
  groupEnd: () => { indent = indent.slice(2); },
  count: (k = 'default') => { k = String(k); counts.set(k, (counts.get(k) || 0) + 1); out(`${k}: ${counts.get(k)}`); },
  countReset: (k = 'default') => {
    if (!counts.delete(String(k))) err(`Warning: Count for '${k}' does not exist`);
  },
  time: (k = 'default') => {
    k = String(k);
    if (times.has(k)) err(`Warning: Label '${k}' already exists for console.time()`); else times.set(k, host.now());
  },
  timeLog: (k = 'default', ...args) => elapsed(k, 'timeLog', ...args),
  timeEnd: (k = 'default') => { elapsed(k, 'timeEnd'); times.delete(String(k)); },
  timeStamp: () => {}, clear: () => {}, table,
};
console.groupCollapsed = console.group;
define('console', console);
