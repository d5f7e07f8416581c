// What of the repository is packaged: bundles, media, environments and the documents that the extension shows. What is meant for
// contributors stays outside.
import { PackageManager, listFiles } from '@vscode/vsce';
import { expect, test } from 'vitest';
import { root } from '../trainer/workspace';

test('the package holds what the extension loads, and nothing for contributors', async () => {
  const files = await listFiles({ cwd: root, packageManager: PackageManager.None });
  const folders = new Set(files.filter(file => file.includes('/')).map(file => file.split('/')[0]));
  expect([...folders].sort()).toEqual(['dist', 'docs', 'envs', 'licences', 'media']);
  expect(files.filter(file => !file.includes('/')).sort()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'THIRD-PARTY-NOTICES.txt',
    'package.json',
    'package.nls.json',
  ]);
  expect(files.filter(file => file.startsWith('docs/'))).toEqual(['docs/METRICS.md']);
  expect(files).toContain('dist/host.cjs');
  expect(files.filter(file => /\.(map|test\.ts)$/.test(file))).toEqual([]);
});
