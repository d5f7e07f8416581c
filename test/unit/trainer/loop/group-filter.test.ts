// The rollout filter of a run: selection among all groups or among those of each environment, filters of the workspace that
// select themselves, and what filters are shown.
import { expect, test } from 'vitest';
import type { FilterEpisode, PromptGroup } from '../../../../envs/api/plugins/filter';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { needsEntropy } from '../../../../extension/trainer/plugins/plugin-filter';
import { promptGroups, runFilter, selectionOf } from '../../../../extension/trainer/loop/group-filter';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { partial } from '../../../support/partial';
import { load } from '../config/presets';

/** Groups of two episodes with scores 0 and the given spread; the environment Large has a hundred times larger rewards. */
const groups: PromptGroup[] = (
  [
    ['Large', 100],
    ['Small', 1],
    ['Large', 300],
    ['Small', 3],
    ['Small', 0],
  ] as const
).map(([tag, score], group) => ({
  ...{ group, tag, seed: group, draw: group },
  episodes: [partial<FilterEpisode>({ score: 0 }), partial<FilterEpisode>({ score })],
}));

const plugin = (description: { functions: string[]; properties?: Record<string, unknown> }): CallablePlugin => ({
  path: 'plugins/own.ts',
  description: { kind: 'filter', name: 'own', properties: {}, ...description },
  call: name => Promise.resolve(name === 'score' ? groups.map(() => 1) : [3]),
});
const noPlugins = {
  plugin: () => {
    throw new Error('no plug-in is configured');
  },
};

const selected = async (...overrides: string[]) => {
  const { config } = load('quickstart', ...overrides);
  const filter = runFilter(config.actor_rollout_ref.rollout, noPlugins);
  return (await selectionOf(filter, groups, 1, config)).selected.toSorted((a, b) => a - b);
};

test('by default, environments with large rewards displace others; with filter_by_tag, they do not', async () => {
  expect(await selected()).toEqual([0, 2]); // 400 of the sum of 404
  expect(await selected('workbench.filter_by_tag=true')).toEqual([0, 1, 2, 3]);
});

test('a filter that selects groups itself is not overruled by the strategy', async () => {
  const { config } = load(
    'quickstart',
    'workbench.filter_by_tag=true',
    'actor_rollout_ref.rollout.rollout_filter_metric=plugins/own.ts',
  );
  const filter = runFilter(config.actor_rollout_ref.rollout, {
    plugin: () => plugin({ functions: ['score', 'select'] }),
  });
  expect((await selectionOf(filter, groups, 1, config)).selected).toEqual([3]);
});

test('a filter of the workspace may need entropies and nothing else', () => {
  expect(needsEntropy(plugin({ functions: ['score'] }))).toBe(false);
  expect(needsEntropy(plugin({ functions: ['score'], properties: { needs: 'entropy' } }))).toBe(true);
  expect(() => needsEntropy(plugin({ functions: ['score'], properties: { needs: 'logprobs' } }))).toThrow(
    "plug-in plugins/own.ts was given needs 'logprobs' in defineFilter(): use needs: 'entropy', or leave it out",
  );
});

test('the draw of a group depends on its seed and on that of the training', () => {
  const played = [7, 7, 8].map((seed, i) =>
    partial<RolloutEpisode>({ group_id: seed, seed, score: i, turns: [], samples: [] }),
  );
  const drawn = (seed: number) =>
    promptGroups(played, { scoreOf: ({ score }) => score, entropyOf: () => undefined }, seed).map(({ draw }) => draw);
  const [first, second] = [drawn(1), drawn(2)];
  expect(first).toHaveLength(2);
  expect(new Set([...first, ...second]).size).toBe(4);
  expect(drawn(1)).toEqual(first);
});
