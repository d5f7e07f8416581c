// The import rules of the layers (docs/ARCHITECTURE.md). The project references in each folder's tsconfig.json define
// which layers a layer may import; the other rules cannot be expressed by references.
import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';

const not = (name, from, to, comment) => ({ name, severity: 'error', comment, from: { path: from }, to: { path: to } });

/** For each layer, the layers in its tsconfig.json. TypeScript itself would also accept indirect references. */
const below = Object.fromEntries(
  readdirSync('extension', { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => {
      const { references = [] } = JSON.parse(readFileSync(`extension/${name}/tsconfig.json`, 'utf8'));
      return [name, references.map(({ path }) => basename(path))];
    }),
);

export default {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true }, // includes type-only imports: move a type shared by two files into a third
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '^vscode$' } },
    ...Object.entries(below).map(([layer, allowed]) => ({
      name: `${layer}-imports-what-lies-below`,
      severity: 'error',
      comment: 'a layer imports the layers below it',
      from: { path: `^extension/${layer}/` },
      to: { path: '^extension/', pathNot: `^extension/(${[layer, ...allowed].join('|')})/` },
    })),
    not(
      'vscode-in-the-extension-host-only',
      '^(extension/(?!(main\\.ts$|vscode/))|webview|envs)',
      '^vscode$',
      'the module `vscode` exists in the extension host only',
    ),
    not(
      'native-code-in-trainers-only',
      '^(extension/(main|vscode|common|run-data|protocol|node|environments|plugins)|webview)',
      'node_modules/(onnxruntime|@duckdb)',
      'native code never runs in the extension host',
    ),
    not(
      'vscode-starts-processes-in-one-place',
      '^extension/(main|vscode/(?!processes/(node-runtime|cli-command|environment-cli|stdio-process)\\.ts$))',
      '^(node:)?child_process$',
      'processes are started through vscode/processes/cli-launcher.ts, which requires a trusted workspace',
    ),
    not(
      'environment-code-stands-alone',
      '^extension/environments/runtime',
      '^extension/(environments/(client|server|tools)|hub)/',
      'the environment process imports only the environment API and the protocol',
    ),
    not(
      'environments-run-in-their-own-process',
      '^extension/(?!environments/runtime/|plugins/runtime/)',
      '^extension/environments/runtime/',
      'environment code is called by messages only',
    ),
    not(
      'plug-ins-run-in-their-own-process',
      '^extension/(?!plugins/runtime/)',
      '^extension/plugins/runtime/',
      'the code of plug-ins is called by messages only',
    ),
    not(
      'pages-know-messages',
      '^webview',
      '^(extension/(?!(common|run-data|protocol)/)|envs)',
      'a page imports only messages, run data and pure helpers',
    ),
    not(
      'environments-are-users',
      '^envs',
      '^(extension|webview)',
      'an environment imports only envs/api, as user code does',
    ),
    not(
      'pure-functions',
      '^extension/(common|run-data|protocol|algorithms|trainer/diagnostics)/',
      '^(extension/(trainer/(?!diagnostics/)|engine|models|node)|node:fs|fs$)',
      'these layers contain pure functions only',
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(esbuild\\.mjs$|\\.tsbuild)' }, // the build script, which the resolver confuses with the package esbuild
    tsConfig: { fileName: 'tsconfig.base.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
