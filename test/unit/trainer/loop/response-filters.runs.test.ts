// Enforced filters of degenerate responses in runs: a step does not train on the episodes that they detect, and all others
// keep the advantages that they have without the filters. What is detected is computed here from the stored tokens.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import type { Episode } from '../../../../extension/run-data/episode';
import { results } from '../../../support/terminal';
import { keepAll, mean, trainHere } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

const vocabSize = 800;
/** Ids from which tokens count as rare. Nearly all tokens of the random model are less likely than 1 / `vocabSize`. */
const rare = 770;
/** Probability that only the two closing tokens have, which the random model often samples one after the other. */
const likely = 0.03;

/** The sampled tokens of each turn. */
const responsesOf = ({ turns, tokens }: Episode) =>
  turns.map(({ span: [from, to] }) =>
    tokens.ids.slice(from, to).map((id, i) => ({ id, logprob: tokens.logprobs[from + i]! })),
  );
const isGibberish = (episode: Episode): boolean =>
  responsesOf(episode)
    .flat()
    .some(({ id, logprob }) => id > rare && logprob < -Math.log(vocabSize));
const isLoop = (episode: Episode): boolean =>
  responsesOf(episode).some(tokens =>
    tokens.some(({ logprob }, i) => i > 0 && Math.min(logprob, tokens[i - 1].logprob) > Math.log(likely)),
  );
/** Whether an episode was trained on: only then its tokens have advantages. */
const advantagesOf = ({ tokens }: Episode) => tokens.advantages?.filter(value => value !== null && value !== 0) ?? [];

const filtered = (enforce: boolean): string[] => [
  ...keepAll,
  ...['es_manager.train.env_groups=4', 'es_manager.train.env_configs.n_groups=[4]', 'ppo_mini_batch_size=16'],
  `workbench.response_filters={${[
    `gibberish: {enforce: ${enforce}, token_id_threshold: ${rare}, logprob_offset: 0}`,
    `repetition: {enforce: ${enforce}, window: 2, prob_threshold: ${likely}}`,
  ].join()}}`,
];

test('a step keeps the episodes that the enforced filters leave, and no others', async () => {
  const counted = await trainHere(workspace, filtered(false), 1);
  const enforced = await trainHere(workspace, filtered(true), 1);

  const texts = ({ turns }: Episode) => turns.map(({ raw }) => raw);
  expect(enforced.episodes.map(texts)).toEqual(counted.episodes.map(texts));
  const removed = enforced.episodes.map(episode => isGibberish(episode) || isLoop(episode));
  for (const detects of [isGibberish, isLoop]) {
    const found = enforced.episodes.filter(detects).length; // each filter removes some episodes, and both leave some
    expect(found).toBeGreaterThan(0);
    expect(found).toBeLessThan(removed.filter(Boolean).length);
  }
  expect(removed).toContain(false);

  for (const { lines } of [counted, enforced]) {
    expect(lines[0]['rollout/gibberish_rate']).toBe(mean(enforced.episodes.map(e => Number(isGibberish(e)))));
    expect(lines[0]['rollout/repetition_rate']).toBe(mean(enforced.episodes.map(e => Number(isLoop(e)))));
  }
  expect(counted.episodes.map(({ kept }) => kept)).toEqual(removed.map(() => true));
  expect(enforced.episodes.map(({ kept }) => kept)).toEqual(removed.map(is => !is));

  const left = enforced.episodes.filter((_, i) => !removed[i]);
  expect(enforced.lines[0]['critic/score/mean']).toBeCloseTo(mean(left.map(({ score }) => score)), 6);
  expect(counted.lines[0]['critic/score/mean']).toBeCloseTo(mean(counted.episodes.map(({ score }) => score)), 6);

  // the others keep their advantages, because the scores of removed episodes stay in their group
  const trained = counted.episodes.map(advantagesOf);
  expect(enforced.episodes.map(advantagesOf)).toEqual(trained.map((own, i) => (removed[i] ? [] : own)));
  expect(trained.some((own, i) => removed[i] && own.length > 0)).toBe(true);
  expect(enforced.lines[0]['actor/grad_norm']).toBeGreaterThan(0);
  expect(results(enforced.folder).weights).not.toEqual(results(counted.folder).weights);
}, 240_000);

test('no token of a removed episode reaches the loss', async () => {
  const path = 'plugins/refusing.ts';
  workspace.write(
    path,
    `import { defineLoss } from 'ragen-workbench/api/plugins/loss';
export default defineLoss({
  name: 'refusing',
  loss: sequences =>
    sequences.map(({ old, logprobs, advantages, mask }) => {
      const isLikely = (t: number) => mask[t] === 1 && old[t] > Math.log(${likely});
      if (Array.from(mask).some((_, t) => t > 0 && isLikely(t) && isLikely(t - 1))) throw new Error('a loop');
      const loss = Float32Array.from(mask, (bit, t) => (bit ? -advantages[t] * Math.exp(logprobs[t] - old[t]) : 0));
      return { loss, slope: loss };
    }),
});
`,
  );
  const own = [`actor_rollout_ref.actor.policy_loss.loss_mode=${path}`];
  const { end, lines } = await trainHere(workspace, [...filtered(true), ...own], 1);
  expect(end).toBe('finished');
  expect(lines[0]['rollout/repetition_rate']).toBeGreaterThan(0);
  await expect(trainHere(workspace, [...filtered(false), ...own], 1)).rejects.toThrow('threw "a loop"');
}, 240_000);
