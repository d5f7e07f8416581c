// The import law of the processes (docs/ARCHITECTURE.md, table of processes): who may import whom.
const not = (name, from, to, comment) => ({ name, severity: 'error', comment, from: { path: from }, to: { path: to } });
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true }, // type-only imports too: a type that two files share belongs to a third
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '^vscode$' } },
    not(
      'vscode-in-host-only',
      '^(extension/(trainer|protocol|environment-host)|webview|envs)',
      '^vscode$',
      'vscode exists in the extension host alone',
    ),
    not(
      'host-owns-no-trainer',
      '^extension/(host|main)',
      '^extension/(trainer|environment-host)',
      'the host talks to a trainer by protocol only',
    ),
    not(
      'native-in-trainer-only',
      '^(extension/(host|main|protocol|environment-host)|webview)', // environments have a process of their own
      'node_modules/onnxruntime',
      'native code never runs in the extension host',
    ),
    not(
      'host-starts-by-the-gate',
      '^extension/(main|host/(?!(node-runtime|start-run|cli-process|inspection-process)\\.ts$))',
      '^(node:)?child_process$',
      'what is started has come through host/cli-launcher.ts, which opens in trusted workspaces alone',
    ),
    not('trainer-knows-no-host', '^extension/trainer', '^(extension/(host|main)|webview)', 'a trainer runs headless'),
    not(
      'trainer-knows-no-environment-process',
      '^extension/trainer',
      '^extension/environment-host',
      'environments run in their own process',
    ),
    not(
      'environment-process-alone',
      '^extension/environment-host',
      '^(extension/(trainer|host|main)|webview)',
      'the environment process knows the environment API and the protocol',
    ),
    not(
      'page-imports',
      '^webview',
      '^(extension/(host|trainer|environment-host|main)|envs)',
      'a page knows protocol types alone',
    ),
    not(
      'protocol-is-leaf',
      '^extension/protocol',
      '^(extension/(host|trainer|environment-host|main)|webview)',
      'types that cross a border depend on nobody',
    ),
    not(
      'environments-are-users',
      '^envs',
      '^(extension|webview)',
      'an environment imports envs/api alone, as a user would',
    ),
    not(
      'algorithms-are-pure',
      '^extension/trainer/(algorithms|diagnostics)',
      '^(extension/trainer/(engine|models|store|rollout)|node:fs|fs$)',
      'pure functions on typed arrays',
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^esbuild\\.mjs$' }, // the build script; the resolver mistakes it for the package of that name
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
