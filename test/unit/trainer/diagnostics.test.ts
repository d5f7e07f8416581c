// Real steps with diagnostics, of the model that comes along on small lakes: what they leave in metrics and folder, and that the numbers
// can be computed again from what was left.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { collapseDiagnosisSchema, collapseFile } from '../../../extension/protocol/diagnostics';
import { collapseMetrics } from '../../../extension/trainer/diagnostics/collapse-metrics';
import { installation } from '../../../extension/trainer/installation';
import { keepAll, trainHere, unknownKeys } from './train-here';
import { makeWorkspace } from './workspace';
import type { Workspace } from './workspace';

vi.mock(import('../../../extension/trainer/installation'), async () =>
  (await import('./test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

/** Quickstart's lakes, on which the model thinks. */
const lakes = [
  'model_path=ragen-tiny',
  '+custom_envs.Lake={env_type: frozen_lake, max_actions_per_traj: 10, max_tokens: 60, env_instruction: Walk over the frozen lake to the goal and keep out of the holes., env_config: {size: 4, p: 0.8, is_slippery: false, success_rate: 1.0, observation_format: grid_coord}}',
  'es_manager.train.env_configs.tags=[Lake]',
  'es_manager.train.env_groups=4',
  'es_manager.train.env_configs.n_groups=[4]',
  'agent_proxy.enable_think=true',
  'actor_rollout_ref.actor.optim.lr=1e-5',
  'agent_proxy.max_actions_per_turn=2',
  'actor_rollout_ref.rollout.response_length=64',
  'actor_rollout_ref.rollout.max_model_len=1024',
  ...keepAll,
];

test('collapse is diagnosed at step 1 and every second step, from what the run folder keeps', async () => {
  const { folder, lines, episodes } = await trainHere(
    workspace,
    [
      ...lakes,
      'collapse_detection.compute_freq=2',
      'collapse_detection.num_samples=12',
      'workbench.collapse_turn_uniform=true',
    ],
    3,
  );
  expect(unknownKeys(lines).filter(key => !key.startsWith('train/Lake/'))).toEqual([]);
  const diagnosed = lines.filter(line => 'collapse_first_turn_sample/mi_estimate' in line);
  expect(diagnosed.map(({ step }) => step)).toEqual([1, 2]);
  expect(existsSync(join(folder, collapseFile(3)))).toBe(false);
  const spread: Record<string, ReturnType<typeof collapseMetrics>['spread']> = {};
  for (const line of diagnosed) {
    const written = JSON.parse(readFileSync(join(folder, collapseFile(line.step)), 'utf8')) as unknown;
    const { families } = collapseDiagnosisSchema.parse(written);
    expect(families.map(({ name }) => name)).toEqual([
      'collapse_first_turn_sample',
      'collapse_trajectory_sample',
      'collapse_turn_sample',
    ]);
    for (const { name, prompts, samples, column, metrics, ...rest } of families) {
      const { log_probs_per_token: perToken, lengths, signatures } = rest;
      const again = collapseMetrics({ perToken, lengths, columns: column, signatures }, spread[name] ?? null);
      spread[name] = again.spread;
      for (const [key, value] of Object.entries(again.metrics)) {
        expect(metrics[key], `${name}/${key}`).toBeCloseTo(value, 4);
        expect(line[`${name}/${key}`]).toBe(metrics[key]);
      }
      samples.forEach(({ episode: id, turn, text }, i) => {
        const episode = episodes.find(e => e.id === id)!;
        expect(episode.turns[turn - 1].raw).toContain(text);
        const { state } = episode.turns[turn - 1];
        expect(prompts[column[i]].text).toContain(state);
        expect(prompts[column[i]].text).toMatch(/<think>$/);
      });
      expect(metrics.mi_estimate).toBeGreaterThanOrEqual(metrics.mi_estimate_ci_low);
      expect(metrics.mi_estimate).toBeLessThanOrEqual(metrics.mi_estimate_ci_high);
      // Under its own prompt a thought is as likely as the sampler said, tag and turn's rest left out.
      expect(metrics.conditional_entropy_est).toBeGreaterThan(0);
      expect(metrics.conditional_entropy_est).toBeLessThan(Math.log(800));
    }
    expect(line['collapse/valid_thinking_rate']).toBeGreaterThan(0);
    expect(line['thoughts/distinct_2']).toBeGreaterThan(0);
  }
});

test('nothing is diagnosed in a windowed context', async () => {
  const { lines } = await trainHere(
    workspace,
    [
      ...lakes,
      'agent_proxy.context_window_mode=single_turn',
      'es_manager.train.env_groups=1',
      'es_manager.train.env_configs.n_groups=[1]',
    ],
    1,
  );
  expect(Object.keys(lines[0]).filter(key => key.startsWith('collapse'))).toEqual([]);
});
