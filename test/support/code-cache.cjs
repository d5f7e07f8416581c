// Preloaded into the processes that tests start (NODE_OPTIONS, set by build-bundles.ts). Keeps V8's compiled code of the
// bundles, because compiling them takes a sixth of a short process's time. The first process of a bundle stores the code
// when it ends, or soon after its start, because it may be killed. The file is named after the bundle's size and time,
// because V8 itself compares only the length of the source. The processes run the same code as without the cache.
const { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { basename, dirname, join } = require('node:path');
const vm = require('node:vm');
const { isMainThread, threadId } = require('node:worker_threads');

const root = join(__dirname, '..', '..');
const folder = join(root, 'node_modules', '.cache', 'ragen-code');
const bundles = join(root, 'dist');

const compile = Module.prototype._compile;
Module.prototype._compile = function (content, filename, ...rest) {
  if (dirname(filename) !== bundles) return compile.call(this, content, filename, ...rest);
  const { size, mtimeMs } = statSync(filename);
  const file = join(folder, `${basename(filename)}-${size}-${mtimeMs}`);
  const cachedData = existsSync(file) ? readFileSync(file) : undefined;
  const script = new vm.Script(Module.wrap(content.replace(/^#!/, '//')), { filename, cachedData });
  const store = () => {
    if (existsSync(file)) return;
    mkdirSync(folder, { recursive: true });
    const temporary = `${file}.${process.pid}.${threadId}`;
    writeFileSync(temporary, script.createCachedData());
    renameSync(temporary, file);
  };
  if (!cachedData) {
    process.on('exit', store);
    setTimeout(store, isMainThread ? 1000 : 300).unref();
  }
  const load = Module.createRequire(filename);
  load.main = process.mainModule;
  return script.runInThisContext().call(this.exports, this.exports, load, this, filename, bundles);
};
