// Filters, metrics, charts and alarms of the workspace in runs: a filter that re-implements the built-in one gives the same run
// to the bit, metrics are logged and change nothing else, alarms are raised by their values, and faults are reported.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ownCharts } from '../../../../extension/run-data/charts/own-charts';
import { installation } from '../../../../extension/node/installation';
import { pluginSource } from '../../../support/plugin-source';
import { readRun, results } from '../../../support/terminal';
import { keepAll, trainHere } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

/** Writes a plug-in of a kind with the properties of its definition; returns its path. */
function write(kind: 'filter' | 'metric' | 'chart' | 'alarm', name: string, properties: string): string {
  workspace.write(`plugins/${name}.ts`, pluginSource(kind, name, properties));
  return `plugins/${name}.ts`;
}
const filtered = (path: string) => `actor_rollout_ref.rollout.rollout_filter_metric=${path}`;
const groups = ['es_manager.train.env_groups=4', 'es_manager.train.env_configs.n_groups=[4]'];

test('a filter that re-implements the built-in one gives the same run to the bit', async () => {
  const path = write(
    'filter',
    'own_std',
    `score: groups => groups.map(({ episodes }) => {
      const scores = episodes.map(({ score }) => score);
      const shift = scores.reduce((sum, x) => sum + (x - scores[0]), 0) / scores.length;
      return Math.sqrt(scores.reduce((sum, x) => sum + (x - scores[0] - shift) ** 2, 0) / (scores.length - 1));
    })`,
  );
  const builtIn = await trainHere(workspace, groups);
  const own = await trainHere(workspace, [...groups, filtered(path)]);
  expect(results(own.folder)).toEqual(results(builtIn.folder));
}, 120_000);

test('a filter that needs entropies gives the same run as the built-in filter by entropy', async () => {
  const mean = 'values.reduce((sum, x) => sum + (x - values[0]), 0) / values.length';
  const path = write(
    'filter',
    'own_entropy',
    `needs: 'entropy', score: groups => groups.map(({ episodes }) => {
      const values = episodes.map(({ entropy = NaN }) => entropy);
      return values[0] + ${mean};
    })`,
  );
  const half = [
    ...groups,
    'actor_rollout_ref.rollout.rollout_filter_strategy=top_k',
    'actor_rollout_ref.rollout.rollout_filter_value=0.5',
  ];
  const builtIn = await trainHere(workspace, [...half, filtered('entropy')], 1);
  const own = await trainHere(workspace, [...half, filtered(path)], 1);
  // The built-in filter also logs the entropies within groups.
  const logged = results(builtIn.folder);
  logged.metrics = logged.metrics.map(line =>
    Object.fromEntries(Object.entries(line).filter(([key]) => !key.includes('in_group_entropy_'))),
  );
  expect(results(own.folder)).toEqual(logged);
}, 120_000);

test('a filter with select keeps the groups that it names, and an invalid index ends the run', async () => {
  const score = 'score: groups => groups.map(({ group }) => group)';
  const path = write('filter', 'last', `${score}, select: scores => [scores.length - 1]`);
  const { episodes, lines } = await trainHere(workspace, [...groups, filtered(path)], 1);
  const kept = new Set(episodes.filter(episode => episode.kept).map(({ group_id }) => group_id));
  expect([...kept]).toEqual([Math.max(...episodes.map(({ group_id }) => group_id))]);
  expect(lines[0]['rollout/filter_kept_count']).toBe(1);
  write('filter', 'last', `${score}, select: scores => [scores.length]`);
  await expect(trainHere(workspace, [...groups, filtered(path)], 1)).rejects.toThrow(
    `plug-in ${path} returned 4 as the index of a group in select(): return distinct indices of groups, from 0 to 3`,
  );
}, 120_000);

test('a metric that re-implements built-in ones has their values to the bit', async () => {
  const mean = 'values.reduce((sum, value) => sum + value, 0) / values.length';
  const path = write(
    'metric',
    'own',
    `measure: ({ episodes, played }) => {
      const mean = (values: number[]) => ${mean};
      const turns = episodes.flatMap(({ turns }) => turns);
      const thinking = episodes.filter(({ thinks }) => thinks).flatMap(({ turns }) => turns);
      return {
        invalid: turns.filter(({ executed }) => executed.length === 0).length / turns.length,
        thoughts: thinking.filter(({ thought }) => thought?.trim()).length / thinking.length,
        actions: mean(played.map(({ metrics }) => metrics.num_actions)),
        return: mean(played.map(({ episodic_return }) => episodic_return)),
        errors: 1 - played.filter(({ error }) => error === undefined).length / played.length,
        full: mean(played.map(({ context_full }) => Number(context_full))),
      };
    }`,
  );
  const { lines } = await trainHere(
    workspace,
    ['agent_proxy.enable_think=true', `workbench.plugins.metrics=[${path}]`],
    2,
  );
  for (const line of lines) {
    const [actions] = Object.keys(line).filter(key => /^train\/[^/]+\/num_actions$/.test(key));
    const builtIn = {
      invalid: line['rollout/invalid_answer_rate'],
      thoughts: line['thoughts/rate'],
      actions: line[actions],
      return: line['charts/avg_episode_return'],
      errors: line['train/env_error_rate'],
      full: line['train/context_full'],
    };
    for (const [key, value] of Object.entries(builtIn)) expect(line[`plugins/own/${key}`]).toBe(value);
  }
}, 60_000);

test('a metric and a chart are logged and change nothing else; one that fails has no value and is reported once', async () => {
  const length = write(
    'metric',
    'length',
    `measure: ({ step, episodes, metrics }) => ({
      mean: episodes.reduce((sum, { tokens }) => sum + tokens, 0) / episodes.length,
      kept: episodes.filter(({ kept }) => kept).length,
      states: episodes[0].turns[0].state.length,
      step,
      copy: metrics['actor/entropy'],
    })`,
  );
  const broken = write('metric', 'broken', 'measure: ({ step }) => (step === 3 ? 1 : NaN)');
  const chart = write('chart', 'half_share', 'lines: ({ step }) => ({ whole: step, half: step / 2, none: undefined })');
  const listed = write('chart', 'listed', "title: 'Listed', keys: ['actor/entrpy', 'thoughts/*']");
  const wrong = write('chart', 'wrong', "lines: () => JSON.parse('3') as Record<string, number>");
  const plain = await trainHere(workspace, [], 3);
  const own = await trainHere(
    workspace,
    [`workbench.plugins.metrics=[${broken},${length}]`, `workbench.plugins.charts=[${chart},${listed},${wrong}]`],
    3,
  );
  const without = results(own.folder);
  without.metrics = without.metrics.map(line =>
    Object.fromEntries(Object.entries(line).filter(([key]) => !/^plugin(s|_charts)\//.test(key))),
  );
  expect(without).toEqual(results(plain.folder));
  for (const [i, line] of own.lines.entries()) {
    const played = own.episodes.filter(({ step }) => step === i + 1);
    expect(line['plugins/length/mean']).toBeCloseTo(Number(line['train/response_length']), 9);
    expect(line['plugins/length/kept']).toBe(played.filter(({ kept }) => kept).length);
    expect(line['plugins/length/step']).toBe(i + 1);
    expect(line['plugins/length/copy']).toBe(line['actor/entropy']);
    expect(line['plugins/broken']).toBe(i === 2 ? 1 : undefined);
    const drawn = Object.entries(line).filter(([key]) => key.startsWith('plugin_charts/'));
    expect(Object.fromEntries(drawn)).toEqual({
      'plugin_charts/half_share/whole': i + 1,
      'plugin_charts/half_share/half': (i + 1) / 2,
    });
  }
  expect(ownCharts(readRun(own.folder).events)).toEqual([
    { name: 'half_share', keys: ['plugin_charts/half_share/*'] },
    { name: 'listed', title: 'Listed', keys: ['actor/entrpy', 'thoughts/*'] },
    { name: 'wrong', keys: ['plugin_charts/wrong/*'] },
  ]);
  expect(own.events.filter(event => event.startsWith('warning: plug-in'))).toEqual([
    `warning: plug-in ${listed} has a chart of keys that no metric has (actor/entrpy): use keys of docs/METRICS.md, or plugins/<name> for a metric of the workspace`,
  ]);
  expect(own.events.filter(event => event.startsWith('plugin_error'))).toEqual([
    `plugin_error: plug-in ${broken} returned NaN for plugins/broken in measure(): return finite numbers, or leave the key out`,
    `plugin_error: plug-in ${wrong} returned 3 in lines(): return numbers by line, such as { words: 12 }`,
  ]);
}, 120_000);

test('an alarm on a metric of the workspace is raised once and can end the run', async () => {
  const metric = write('metric', 'falling', 'measure: ({ step }) => 10 - step');
  const rule = (bound: string) => `metric: 'plugins/falling', label: 'the number', side: 'under', steps: 2, ${bound}`;
  const alarm = write(
    'alarm',
    'low',
    rule("bound: before => (before.length < 1 ? null : { bound: before[0] - 0.5, label: 'its first value' })"),
  );
  const both = [`workbench.plugins.metrics=[${metric}]`, `workbench.plugins.alarms=[${alarm}]`, ...keepAll];
  const run = await trainHere(workspace, both, 4);
  const alarms = readRun(run.folder).events.filter(({ kind }) => kind === 'alarm');
  expect(alarms.map(({ message, data }) => [message, data])).toContainEqual([
    'the number was below its first value in each of the last 2 steps: 7, bound 8.5',
    { alarm: 'plugins/low', step: 3, metric: 'plugins/falling', value: 7, bound: 8.5 },
  ]);
  expect(alarms.filter(({ data }) => data?.alarm === 'plugins/low')).toHaveLength(1);

  const stopped = await trainHere(workspace, [...both, `workbench.watch.stop_on=[${alarm}]`], 6);
  expect(stopped.lines).toHaveLength(3);
  expect(stopped.lines[2]['early_stopped/low']).toBe(1);
  expect(stopped.events).toContain(`early_stop: the alarm of the plug-in ${alarm} is active (workbench.watch.stop_on)`);
  write('alarm', 'low', rule("bound: () => ({ bound: 1 / 0, label: '' })"));
  const failed = await trainHere(workspace, both, 3);
  expect(failed.events.filter(event => event.startsWith('plugin_error'))).toHaveLength(1);
}, 180_000);

test('a plug-in of another kind, an invalid rule, an unlisted alarm and equal names are refused', async () => {
  const metric = write('metric', 'one', 'measure: () => 1');
  await expect(trainHere(workspace, [filtered(metric)], 1)).rejects.toThrow(
    `plug-in ${metric} defines a plug-in of the kind metric, but actor_rollout_ref.rollout.rollout_filter_metric needs the kind filter`,
  );
  const alarm = write('alarm', 'bad', "metric: 'a', label: 'a', side: 'under', steps: 0, bound: () => null");
  await expect(trainHere(workspace, [`workbench.plugins.alarms=[${alarm}]`], 1)).rejects.toThrow(
    `plug-in ${alarm} has an alarm whose steps is 0`,
  );
  await expect(trainHere(workspace, [`workbench.watch.stop_on=[${alarm}]`], 1)).rejects.toThrow(
    `config: workbench.watch.stop_on names ${alarm}, which workbench.plugins.alarms does not list: add it there`,
  );
  workspace.write('plugins/two.ts', `export { default } from './one';`);
  await expect(trainHere(workspace, [`workbench.plugins.metrics=[${metric},plugins/two.ts]`], 1)).rejects.toThrow(
    `plug-in plugins/two.ts has the name one, which ${metric} has too: give it another name`,
  );
}, 120_000);
