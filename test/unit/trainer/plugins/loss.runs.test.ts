// Policy losses of the workspace in runs: plug-ins that re-implement PPO's and SAPO's losses give the runs of the built-in
// ones up to rounding, a run that is repeated or resumed is the same to the bit, and faults end the run with a sentence.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import type { MetricsLine } from '../../../../extension/run-data/step-lines';
import { results } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

const path = 'plugins/own.ts';
const ownLoss = [`actor_rollout_ref.actor.policy_loss.loss_mode=${path}`];
/** Small mini-batches and a large learning rate, so that ratios leave 1 and are clipped. */
const several = ['ppo_mini_batch_size=2', 'micro_batch_size_per_gpu=2', 'actor_rollout_ref.actor.ppo_epochs=3'];

/** Writes a loss with statements that set `loss[t]` and `slope[t]` from `ratio` and the advantage `a`. */
const write = (statements: string): string =>
  workspace.write(
    path,
    `import { defineLoss } from 'ragen-workbench/api/plugins/loss';
export default defineLoss({
  name: 'own',
  loss: (sequences, settings) =>
    sequences.map(({ logprobs, old, advantages, mask }) => {
      const loss = new Float32Array(mask.length);
      const slope = new Float32Array(mask.length);
      mask.forEach((bit, t) => {
        if (!bit) return;
        const a = advantages[t];
        const ratio = Math.exp(logprobs[t] - old[t]);
        ${statements}
      });
      return { loss, slope };
    }),
});
`,
  );

/** Metrics of the update, which rounding of the weights changes little. */
const update = (lines: readonly MetricsLine[]) =>
  lines.map(line =>
    ['actor/pg_loss', 'actor/ppo_kl', 'actor/grad_norm', 'actor/entropy'].map(key => Number(line[key])),
  );

test.each([
  [
    'vanilla',
    `const plain = -a * ratio;
        const clipped = -a * Math.min(1 + settings.clip_ratio_high, Math.max(1 - settings.clip_ratio_low, ratio));
        const most = -a * settings.clip_ratio_c;
        const dual = a < 0 && most < Math.max(plain, clipped);
        loss[t] = dual ? most : Math.max(plain, clipped);
        slope[t] = dual || clipped > plain ? 0 : plain;`,
  ],
  [
    'sapo',
    `const tau = a > 0 ? 1 : 1.05;
        const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
        loss[t] = (-4 / tau) * gate * a;
        slope[t] = -4 * gate * (1 - gate) * ratio * a;`,
  ],
])('a loss that re-implements %s gives its run up to rounding', { timeout: 180_000 }, async (mode, statements) => {
  write(statements);
  const builtIn = await trainHere(workspace, [...several, `actor_rollout_ref.actor.policy_loss.loss_mode=${mode}`], 1);
  const own = await trainHere(workspace, [...several, ...ownLoss], 1);
  const [expected, found] = [update(builtIn.lines)[0], update(own.lines)[0]];
  found.forEach((value, i) => expect(value).toBeCloseTo(expected[i], 4));
  expect(Math.abs(expected[1])).toBeGreaterThan(1e-3); // the policy has moved, so ratios are not 1
});

test('a repeated run is the same to the bit', async () => {
  write('loss[t] = -a * ratio; slope[t] = -a * ratio;');
  const [first, second] = [await trainHere(workspace, ownLoss), await trainHere(workspace, ownLoss)];
  expect(results(second.folder)).toEqual(results(first.folder));
}, 120_000);

test('an invalid slope and settings that do not fit end the run with one sentence', async () => {
  write('loss[t] = 0; slope[t] = 1 / loss[t];');
  await expect(trainHere(workspace, ownLoss, 1)).rejects.toThrow(
    /^plug-in plugins\/own\.ts returned Infinity for the slope of token \d+ of sequence 0 in loss\(\): return finite/,
  );
  await expect(trainHere(workspace, [...ownLoss, 'trainer.gradient_analysis_mode=true'], 1)).rejects.toThrow(
    `the gradients of the loss of a plug-in (${path}) cannot be analysed: set it to false`,
  );
  await expect(trainHere(workspace, [...ownLoss, 'lora.rank=2', 'lora.dropout=0.1'], 1)).rejects.toThrow(
    `the loss of a plug-in (${path}) is computed without dropout: set it to 0`,
  );
}, 120_000);
