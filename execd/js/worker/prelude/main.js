// The main module, and what the worker calls.
function fillMeta(meta, name, file) {
  if (name.startsWith('node:')) return;
  meta.dirname = path.dirname(file);
  meta.filename = file;
  meta.url = pathToFileURL(file).href + name.slice(file.length);
  meta.resolve = (specifier) => {
    specifier = String(specifier);
    if (Object.hasOwn(builtins, specifier.replace(/^node:/, ''))) return `node:${specifier.replace(/^node:/, '')}`;
    if (/^(\.{0,2}\/|\.{1,2}$)/.test(specifier) || URL.canParse(specifier)) return new URL(specifier, meta.url).href;
    throw failure(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find package '${specifier}' imported from ${file}`);
  };
}
async function runMain(main, input) {
  const m = await import(pathToFileURL(main).href);
  const value = typeof m.default === 'function' ? await m.default(input) : await m.default;
  return value === undefined ? undefined : toJSON(value);
}
function start(text) {
  const { main, args, env, cwd: dir, input } = parseJSON(text);
  cwd = dir;
  performance.timeOrigin = Date.now();
  for (const e of env || []) process.env[e.slice(0, e.indexOf('='))] = e.slice(e.indexOf('=') + 1);
  process.argv.push('carrel', main, ...(args || []));
  define('input', input);
  runMain(main, input).then((json) => (json === undefined ? host.settle() : host.settle(json)), (e) => {
    host.settle();
    uncaught(e, 'uncaughtException');
  });
}
const leave = (name, value) => Object.defineProperty(g, name, { value, configurable: true });
leave('__exports', () => toJSON(Object.fromEntries(Object.entries(builtins).map(([k, v]) => [k, Object.keys(v)]))));
leave('__meta', fillMeta);
leave('__rejections', noted);
leave('__entries', {
  start,
  fire: (n) => { const t = waiting.get(n); if (t) guarded(() => t.fire()); },
  immediate: () => guarded(nextImmediate),
  input: (s) => guarded(() => stdin.came(s)),
  ticks: runTicks,
  rejections,
  idle: () => guarded(() => { if (!exiting) process.emit('beforeExit', statusOf(process.exitCode)); }),
  exit: (failed) => leaving(failed ? 1 : process.exitCode),
});
