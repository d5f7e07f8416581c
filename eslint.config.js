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
    'The length of data is not bounded by the stack: use appendAll, maximum, minimum or a loop (common/lists.ts).',
};

export default tseslint.config(
  { ignores: ['node_modules/', 'dist/', '.tsbuild/', '**/.ragen/', '.e2e/', 'test/golden/', 'test-results/'] },
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
    files: ['extension/main.ts', 'extension/vscode/**/*.ts'],
    ignores: ['extension/vscode/notifications.ts'],
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
          message: 'Tell it by vscode/notifications.ts: texts of runs and models must not become links.',
        })),
      ],
    },
  },
  {
    files: ['test/**', 'examples/**', '*.mjs', '*.js', 'extension/cli/**'],
    rules: { 'no-console': 'off' },
  },
);
