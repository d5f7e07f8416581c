// Every page in every kind of theme has no serious violation of accessibility rules (WCAG 2.1 AA) that axe-core can find.
// The pages are the shipped bundles in the preview, which has the theme variables of VS Code.
import { spawnSync } from 'node:child_process';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../install.mjs';

test('no page has a serious violation in any kind of theme', () => {
  const args = ['test/e2e/preview/run.mjs', '--axe', '--out', join(root, 'test-results', 'accessibility')];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /dashboard-high-contrast-light\.png/);
});
