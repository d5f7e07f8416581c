// Plug-ins of all kinds that a run calls, edited while it trains: in the step that is running, the code with which it began
// is used; a save with an error is refused, and the mended code applies from the next step on.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import type { PluginKind } from '../../../../extension/protocol/plugin-link';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { train } from '../../../../extension/trainer/loop/train';
import { HeldEpisodes } from '../../../support/held-episodes';
import { openHere, wordsRun } from '../../../support/opened-run';
import { pluginSource } from '../../../support/plugin-source';
import { readRun, until } from '../../../support/terminal';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

/** The properties of each kind's definition, before and after the edit. */
const versions: Partial<Record<PluginKind, readonly [before: string, after: string]>> = {
  filter: [
    'score: groups => groups.map(() => 1), select: () => [0]',
    'score: groups => groups.map(() => 1), select: scores => [scores.length - 1]',
  ],
  loss: [
    `loss: sequences => sequences.map(({ mask, logprobs }) => ({
      loss: Float32Array.from(mask, () => 2), slope: Float32Array.from(mask, (_, t) => -1 - 0 * logprobs[t]) }))`,
    `loss: sequences => sequences.map(({ mask }) => ({ loss: Float32Array.from(mask, () => 5), slope: new Float32Array(mask.length) }))`,
  ],
  metric: ['measure: () => 1', 'measure: () => 2'],
  chart: ['lines: () => ({ line: 3 })', "title: 'Edited', lines: () => ({ line: 4 })"],
  alarm: [
    "metric: 'plugins/metric', label: 'the metric', side: 'over', steps: 1, bound: () => null",
    "metric: 'plugins/metric', label: 'the metric', side: 'over', steps: 1, bound: () => ({ bound: 1.5, label: 'a bound' })",
  ],
  memory: ["remember: () => 'Before the edit.'", "remember: () => 'After the edit.'"],
};
const kinds = Object.keys(versions) as PluginKind[];
const pathOf = (kind: PluginKind): string => `plugins/${kind}.ts`;

/** Saves a plug-in as editors do, by renaming a new file over the old one. */
function save(kind: PluginKind, properties: string): void {
  const file = join(workspace.folder, pathOf(kind));
  writeFileSync(`${file}.new`, pluginSource(kind, kind, properties));
  renameSync(`${file}.new`, file);
}

test('an edit of each kind applies from the next step on', async () => {
  for (const kind of kinds) workspace.write(pathOf(kind), '');
  for (const kind of kinds) save(kind, versions[kind]![0]);
  const held = new HeldEpisodes(workspace.folder);
  held.set('train');
  const folder = await wordsRun(workspace, [
    ...held.overrides,
    ...['agent_proxy.context_window_mode=single_turn', 'agent_proxy.max_context_window=2', 'agent_proxy.max_turn=3'],
    ...['es_manager.train.env_groups=4', 'es_manager.train.env_configs.n_groups=[4]'],
    `actor_rollout_ref.rollout.rollout_filter_metric=${pathOf('filter')}`,
    ...['actor_rollout_ref.actor.entropy_coeff=0', 'actor_rollout_ref.actor.use_kl_loss=false'],
    `actor_rollout_ref.actor.policy_loss.loss_mode=${pathOf('loss')}`,
    `workbench.plugins.metrics=[${pathOf('metric')}]`,
    `workbench.plugins.charts=[${pathOf('chart')}]`,
    `workbench.plugins.alarms=[${pathOf('alarm')}]`,
    `workbench.plugins.memory=${pathOf('memory')}`,
  ]);
  const { run, state, events, close } = await openHere(folder, workspace);
  const ofKind = (kind: RunEvent['kind']) => events.filter(event => event.kind === kind);
  const trained = train(run, state);
  await held.reached('train');
  for (const [event, suffix] of [
    ['plugin_refused', ', unknown_property: 1'],
    ['plugin_mended', ''],
  ] as const) {
    for (const kind of kinds) save(kind, versions[kind]![1] + suffix);
    await until(`all plug-ins have the event ${event}`, () => ofKind(event).length === kinds.length);
  }
  expect(ofKind('plugin_refused').flatMap(({ data }) => data?.problems)).toEqual(
    kinds.map(() => expect.objectContaining({ kind: 'type' }) as unknown),
  );
  held.release('train');
  expect(await trained).toBe('finished');
  await close();

  const reloads = ofKind('plugin_reload').map(({ data }) => data);
  expect(reloads.map(data => [data?.plugin, data?.step]).sort()).toEqual(kinds.map(kind => [pathOf(kind), 2]).sort());
  const { metrics, episodes } = readRun(folder.path);
  const plan = { name: 'chart', keys: ['plugin_charts/chart/*'] };
  expect(ofKind('plugin_charts').map(({ data }) => data)).toEqual([
    { charts: [plan] },
    { charts: [{ ...plan, title: 'Edited' }] },
  ]);
  expect(metrics.map(line => line['plugins/metric'])).toEqual([1, 2]);
  expect(metrics.map(line => line['plugin_charts/chart/line'])).toEqual([3, 4]);
  expect(metrics.map(line => Number(line['actor/pg_loss']).toFixed(3))).toEqual(['2.000', '5.000']);
  expect(metrics.map(line => Number(line['actor/grad_norm']) > 0)).toEqual([true, false]);
  const raised = ofKind('alarm').filter(({ data }) => data?.alarm === 'plugins/alarm');
  expect(raised.map(({ data }) => data?.step)).toEqual([2]);
  for (const step of [1, 2]) {
    const played = episodes.filter(episode => episode.step === step);
    const groups = [...new Set(played.map(({ group_id }) => group_id))].sort((a, b) => a - b);
    const kept = new Set(played.filter(episode => episode.kept).map(({ group_id }) => group_id));
    expect([...kept]).toEqual([step === 1 ? groups[0] : groups.at(-1)]);
    const told = played.filter(({ turns }) => turns.length > 1).map(({ messages }) => JSON.stringify(messages));
    expect(told.length).toBeGreaterThan(0);
    for (const text of told) expect(text).toContain(step === 1 ? 'Before the edit.' : 'After the edit.');
  }
}, 240_000);
