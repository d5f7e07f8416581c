// Builds every bundle into dist/. One entry a process: extension host, trainer, engine worker, environment process and its
// worker, terminal, and one a page. Native modules stay outside the bundles and are resolved from node_modules.
import { build, context } from 'esbuild';
import { existsSync, readdirSync } from 'node:fs';
import { argv } from 'node:process';

const dev = argv.includes('--watch');
const common = { bundle: true, sourcemap: true, logLevel: 'warning', minify: false, legalComments: 'none' };
const node = {
  ...common,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  loader: { '.proto': 'text' },
  external: ['vscode', 'onnxruntime-node', 'esbuild', '@napi-rs/canvas'],
  define: { 'import.meta.url': '__importMetaUrl' },
  banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
};

const present = entries => Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file)));
const processes = {
  host: 'extension/main.ts',
  trainer: 'extension/trainer/main.ts',
  'engine-worker': 'extension/trainer/engine/worker.ts',
  cli: 'extension/trainer/cli.ts',
  'environment-host': 'extension/environment-host/main.ts',
  'environment-worker': 'extension/environment-host/worker.ts',
};
if (argv.includes('--tiny-model')) processes['make-tiny-model'] = 'extension/trainer/warm-start/make-tiny-model.ts';
if (argv.includes('--bench')) processes.bench = 'test/bench/main.ts';
if (argv.includes('--curves')) processes.curves = 'test/experiments/curves.ts';

const pages = Object.fromEntries(
  readdirSync('webview', { withFileTypes: true })
    .filter(entry => entry.isDirectory() && existsSync(`webview/${entry.name}/main.ts`))
    .map(entry => [`pages/${entry.name}`, `webview/${entry.name}/main.ts`]),
);
const jobs = [
  { ...node, entryPoints: present(processes) },
  {
    ...common,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    outdir: 'dist',
    minify: !dev,
    entryPoints: pages,
  },
].filter(job => Object.keys(job.entryPoints).length > 0);

if (dev) for (const job of jobs) await (await context(job)).watch();
else await Promise.all(jobs.map(job => build(job)));
