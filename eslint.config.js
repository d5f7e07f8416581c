// Lint rules. Type errors are left to the compiler, formatting to prettier, and import boundaries to
// dependency-cruiser.
import tseslint from 'typescript-eslint';
import prettier from 'eslint-config-prettier';

const barrels = {
  selector: 'ExportAllDeclaration',
  message: 'No barrels: import from the file that defines the name.',
};
/** Spread arguments use stack: a call with about 120,000 of them throws "Maximum call stack size exceeded". */
const spreads = {
  selector:
    'CallExpression[callee.property.name=/^(push|unshift|splice|concat|max|min|hypot|fromCharCode|fromCodePoint|of|assign|apply)$/] > SpreadElement.arguments',
  message:
    'The length of data is not bounded by the stack: use appendAll, maximum, minimum or a loop (common/lists.ts).',
};

/** Two consecutive assertions disable every check of the compiler. */
const doubleAssertions = {
  selector: 'TSAsExpression > TSAsExpression.expression > TSUnknownKeyword.typeAnnotation',
  message:
    'Give the value its type: parse it (zod, a type guard), declare it, or use a generic. In a test use test/support/partial.ts.' +
    ' Otherwise disable this line and explain why the compiler cannot infer the type.',
};
const everywhere = [barrels, doubleAssertions];
/** Forbids test assertions that depend on timing, and (vagueChecks) assertions that accept almost any value. */
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

const questions = ['showQuickPick', 'showInputBox', 'createQuickPick', 'createInputBox'].map(property => ({
  property,
  message: 'Use vscode/questions.ts: a page that takes the focus must not close a question.',
}));

export default tseslint.config(
  {
    ignores: [
      'node_modules/',
      'dist/',
      '.tsbuild/',
      '**/.ragen/',
      '.e2e/',
      '.tinker/',
      '.notebook/',
      '.mlflow/',
      '.export-tools/',
      '.verifiers/',
      '.ray/',
      'test/golden/',
      'test-results/',
    ],
  },
  ...tseslint.configs.recommended,
  prettier,
  {
    languageOptions: { parserOptions: { project: './tsconfig.lint.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-array-delete': 'error',
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
      '@typescript-eslint/no-for-in-array': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      // A promise returned in a `try` must be awaited, because otherwise the `catch` does not handle its rejection.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      // A `default` case covers all members that are not listed.
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: false },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-console': 'error',
      eqeqeq: ['error', 'always'],
      'prefer-const': 'error',
      'no-restricted-syntax': ['error', ...everywhere],
    },
  },
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    files: ['extension/**/*.ts', 'webview/**/*.ts'],
    ignores: ['**/*.d.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...everywhere,
        spreads,
        { selector: 'ExportDefaultDeclaration', message: 'No default exports, except environments.' },
      ],
    },
  },
  {
    files: ['extension/**/*.ts', 'webview/**/*.ts', 'envs/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'error',
      '@typescript-eslint/no-unsafe-assignment': 'error',
      '@typescript-eslint/no-unsafe-call': 'error',
      '@typescript-eslint/no-unsafe-member-access': 'error',
      '@typescript-eslint/no-unsafe-return': 'error',
      '@typescript-eslint/require-array-sort-compare': ['error', { ignoreStringArrays: true }],
      '@typescript-eslint/restrict-plus-operands': 'error',
    },
  },
  { files: ['envs/**/*.ts'], rules: { 'no-restricted-syntax': ['error', ...everywhere, spreads] } },
  {
    files: ['extension/main.ts', 'extension/vscode/**/*.ts'],
    ignores: ['extension/vscode/notifications.ts', 'extension/vscode/questions.ts'],
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
          message: 'Use vscode/notifications.ts: texts of runs and models must not become links.',
        })),
        ...questions,
      ],
    },
  },
  {
    files: ['test/**'],
    ignores: ['test/bench/**'],
    rules: { 'no-restricted-syntax': ['error', ...everywhere, ...testTiming, ...vagueChecks] },
  },
  {
    files: ['test/**', 'examples/**', '*.mjs', '*.js', 'extension/cli/**'],
    rules: { 'no-console': 'off' },
  },
);
