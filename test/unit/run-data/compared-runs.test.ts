// How runs are grouped in a comparison, and which keys distinguish the groups.
import { expect, it } from 'vitest';
import { groupRuns } from '../../../extension/run-data/compared-runs';
import type { Manifest } from '../../../extension/run-data/run-manifest';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { partial } from '../../support/partial';

const run = (name: string, config: object, point?: string) => ({
  name,
  events: [] as RunEvent[],
  manifest: partial<Manifest>({ config, config_name: 'quickstart', ...(point && { sweep: { id: 's', point } }) }),
});
const config = (lr: number, seed: number, more: object = {}) => ({
  seed: { train: seed, val: 1 },
  trainer: { experiment_name: `lr ${lr} seed ${seed}` },
  actor: { optim: { lr }, tags: ['a', 'b'], ...more },
});

it('groups runs that differ only in seeds and names, whatever the order of their keys', () => {
  const { actor, ...rest } = config(1, 3);
  const { groups, keys } = groupRuns([
    run('a', config(1, 1)),
    run('b', config(2, 1)),
    run('c', config(1, 2)),
    run('d', { actor, ...rest }),
  ]);
  expect(groups).toEqual([
    { label: 'lr=1', members: [0, 2, 3], values: ['1'] },
    { label: 'b', members: [1], values: ['2'] },
  ]);
  expect(keys).toEqual(['actor.optim.lr']);
});

it('names a sweep point without its seed, and a missing key by a dash', () => {
  const { groups, keys } = groupRuns([
    run('a', config(1, 1), 'filter on, seed 1'),
    run('b', config(1, 2), 'filter on, seed 2'),
    run('c', config(1, 1, { tags: ['a'], extra: null })),
  ]);
  expect(keys).toEqual(['actor.tags', 'actor.extra']);
  expect(groups[0]).toEqual({ label: 'filter on', members: [0, 1], values: ['["a","b"]', '–'] });
  expect(groups[1]).toEqual({ label: 'c', members: [2], values: ['["a"]', 'null'] });
});

it('names a single configuration without keys', () => {
  expect(groupRuns([run('a', config(1, 1)), run('b', config(1, 2))])).toEqual({
    groups: [{ label: 'quickstart', members: [0, 1], values: [] }],
    keys: [],
  });
});

it('shows settings changed during training, and a key that follows another one once', () => {
  const steps = (total: number) => ({
    trainer: { total_training_steps: total },
    actor: { optim: { lr: 1, total_training_steps: total } },
  });
  const changed = run('a', steps(40));
  const data = { key: 'actor.optim.lr', from: 1, to: 2 };
  changed.events.push({ time: '2026-01-01T00:00:00.000Z', step: 27, kind: 'setting', message: 'lr', data });
  const { groups, keys } = groupRuns([changed, run('b', steps(400))]);
  expect(keys).toEqual(['trainer.total_training_steps', 'actor.optim.lr']);
  expect(groups.map(({ values }) => values)).toEqual([
    ['40', '1 → 2 (step 27)'],
    ['400', '1'],
  ]);
});
