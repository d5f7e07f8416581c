// Each adapter reads the files of its trainer (test/golden/foreign-runs/README.md says which writer made them).
import { cpSync, mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renameOf as verlName } from '../../../extension/foreign-runs/adapters/verl';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const attach = (path: string) => attachOnce(workspace(), join(samples, path));

it('verl: file logger, rollouts with uids, validation, configuration', async () => {
  const { adapter, folder, metrics, episodes } = await attach('verl');
  expect(adapter).toBe('verl');
  expect(folder.manifest).toMatchObject({ name: 'frozenlake_grpo', trainer: { name: 'verl' } });
  expect(folder.manifest.config).toMatchObject({ algorithm: { adv_estimator: 'grpo' } });
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  expect(metrics[1]).toMatchObject({ 'critic/score/mean': 0.25, 'actor/entropy': 0.62, wall_s: 31.4 });
  expect(metrics[1]).toMatchObject({ 'rollout_corr/prob_diff_mean': 0.0031 });
  expect(Object.keys(episodes)).toEqual(['step-000001', 'step-000002', 'step-000003', 'val-000003']);
  expect(episodes['step-000001'].map(({ group_id, member }) => [group_id, member])).toEqual([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ]);
  const [first] = episodes['step-000001'];
  expect(first).toMatchObject({ reward: 1, success: null, advantage: null, tokens: { ids: [] } });
  expect(first.turns.map(({ thought, answer, reward }) => [thought, answer, reward])).toEqual([
    ['The goal is two rows below me, so down.', 'Down || Down', 0],
    ['Now two columns are left, so right twice.', 'Right || Right', 1],
  ]);
  expect(first.turns[0].state).toBe('Turn 1:\nState:\nP_O\n_O_\n__G');
  expect(folder.readStatus()).toMatchObject({ state: 'finished', step: 3, total_steps: 3, reward: 0.75 });
});

it('verl: older dumps without uids are grouped by equal prompts, and have success', async () => {
  const { episodes } = await attach('verl/rollout_data_legacy_0.8');
  expect(episodes['step-000001'].map(({ group_id, success }) => [group_id, success])).toEqual([
    [0, false],
    [1, true],
    [0, false],
    [1, false],
  ]);
});

it('verl: the console log is read if nothing else has metrics', async () => {
  const { metrics, missing } = await attach('verl/train.log');
  expect(metrics.map(line => [line.step, line['training/num_turns/mean']])).toEqual([
    [1, 4],
    [2, 4],
    [3, expect.any(Number)],
  ]);
  expect(missing.join()).toContain('trainer.rollout_data_dir');
});

it('verl: other names of the same quantities become RAGEN’s, and others are kept', () => {
  expect(
    [
      'critic/score/mean',
      'val-core/openai/gsm8k/acc/mean@8',
      'val-aux/sokoban/traj_success/mean@1',
      'val-core/FrozenLake/reward/mean@1',
      'val-core/gsm8k/acc/best@8/mean',
      'training/rollout_probs_diff_mean',
      'training/rollout_probs_diff_max',
      'mismatch/mismatch_k3_kl',
      'mismatch/mismatch_log_ppl_diff',
      'mismatch/rollout_is_eff_sample_size',
      'mismatch/rollout_is_seq_max_deviation',
      'num_turns/mean',
    ].map(verlName),
  ).toEqual([
    'critic/score/mean',
    'val-env/openai_gsm8k/success',
    'val-env/sokoban/success',
    'val-core/FrozenLake/reward/mean@1',
    'val-core/gsm8k/acc/best@8/mean',
    'rollout_corr/prob_diff_mean',
    'training/rollout_probs_diff_max',
    'rollout_corr/k3_kl',
    'mismatch/mismatch_log_ppl_diff',
    'rollout_corr/rollout_is_eff_sample_size',
    'mismatch/rollout_is_seq_max_deviation',
    'num_turns/mean',
  ]);
});

it('TensorBoard: scalars of an event file', async () => {
  const { adapter, metrics } = await attach('verl/tensorboard_log');
  expect(adapter).toBe('tensorboard');
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  expect(metrics[1]['critic/score/mean']).toBe(0.25);
  expect((await attach('openrlhf')).metrics).toHaveLength(3);
});

it('RAGEN: each evaluation is a validation, with the success of its tag', async () => {
  const { adapter, episodes } = await attach('ragen');
  expect(adapter).toBe('ragen');
  expect(Object.keys(episodes)).toEqual(['val-000001', 'val-000002', 'val-000003']);
  const [episode] = episodes['val-000003'];
  expect(episode).toMatchObject({ tag: 'FrozenLake', success: true, reward: 1, final_state: 'G reached' });
});

it('VAGEN: turns by the chat markers, and evaluations with rewards of turns', async () => {
  const dump = await attach('vagen/rollout_data');
  expect(dump.adapter).toBe('vagen');
  const solved = dump.episodes['step-000001'][2];
  expect(solved).toMatchObject({ success: true, messages: { length: 5 } });
  expect(solved.turns[0].state).toBe('Turn 1:\nState:\n<image>');
  const { episodes } = await attach('vagen/rollouts');
  const [evaluated] = episodes['val-000000'];
  expect(evaluated).toMatchObject({ tag: 'FrozenLake', success: true, seed: 0, terminated: true });
  expect(evaluated.turns.map(({ reward }) => reward)).toEqual([0, 1]);
  expect(evaluated.turns[0].state).toContain('[image]');
});

it('prime-rl: rows of a step are merged; token ids, log-probs and advantages are kept', async () => {
  const { adapter, metrics, episodes } = await attach('prime-rl');
  expect(adapter).toBe('prime-rl');
  expect(metrics[0]).toMatchObject({
    'critic/score/mean': 0.25,
    'actor/grad_norm': 0.3,
    'actor/entropy': 0.6,
    'train/frozenlake/success': 0.25,
    'mismatch_kl/all/mean': 0.0004,
    time: '2026-11-21T10:00:30.000Z',
  });
  const [episode] = episodes['step-000001'];
  const [from, to] = episode.turns[0].span;
  expect(episode.tokens.ids.slice(from, to)).toEqual([1977, 2558, 2391, 2374]);
  expect(episode.tokens.logprobs.slice(from, to)).toEqual([-0.7358, -0.8367, -0.5018, -0.3752]);
  expect(episode.tokens.mask.slice(0, from)).not.toContain(1);
  expect(episode).toMatchObject({ advantage: 1, success: true, tag: 'frozenlake' });
});

it('verifiers: evaluations of both formats; several runs in one folder are refused', async () => {
  const traced = await attach('verifiers/outputs/frozenlake--qwen3-0.6b--null--d4e5f6');
  expect(traced.episodes['val-000000'][0]).toMatchObject({ success: true, reward: 1, tokens: { ids: [] } });
  const legacy = await attach('verifiers/outputs/evals');
  expect(legacy.episodes['val-000000'].map(({ group_id }) => group_id)).toEqual([0, 0, 1, 1]);
  expect(legacy.metrics[0]).toMatchObject({ 'val-env/frozenlake/success': 0.25 });
  await expect(attach('verifiers')).rejects.toThrow('contains 2 runs of verifiers');
});

it('verifiers: an evaluation is recognised before its first rollout is finished', async () => {
  const begun = join(workspace(), 'begun');
  cpSync(join(samples, 'verifiers-lake-count'), begun, { recursive: true });
  const traces = readFileSync(join(begun, 'traces.jsonl'));
  writeFileSync(join(begun, 'traces.jsonl'), '');
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(join(begun, 'traces.jsonl'), old, old);
  const { adapter, episodes, folder } = await attachOnce(workspace(), begun);
  expect([adapter, episodes]).toEqual(['verifiers', {}]);
  writeFileSync(join(begun, 'traces.jsonl'), traces);
  utimesSync(join(begun, 'traces.jsonl'), old, old);
  const after = await attachOnce(workspace(), begun, { earlier: folder });
  expect(after.episodes['val-000000'].map(({ group_id, reward }) => [group_id, reward])).toEqual(
    [[0, 0], [0, 1], [0, 0], [1, 0], [1, 0], [1, 0]], // prettier-ignore
  );
  expect(after.episodes['val-000000'][0]).toMatchObject({ tag: 'lake-count-v1', metrics: { characters: 67 } });
});

it('SkyRL: evaluations, with scores per token summed', async () => {
  const { adapter, metrics, episodes, missing } = await attach('skyrl');
  expect(adapter).toBe('skyrl');
  expect(episodes['val-000003'].map(({ reward }) => reward)).toEqual([1, 1, 1, expect.any(Number)]);
  expect(metrics).toMatchObject([{ step: 3, 'eval/frozenlake_test/avg_score': 0.75 }]);
  expect(missing.join()).toContain('trainer.logger="tensorboard"');
});

it('TRL: completions as messages and as text, and the history of the newest checkpoint', async () => {
  const newer = await attach('trl/trl-1.16');
  expect(newer.adapter).toBe('trl');
  expect(newer.metrics[0]).toMatchObject({
    'critic/score/mean': 0.25,
    'actor/entropy': 0.6,
    'rollout/zero_variance_ratio': 0.5,
  });
  expect(newer.folder.readStatus()?.state).toBe('finished');
  const [first, second] = newer.episodes['step-000002'];
  expect([first.advantage, second.advantage, first.group_id, second.group_id]).toEqual([1, -1, 0, 0]);
  const older = await attach('trl/trl-1.14');
  expect(older.episodes['step-000001'][0]).toMatchObject({ reward: 1, success: true, turns: { length: 2 } });
});

it('tinker-cookbook: steps from 0, summaries without texts', async () => {
  const { adapter, metrics, episodes, folder } = await attach('tinker-cookbook');
  expect(adapter).toBe('tinker-cookbook');
  expect(metrics.map(line => [line.step, line['critic/score/mean']])).toEqual([
    [0, 0.25],
    [1, 0.5],
    [2, 0.75],
  ]);
  expect(episodes['step-000001'][0].turns.map(({ raw, reward }) => [raw, reward])).toEqual([
    ['action: Down || Down', 0],
    ['action: Right || Right', 1],
  ]);
  expect(episodes['val-000000'].map(({ mode }) => mode)).toContain('val');
  expect(folder.readStatus()?.state).toBe('finished');
});

it('tinker-cookbook: a recipe’s metrics of turns, its task metric, and the number of its last step', async () => {
  const { metrics, episodes, folder } = await attach('tinker-cookbook-arithmetic');
  expect(metrics.map(line => [line.step, line['critic/score/mean'], line['train/all/success']])).toEqual(
    [[0, -0.1, 0], [1, -0.1, 0], [2, -0.1, 0]], // prettier-ignore
  );
  expect(Object.values(episodes).map(({ length }) => length)).toEqual([4, 4, 4]);
  const [episode] = episodes['step-000000'];
  expect(episode).toMatchObject({ tag: 'problems', score: -0.1, success: false, metrics: { format: 0, correct: 0 } });
  expect(folder.readStatus()).toMatchObject({ state: 'finished', step: 2, total_steps: 2, success: 0 });
});

it('JSON lines: usual names of fields, steps in the lines, and a mapping for other names', async () => {
  const { adapter, episodes } = await attach('openai-messages');
  expect(adapter).toBe('json-lines');
  expect(Object.keys(episodes)).toEqual(['step-000001', 'step-000002', 'step-000003']);
  const own = join(workspace(), 'own');
  mkdirSync(own);
  const line = (step: number) => JSON.stringify({ it: step, q: 'two?', a: 'two', points: step, loss: 1 });
  writeFileSync(join(own, 'a.jsonl'), `${line(1)}\n${line(2)}\n${line(2)}`);
  const fields = { step: 'it', prompt: 'q', completion: 'a', reward: 'points' };
  const mapped = await attachOnce(workspace(), own, { mapping: { fields } });
  expect(Object.entries(mapped.episodes).map(([name, all]) => [name, all.length])).toEqual([
    ['step-000001', 1],
    ['step-000002', 1], // the last line may still be written
  ]);
  await expect(attachOnce(workspace(), own, { mapping: { fields: { rewards: 'x' } } })).rejects.toThrow(
    'fields.rewards',
  );
});

it('nothing in the trainer’s folder is written or touched', async () => {
  const copy = join(workspace(), 'copy');
  cpSync(join(samples, 'verl'), copy, { recursive: true });
  const old = new Date('2026-01-01');
  const all = () => readdirSync(copy, { recursive: true, encoding: 'utf8' }).sort();
  for (const name of all()) utimesSync(join(copy, name), old, old);
  const before = all();
  await attachOnce(workspace(), copy);
  expect(all()).toEqual(before);
  for (const name of before) expect(statSync(join(copy, name)).mtime).toEqual(old);
});

it('an unknown version names the known versions, and unknown files the known trainers', async () => {
  const folder = join(workspace(), 'newer');
  cpSync(join(samples, 'tinker-cookbook/frozenlake-run'), folder, { recursive: true });
  writeFileSync(
    join(folder, 'iteration_000001/train_rollout_summaries.jsonl'),
    '{"schema_version": 7, "total_reward": 1, "steps": []}\n',
  );
  const { episodes, folder: run } = await attachOnce(workspace(), folder);
  expect(Object.keys(episodes)).not.toContain('step-000001');
  expect(readFileSync(run.file('events.jsonl'), 'utf8')).toContain('schema_version 7, but the known versions are 1');
  const empty = join(workspace(), 'empty');
  mkdirSync(empty);
  await expect(recognise(await SourceFolder.open(empty))).rejects.toThrow('known: prime-rl, verifiers');
});
