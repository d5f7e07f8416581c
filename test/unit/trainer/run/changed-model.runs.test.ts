// A resume that reads the base model again compares its weights with the weights at the run's creation, because
// adapters over other weights would train differently. If all weights come from the checkpoint, the model's folder is
// not compared.
import { readFileSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { document, killAll, results } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Answer {
  folder: string;
  error?: { message: string };
}

let workspace: Workspace;
let weights: string;
const ragen = (...args: string[]) => document<Answer>(workspace.folder, args);

beforeAll(async () => {
  workspace = makeWorkspace();
  process.env.XDG_CACHE_HOME = join(workspace.folder, 'cache');
  // The weights are a link to a file in another folder, as in a model cache.
  weights = join(workspace.folder, 'blob');
  const named = join(workspace.folder, 'models/random/model.safetensors');
  renameSync(named, weights);
  symlinkSync(weights, named);
  // The hash of a file is cached only if the file has not changed recently.
  await vi.waitFor(() => expect(Date.now() - statSync(weights).ctimeMs).toBeGreaterThan(2500), 20_000);
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

/** Trains two steps and deletes the second checkpoint. */
async function runOfTwoSteps(...overrides: string[]) {
  const { code, stderr, answer } = await ragen(
    ...[
      'train',
      '--config-name',
      'words',
      'workbench.keep_checkpoints=9',
      'trainer.total_training_steps=2',
      ...overrides,
    ],
  );
  expect(code, stderr).toBe(0);
  const expected = results(answer.folder);
  rmSync(join(answer.folder, 'checkpoints/step-000002'), { recursive: true });
  return { run: answer.folder, expected };
}

/** Runs `work` while one bit of the weights is changed. */
async function withOtherWeights<T>(work: () => Promise<T>): Promise<T> {
  const bytes = readFileSync(weights);
  const changed = Buffer.from(bytes);
  changed[changed.length - 3] ^= 1;
  writeFileSync(weights, changed);
  try {
    return await work();
  } finally {
    writeFileSync(weights, bytes);
  }
}

const sentence = (run: string): RegExp =>
  new RegExp(
    `^run ${basename(run)}: the weights in .*models/random have the checksum [0-9a-f]{12}…, but the run was created with weights of checksum [0-9a-f]{12}…: restore the model's files, or start a new run$`,
  );

test.each([
  ['the base under adapters', ['lora.rank=2', 'lora.alpha=4']],
  ['the reference of a KL loss', ['actor_rollout_ref.actor.use_ref=true', 'actor_rollout_ref.actor.use_kl_loss=true']],
  ['the teacher', ['++workbench.distillation={teacher: models/random}']],
])(
  '%s: a changed model is refused, and the restored model produces the same run',
  async (_, overrides) => {
    const { run, expected } = await runOfTwoSteps(...overrides);
    const refused = await withOtherWeights(() => ragen('resume', basename(run)));
    expect(refused.code).toBe(1);
    expect(refused.answer.error?.message).toMatch(sentence(run));
    // A damaged entry of the checksum cache does not cause a refusal.
    const kept = join(workspace.folder, 'cache/ragen-workbench/checksums');
    for (const name of readdirSync(kept))
      writeFileSync(
        join(kept, name),
        readFileSync(join(kept, name), 'utf8').replace(/"[0-9a-f]{64}"/, `"${'0'.repeat(64)}"`),
      );
    const { code, stderr } = await ragen('resume', basename(run));
    expect(code, stderr).toBe(0);
    expect(results(run)).toEqual(expected);
  },
  120_000,
);

test('a run whose weights come completely from the checkpoint resumes although the model has changed', async () => {
  const { run, expected } = await runOfTwoSteps();
  const { code, stderr } = await withOtherWeights(() => ragen('resume', basename(run)));
  expect(code, stderr).toBe(0);
  expect(results(run)).toEqual(expected);
}, 120_000);
