// Real steps with diagnostics, of the bundled model on small lakes: metrics and files, whose values are recomputed from
// the files.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  collapseDiagnosisSchema,
  collapseFile,
  gradientAnalysisSchema,
  gradientsFile,
} from '../../../../extension/run-data/diagnostics';
import { checkpointFolder } from '../../../../extension/run-data/run-file-names';
import { collapseMetrics } from '../../../../extension/trainer/diagnostics/collapse-metrics';
import type { CollapseState } from '../../../../extension/trainer/diagnostics/collapse-metrics';
import { installation } from '../../../../extension/node/installation';
import { keepAll, trainHere, unknownKeys } from '../../../support/train-here';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

/** Overrides for quickstart's lakes, on which the model thinks. */
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

test('collapse is diagnosed at step 1 and every second step, from data in the run folder', async () => {
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
  const checkpoint = join(folder, checkpointFolder(3), 'checkpoint.json');
  const { state } = JSON.parse(readFileSync(checkpoint, 'utf8')) as { state: { collapse: CollapseState } };
  for (const [name, { token, sequence }] of Object.entries(state.collapse.spread)) {
    expect(diagnosed[1][`${name}/marginal_std_ema`]).toBe(token);
    expect(diagnosed[1][`${name}/marginal_std_ema_seq`]).toBe(sequence);
  }
  expect(Object.keys(state.collapse.spread)).toHaveLength(3);
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
      // Minus the mean log-prob of the thoughts' tokens under their own prompts is at most the uniform distribution's
      // entropy.
      expect(metrics.conditional_entropy_est).toBeGreaterThan(0);
      expect(metrics.conditional_entropy_est).toBeLessThan(Math.log(800));
    }
    expect(line['collapse/valid_thinking_rate']).toBeGreaterThan(0);
    expect(line['thoughts/distinct_2']).toBeGreaterThan(0);
  }
});

test('no diagnosis is made in a windowed context', async () => {
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

/** Overrides for two steps on words, in which the filter drops groups and the loss has all three parts. */
const withKl = [
  'actor_rollout_ref.actor.use_ref=true',
  'actor_rollout_ref.actor.use_kl_loss=true',
  'actor_rollout_ref.actor.kl_loss_coef=0.01',
  'es_manager.train.env_groups=4',
  'es_manager.train.env_configs.n_groups=[4]',
  'actor_rollout_ref.rollout.rollout_filter_value=0.6',
];
const analysing = [
  'trainer.gradient_analysis_mode=true',
  'trainer.gradient_analysis_every=2',
  'actor_rollout_ref.rollout.gradient_analysis_num_buckets=2',
];

test('gradients are measured by bucket, before and after the filter, without effect on the run', async () => {
  const plain = await trainHere(workspace, withKl, 2);
  const { folder, lines } = await trainHere(
    workspace,
    [...withKl, ...analysing, 'trainer.gradient_analysis_log_prefilter=true'],
    2,
  );
  const measured = (line: object): boolean => Object.keys(line).some(key => /^grad_/.test(key));
  expect(lines.map(measured)).toEqual([true, false]);
  const same = (line: object) =>
    Object.entries(line).filter(([key]) => !/^(grad_|timing_|perf\/|time$|wall_s)/.test(key));
  expect(lines.map(same)).toEqual(plain.lines.map(same));
  expect(unknownKeys(lines)).toEqual([]);

  const file = readFileSync(join(folder, gradientsFile(1)), 'utf8');
  const { analyses } = gradientAnalysisSchema.parse(JSON.parse(file));
  expect(analyses.map(({ name }) => name)).toEqual(['grad_norm', 'grad_norm_prefilter']);
  const [kept, whole] = analyses.map(({ buckets }) => buckets.find(({ name }) => name === 'all')!);
  expect(whole.groups).toHaveLength(4);
  for (const { name, parts, buckets, cosines } of analyses) {
    expect(parts).toEqual(['task', 'entropy', 'kl']);
    const apart = buckets.filter(bucket => bucket.name !== 'all');
    const all = buckets.find(bucket => bucket.name === 'all')!;
    expect(apart.reduce((sum, { samples }) => sum + samples, 0)).toBe(all.samples);
    const stds = apart.map(({ groups }) => groups.map(({ reward_std }) => reward_std));
    expect(stds).toHaveLength(2);
    expect(Math.max(...stds[0])).toBeLessThanOrEqual(Math.min(...stds[1]));
    for (const bucket of buckets)
      bucket.gradients.forEach(({ norm }, p) => {
        const key = `${name}/${bucket.name}`;
        expect(lines[0][`${key}/${parts[p]}`]).toBe(norm);
        expect(lines[0][`${key}/per_token/${parts[p]}`]).toBeCloseTo(norm / bucket.tokens, 12);
        if (bucket.name === 'all') expect(lines[0][`${name}/${parts[p]}`]).toBe(norm);
      });
    cosines.forEach((row, i) => expect(row[i] ?? 1).toBeCloseTo(1, 5));
  }
  // The filter keeps the groups with the largest deviation, which form the upper bucket before the filter.
  expect(kept.groups).toHaveLength(2);
  kept.gradients.forEach(({ norm }, p) => expect(norm).toBeCloseTo(analyses[1].buckets[1].gradients[p].norm, 6));
});

test('gradients can be measured on a separate rollout, without effect on training', async () => {
  const plain = await trainHere(workspace, withKl, 2);
  const { folder, lines } = await trainHere(
    workspace,
    [...withKl, ...analysing, 'trainer.gradient_analysis_env_groups=8', 'trainer.gradient_analysis_group_size=3'],
    2,
  );
  const same = (line: object) =>
    Object.entries(line).filter(([key]) => !/^(grad_|timing_|perf\/|time$|wall_s)/.test(key));
  expect(lines.map(same)).toEqual(plain.lines.map(same));
  expect(unknownKeys(lines)).toEqual([]);
  expect(lines[0]).toMatchObject({
    'grad_analysis/source_env_groups': 8,
    'grad_analysis/source_group_size': 3,
    'grad_analysis/uses_training_batch': 0,
    'grad_analysis/empty_after_filter': 0,
  });
  const file = readFileSync(join(folder, gradientsFile(1)), 'utf8');
  const [{ buckets }] = gradientAnalysisSchema.parse(JSON.parse(file)).analyses;
  const all = buckets.find(({ name }) => name === 'all')!;
  expect(all.samples).toBe(3 * all.groups.length);
  expect(all.groups.length).toBeGreaterThan(2); // more than the step's own filter keeps
});

test('if the filter keeps no group, the gradients of the complete rollout are measured', async () => {
  const same = 'environments/all-the-same.ts';
  workspace.write(
    same,
    wordsEnvironment("return { observation: '', reward: 0, terminated: false, truncated: false, info: {} };"),
  );
  const { folder, lines } = await trainHere(
    workspace,
    [
      ...withKl,
      ...analysing,
      `custom_envs.Words.env_type=${same}`,
      'es_manager.format_penalty=0',
      'trainer.gradient_analysis_log_prefilter=true',
    ],
    1,
  );
  expect(lines[0]).toMatchObject({ 'rollout/empty_after_filter': 1, 'grad_analysis/empty_after_filter': 1 });
  const file = readFileSync(join(folder, gradientsFile(1)), 'utf8');
  const { analyses } = gradientAnalysisSchema.parse(JSON.parse(file));
  expect(analyses.map(({ name }) => name)).toEqual(['grad_norm_prefilter']);
  expect(lines[0]['grad_norm_prefilter/task']).toBeCloseTo(0, 6); // all scores are equal
  expect(lines[0]['grad_norm_prefilter/entropy']).toBeGreaterThan(0);
  expect(lines[0]).not.toHaveProperty(['grad_norm/task']);
});

test('a run can measure gradients and end without training', async () => {
  const { lines, events, end } = await trainHere(
    workspace,
    [...withKl, ...analysing, 'trainer.gradient_analysis_only=true', 'trainer.exit_after_gradient_analysis=true'],
    3,
  );
  expect(end).toBe('finished');
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toHaveProperty(['actor/grad_norm']);
  expect(lines[0]['grad_norm/task']).toBeGreaterThan(0);
  expect(events).toContain(
    'early_stop: the run ends because its gradients have been measured (trainer.exit_after_gradient_analysis)',
  );
});
