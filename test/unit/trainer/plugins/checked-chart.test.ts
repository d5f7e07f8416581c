// What a chart of the workspace may declare: lines that it computes, or keys of metrics; and the built-in charts are plans
// that a plug-in could declare.
import { expect, it } from 'vitest';
import { defineChart } from '../../../../envs/api/plugins/chart';
import type { PluginDescription } from '../../../../extension/protocol/plugin-link';
import { groupsOfCharts } from '../../../../extension/run-data/charts/chart-plan';
import { checkedPlan, planOf } from '../../../../extension/trainer/plugins/checked-chart';

const declared = (properties: Record<string, unknown>, functions: string[] = []): PluginDescription => ({
  ...{ kind: 'chart', name: 'own', functions },
  properties: { name: 'own', ...properties },
});
const check = (properties: Record<string, unknown>) =>
  checkedPlan({
    ...{ path: 'plugins/own.ts', description: declared(properties) },
    call: () => Promise.reject(new Error('no function is called')),
  });

it('is a plan: of the listed metrics, or of the computed lines', () => {
  const keys = ['actor/entropy', ['none', 'actor/lr'], 'train/*/success'];
  const texts = { title: 'Own', unit: 'share', explanation: 'Why.' };
  expect(planOf(declared({ ...texts, keys, first: true }), 'own.ts')).toEqual({
    ...{ name: 'own', ...texts, keys, first: true },
  });
  expect(planOf(declared(texts, ['lines']), 'own.ts')).toEqual({
    name: 'own',
    ...texts,
    keys: ['plugin_charts/own/*'],
  });
});

it.each([
  [{}, [], 'has a chart with neither lines nor keys: give it lines, a function, or keys'],
  [{ keys: ['actor/lr'] }, ['lines'], 'has a chart with both lines and keys: give it'],
  [{ keys: 'actor/lr' }, [], "has a chart whose property keys is 'actor/lr': use a list of 1 to 64 keys of metrics"],
  [{ keys: [] }, [], 'has a chart whose property keys is []: use a list of 1 to 64 keys of metrics'],
  [
    { keys: ['actor/lr', 3] },
    [],
    'has a chart whose property keys[1] is 3: use a key of 1 to 200 characters, or a list of 1 to 64 such keys',
  ],
  [{ keys: [['actor/lr', '']] }, [], "has a chart whose property keys[0] is [ 'actor/lr', '' ]: use a key of"],
  [
    { keys: ['actor/lr'], unit: 'tokens' },
    [],
    "has a chart whose property unit is 'tokens': use number, share or seconds",
  ],
  [{ keys: ['actor/lr'], title: '' }, [], "has a chart whose property title is '': use a text of 1 to 80 characters"],
  [{ keys: ['actor/lr'], first: 1 }, [], 'has a chart whose property first is 1: use true or false'],
])('is refused as %j with the functions %j', (properties, functions, sentence) => {
  expect(() => planOf(declared(properties, functions), 'plugins/own.ts')).toThrow(`plug-in plugins/own.ts ${sentence}`);
});

it('lists only keys that a metric can have', () => {
  expect(
    check({ keys: ['actor/entropy', 'plugins/words', 'train/*/success', 'no/*', 'train/A/own/value'] }),
  ).toHaveProperty('keys');
  expect(() => check({ keys: [['a', 'b'], ...'cdef'] })).toThrow('(a, b, c, d, e, …)');
  expect(() => check({ keys: ['actor/entropy', 'actor/entrpy'] })).toThrow(
    'plug-in plugins/own.ts has a chart of keys that no metric has (actor/entrpy): use keys of docs/METRICS.md',
  );
});

it('can be declared as each built-in chart is', () => {
  for (const plan of groupsOfCharts.flatMap(({ charts }) => charts)) {
    const { kind, ...properties } = defineChart(plan);
    expect(kind).toBe('chart');
    expect(planOf(declared({ ...properties, name: 'own' }), 'own.ts')).toEqual({ ...plan, name: 'own' });
  }
});
