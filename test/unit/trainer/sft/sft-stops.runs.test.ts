// Supervised fine-tuning that was stopped near its end or before its start is completed by the same command.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import { installation } from '../../../../extension/node/installation';
import { loadSftConfig } from '../../../../extension/trainer/sft/sft-config';
import { sft } from '../../../../extension/trainer/sft/supervised-fine-tuning';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write(
    'config/short.yaml',
    `defaults: [sft, _self_]
demonstrations: {config_name: quickstart, tags: [FrozenLake]}
data: {train_size: 8, val_size: 32, train_batch_size: 8, micro_batch_size_per_gpu: 1, max_length: 700}
model: {partial_pretrain: ragen-tiny, lora_rank: 0, enable_gradient_checkpointing: false}
trainer: {total_epochs: 1, experiment_name: short}
workbench: {device: cpu, threads: 1}
`,
  );
});
afterAll(() => workspace.remove());

/** Trains, and aborts when `stopAt` accepts the current activity. */
function train(experiment: string, stopAt?: (what: string) => boolean) {
  const presetFolders = [join(workspace.folder, 'config'), installation.presets];
  const overrides = [`trainer.experiment_name=${experiment}`];
  const { config, hash } = loadSftConfig({ configName: 'short', overrides, presetFolders });
  const stop = new AbortController();
  return sft({
    ...{ config, hash, workspace: workspace.folder, presetFolders, signal: stop.signal },
    modelFolder: join(installation.models, 'ragen-tiny'),
    printLine: () => undefined,
    onStep: () => undefined,
    onProgress: what => void (stopAt?.(what) && stop.abort(new RunStopped())),
  });
}

test('a stop in the last validation leaves the training unfinished, and the same command completes it', async () => {
  const whole = await train('whole');
  const stopped = await train('cut', what => what === 'validation after step 1');
  expect(stopped).toMatchObject({ model: null, steps: 1, val_loss: { after: null } });
  expect(existsSync(join(stopped.folder, 'model'))).toBe(false);
  const again = await train('cut', what => what === 'validation after step 1');
  expect(again).toMatchObject({ model: null, steps: 1 });
  const { val_loss, steps, model } = await train('cut');
  expect([val_loss, steps, model]).toEqual([whole.val_loss, 1, join(stopped.folder, 'model')]);
}, 180_000);

test('a stop before the first step is not an error', async () => {
  const stopped = await train('early', what => what.startsWith('demonstrations'));
  expect(stopped).toMatchObject({ model: null, steps: 0, total_steps: 1 });
}, 60_000);
