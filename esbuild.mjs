// Builds all bundles into dist/: one per process (extension host, trainer, engine worker, environment process and its
// worker, CLI) and one per webview page. Native modules are not bundled: Node resolves them from node_modules.
import { build, context } from 'esbuild';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { argv, stdout } from 'node:process';

const dev = argv.includes('--watch');
const common = { bundle: true, sourcemap: true, logLevel: 'warning', legalComments: 'none' };
/** Bundles only the English messages of zod: the other languages are unused and would add 300 kB to each process. */
const englishMessages = {
  name: 'english-messages',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    })),
};
/**
 * Number of bundle builds in progress. The start of the first and the end of the last are printed for the problem
 * matcher of `.vscode/tasks.json`.
 */
let building = 0;
const watchMarks = {
  name: 'watch-marks',
  setup: ({ onStart, onEnd }) => {
    onStart(() => {
      if (building++ === 0) stdout.write('[watch] build started\n');
    });
    onEnd(() => {
      if (--building === 0) stdout.write('[watch] build finished\n');
    });
  },
};
const node = {
  ...common,
  minify: !dev,
  keepNames: true, // readable stack traces in logs
  plugins: [englishMessages],
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  loader: { '.proto': 'text', '.wasm': 'binary' },
  supported: { 'dynamic-import': false }, // `import()` of a package becomes a deferred `require`
  external: ['vscode', 'onnxruntime-node', '@duckdb/node-api', 'esbuild', '@napi-rs/canvas'],
  define: { 'import.meta.url': '__importMetaUrl' },
  banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
};

const present = entries => Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file)));
const processes = {
  host: 'extension/main.ts',
  'episode-worker': 'extension/vscode/run-files/episodes/episode-worker.ts',
  trainer: 'extension/trainer/main.ts',
  'engine-worker': 'extension/models/engine-worker.ts',
  cli: 'extension/cli/main.ts',
  'environment-host': 'extension/environments/runtime/main.ts',
};
/** Bundles that expose all of zod to environments and plug-ins, and therefore keep all its languages. */
const environments = {
  'environment-worker': 'extension/environments/runtime/worker/worker.ts',
  'environment-contract': 'extension/environments/runtime/contract/main.ts',
  'plugin-host': 'extension/plugins/runtime/main.ts',
};
/** Entries that are not part of the extension package. */
const tools = [
  'make-tiny-model',
  'make-small-model',
  'make-tiny-vision-model',
  'bench',
  'torture',
  'fuzz-process',
  'fuzz-echo-process',
  'model-folders-process',
  'curves',
  'onsets',
  'regimes',
  'text-proxy',
];
if (argv.includes('--tiny-model')) processes['make-tiny-model'] = 'extension/trainer/sft/make-tiny-model.ts';
if (argv.includes('--small-model')) processes['make-small-model'] = 'extension/trainer/sft/make-small-model.ts';
if (argv.includes('--tiny-vision-model'))
  processes['make-tiny-vision-model'] = 'extension/trainer/sft/make-tiny-vision-model.ts';
if (argv.includes('--bench')) processes.bench = 'test/bench/main.ts';
if (argv.includes('--torture'))
  Object.assign(processes, {
    torture: 'test/torture/main.ts',
    'fuzz-process': 'test/torture/fuzz-process.ts',
    'model-folders-process': 'test/torture/model-folders-process.ts',
    'fuzz-echo-process': 'test/torture/fuzz-echo-process.ts',
  });
if (argv.includes('--curves'))
  Object.assign(processes, {
    curves: 'test/experiments/curves.ts',
    onsets: 'test/experiments/onsets.ts',
    regimes: 'test/experiments/regimes.ts',
    'text-proxy': 'test/experiments/text-proxy.ts',
  });

const pages = Object.fromEntries(
  readdirSync('webview', { withFileTypes: true })
    .filter(entry => entry.isDirectory() && existsSync(`webview/${entry.name}/main.ts`))
    .map(entry => [`pages/${entry.name}`, `webview/${entry.name}/main.ts`]),
);
const jobs = [
  { ...node, entryPoints: present(processes) },
  { ...node, plugins: [], entryPoints: present(environments) },
  // Most of this bundle is the TypeScript compiler.
  {
    ...node,
    keepNames: false,
    entryPoints: { 'type-check-worker': 'extension/environments/runtime/build/type-check-worker.ts' },
  },
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

if (dev) {
  const marked = jobs.map(job => context({ ...job, plugins: [...(job.plugins ?? []), watchMarks] }));
  for (const watched of await Promise.all(marked)) await watched.watch();
} else {
  const built = await Promise.all(jobs.map(job => build({ ...job, metafile: true })));
  writeFileSync('dist/bundled-packages.json', `${JSON.stringify(packagesIn(built), null, 2)}\n`);
}

/**
 * Folders of the packages whose code is in the shipped bundles; third-party.mjs lists these packages in the notices.
 */
function packagesIn(built) {
  const outputs = built.flatMap(({ metafile }) => Object.entries(metafile.outputs));
  const shipped = outputs.filter(([file]) => !tools.some(tool => file.startsWith(`dist/${tool}.`)));
  const files = shipped.flatMap(([, { inputs }]) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
  const folders = files.flatMap(
    file => /\bnode_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
  return [...new Set(folders)].sort();
}
