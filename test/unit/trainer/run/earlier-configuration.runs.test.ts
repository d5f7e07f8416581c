// `train --from` uses the configuration of an earlier run with other overrides, whether or not the run's configuration
// file has changed.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Manifest } from '../../../../extension/run-data/run-manifest';
import { makeRun } from '../../../../extension/cli/run-lifecycle/make-run';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let first: Manifest;
const overrides = [
  'trainer.total_training_steps=3',
  'algorithm.gamma=0.5',
  '+custom_envs.Words.env_instruction=Speak.',
];
const again = async (given: readonly string[]): Promise<Manifest> =>
  (await makeRun({ again: first, overrides: given, workspace: workspace.folder })).folder.manifest;
const gamma = ({ config }: Manifest) => (config['algorithm'] as { gamma: number }).gamma;

beforeAll(async () => {
  workspace = makeWorkspace();
  first = (await makeRun({ configFile: 'config/words.yaml', overrides, workspace: workspace.folder })).folder.manifest;
});
afterAll(() => workspace.remove());

test('equal overrides yield the same configuration, and a removed override restores the file’s value', async () => {
  expect(first.config_file).toBe(join(workspace.folder, 'config/words.yaml'));
  const same = await again(overrides);
  expect([same.config_hash, same.overrides, same.config_file]).toEqual([
    first.config_hash,
    overrides,
    first.config_file,
  ]);
  const without = await again(overrides.filter(override => !override.startsWith('algorithm')));
  expect(gamma(first)).toBe(0.5);
  expect(gamma(without)).toBe(1);
});

test('if the file has changed since, the run’s own values remain the base', async () => {
  const file = join(workspace.folder, 'config/words.yaml');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, `${text}\ncritic:\n  optim:\n    lr: 0.5\n`);
  try {
    const same = await again(overrides);
    expect(same.config_hash).toBe(first.config_hash);
    const changed = await again([...overrides.slice(0, 1), 'algorithm.gamma=0.25', ...overrides.slice(2)]);
    expect(gamma(changed)).toBe(0.25);
    expect(changed.config['critic']).toEqual(first.config['critic']);
    await expect(again(overrides.slice(0, 1))).rejects.toThrow(
      /words\.yaml has changed since the run, so the value of algorithm\.gamma may differ from its value in the run: add an override for this key$/,
    );
  } finally {
    writeFileSync(file, text);
  }
});
