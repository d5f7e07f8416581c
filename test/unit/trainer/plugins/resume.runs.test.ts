// A run whose estimator, loss, filter, metric and alarm are plug-ins is stopped at its first checkpoint and resumed: it
// computes what the uninterrupted run computes, to the bit, and the alarm judges values from before and after the stop.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { resumedHere } from '../../../support/opened-run';
import { pluginSource } from '../../../support/plugin-source';
import { readRun, results } from '../../../support/terminal';
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

/** The properties of each kind's definition. */
const definitions = {
  estimator: `estimate: ({ scores, groups }) => ({
      samples: Array.from(scores, (score, i) => {
        const group = Array.from(scores).filter((_, j) => groups[j] === groups[i]);
        return score - group.reduce((sum, x) => sum + x, 0) / group.length;
      }),
    })`,
  loss: `loss: sequences =>
      sequences.map(({ logprobs, old, advantages, mask }) => {
        const loss = Float32Array.from(mask, (bit, t) => (bit ? -advantages[t] * Math.exp(logprobs[t] - old[t]) : 0));
        return { loss, slope: loss };
      })`,
  filter: `score: groups => groups.map(({ episodes }) => {
      const scores = episodes.map(({ score }) => score);
      return Math.max(...scores) - Math.min(...scores);
    }),
    select: scores => Array.from(scores, (_, i) => i).sort((a, b) => scores[b] - scores[a] || a - b).slice(0, 2)`,
  metric: 'measure: ({ step }) => 10 - step',
  alarm: `metric: 'plugins/own_metric', label: 'the number', side: 'under', steps: 2,
    bound: before => (before.length < 1 ? null : { bound: before[0] - 0.5, label: 'its first value' })`,
};
type OwnKind = keyof typeof definitions;
const pathOf = (kind: OwnKind): string => `plugins/${kind}.ts`;

function writePlugins(): void {
  for (const kind of Object.keys(definitions) as OwnKind[])
    workspace.write(pathOf(kind), pluginSource(kind, `own_${kind}`, definitions[kind]));
}

const overrides = [
  ...['es_manager.train.env_groups=4', 'es_manager.train.env_configs.n_groups=[4]'],
  ...['ppo_mini_batch_size=2', 'micro_batch_size_per_gpu=2'],
  `algorithm.adv_estimator=${pathOf('estimator')}`,
  `actor_rollout_ref.actor.policy_loss.loss_mode=${pathOf('loss')}`,
  `actor_rollout_ref.rollout.rollout_filter_metric=${pathOf('filter')}`,
  `workbench.plugins.metrics=[${pathOf('metric')}]`,
  `workbench.plugins.alarms=[${pathOf('alarm')}]`,
];

/** Metrics and weights of a run, and the events of the plug-in's alarm. */
function outcome(folder: string) {
  const { metrics, weights } = results(folder);
  const raised = readRun(folder).events.filter(({ data }) => data?.alarm === 'plugins/own_alarm');
  return { metrics, weights, alarms: raised.map(({ kind, message, data }) => ({ kind, message, data })) };
}

test('a resumed run with plug-ins computes what an uninterrupted one computes', async () => {
  writePlugins();
  const complete = await trainHere(workspace, overrides, 4);
  const { folder, second } = await resumedHere(workspace, overrides, 4);
  const expected = outcome(complete.folder);
  expect(outcome(folder.path)).toEqual(expected);
  expect(second.events.filter(({ kind }) => /^plugin_/.test(kind))).toEqual([]);

  // each plug-in had an effect, and the alarm rests on the value of step 1, before the stop
  expect(expected.metrics.map(line => line['rollout/filter_kept_count'])).toEqual([2, 2, 2, 2]);
  expect(expected.metrics.every(line => Number(line['actor/grad_norm']) > 0)).toBe(true);
  expect(expected.alarms.map(({ kind, data }) => [kind, data?.step, data?.bound])).toEqual([['alarm', 3, 8.5]]);
}, 180_000);
