// Lint rules. Type errors are left to the compiler, formatting to prettier, and import boundaries to
// dependency-cruiser.
import tseslint from 'typescript-eslint';
import prettier from 'eslint-config-prettier';

const barrels = { selector: 'ExportAllDeclaration', message: 'No barrels: import from the file that owns the thing.' };
/** Spread arguments use stack: a call with about 120,000 of them throws "Maximum call stack size exceeded". */
const spreads = {
  selector:
    'CallExpression[callee.property.name=/^(push|unshift|splice|concat|max|min|hypot|fromCharCode|fromCodePoint|of|assign|apply)$/] > SpreadElement.arguments',
  message:
    'The length of data is not bounded by the stack: use appendAll, maximum, minimum or a loop (protocol/lists.ts).',
};

/** Checks that pass or fail by chance, or cannot fail, are kept out of the tests. */
const testTiming = [
  {
    selector: 'ExpressionStatement > AwaitExpression > CallExpression[callee.name="sleep"]',
    message:
      'No fixed sleeps: await the event, poll the state (expect.poll, vi.waitFor, until), or use vi.useFakeTimers.',
  },
  {
    selector:
      'NewExpression[callee.name="Promise"] > ArrowFunctionExpression > CallExpression[callee.name="setTimeout"]',
    message:
      'No fixed sleeps: await the event, poll the state (expect.poll, vi.waitFor, until), or use vi.useFakeTimers.',
  },
  {
    selector: 'CallExpression[callee.property.name="waitForTimeout"]',
    message: 'No fixed sleeps: wait for a locator or poll the state of the page (until).',
  },
];
const vagueChecks = ['toBeTruthy', 'toBeFalsy', 'toBeDefined'].map(name => ({
  selector: `CallExpression[callee.property.name="${name}"]`,
  message: `${name} accepts almost anything: compare with the expected value (toBe, toEqual, toMatch, toBeUndefined).`,
}));

export default tseslint.config(
  { ignores: ['node_modules/', 'dist/', '**/.ragen/', '.e2e/', 'test/golden/', 'test-results/'] },
  ...tseslint.configs.recommended,
  prettier,
  {
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-console': 'error',
      eqeqeq: ['error', 'always'],
      'prefer-const': 'error',
      'no-restricted-syntax': ['error', barrels],
    },
  },
  {
    files: ['extension/**/*.ts', 'webview/**/*.ts'],
    ignores: ['**/*.d.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        barrels,
        spreads,
        { selector: 'ExportDefaultDeclaration', message: 'No default exports, but an environment.' },
      ],
    },
  },
  { files: ['envs/**/*.ts'], rules: { 'no-restricted-syntax': ['error', barrels, spreads] } },
  {
    files: ['extension/main.ts', 'extension/host/**/*.ts'],
    ignores: ['extension/host/notices.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...[
          'showErrorMessage',
          'showWarningMessage',
          'showInformationMessage',
          'withProgress',
          'setStatusBarMessage',
        ].map(property => ({
          property,
          message: 'Tell it by host/notices.ts: texts of runs and models must not become links.',
        })),
      ],
    },
  },
  {
    files: ['test/**'],
    ignores: ['test/bench/**'],
    rules: { 'no-restricted-syntax': ['error', barrels, ...testTiming, ...vagueChecks] },
  },
  {
    files: ['test/**', 'examples/**', '*.mjs', '*.js', 'extension/trainer/terminal/**'],
    rules: { 'no-console': 'off' },
  },
);
