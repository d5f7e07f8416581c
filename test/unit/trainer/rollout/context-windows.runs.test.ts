// Each context mode, shortened chats and answers without a mask train for two steps in the real trainer. The log-probs
// of the training graph and of the sampler are equal only for equal contexts, so the test verifies each sample's
// context by comparing them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { document, killAll, readRun } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

async function trained(...overrides: string[]) {
  const always = [
    ...['trainer.total_training_steps=2', 'trainer.val_before_train=false', 'trainer.test_freq=-1'],
    ...['trainer.save_freq=-1', 'agent_proxy.max_turn=4', 'custom_envs.Words.max_actions_per_traj=20'],
    ...[
      'actor_rollout_ref.rollout.rollout_filter_value=1',
      'actor_rollout_ref.rollout.rollout_filter_include_zero=true',
    ],
    ...['es_manager.val.env_groups=1', 'es_manager.val.env_configs.n_groups=[1]'],
  ];
  const args = ['train', '--config-name', 'words', ...always, ...overrides];
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, args);
  expect(code, stderr).toBe(0);
  const { metrics, episodes } = readRun(answer.folder);
  expect(metrics).toHaveLength(2);
  for (const line of metrics) {
    expect(line['actor/grad_norm']).toBeGreaterThan(0);
    expect(line['rollout_corr/prob_diff_mean']).toBeLessThan(1e-4);
  }
  return { metrics, episodes: episodes.filter(({ mode }) => mode === 'train') };
}

/** Ids and mask of each training sample of an episode. */
const samplesOf = ({ tokens: { ids, mask, starts = [0] } }: Episode) =>
  starts.map((from, index) => ({ ids: ids.slice(from, starts[index + 1]), mask: mask.slice(from, starts[index + 1]) }));

test.each([
  ['limited_multi_turn', 2],
  ['single_turn', -1],
])('%s trains one sample per turn, and counts each episode once in its group', async (mode, turns) => {
  const window = [`agent_proxy.context_window_mode=${mode}`, `agent_proxy.max_context_window=${turns}`];
  const { metrics, episodes } = await trained(...window, 'algorithm.norm_adv_by_std_in_grpo=false');
  for (const episode of episodes) {
    const samples = samplesOf(episode);
    expect(samples).toHaveLength(episode.turns.length);
    for (const { mask } of samples) expect(mask.lastIndexOf(0)).toBe(mask.indexOf(1) - 1); // the answer, to the end
  }
  const first = episodes.filter(({ step }) => step === 1);
  expect(new Set(first.map(({ turns }) => turns.length)).size).toBeGreaterThan(1);
  expect(metrics[0]['train/batch_size']).toBe(first.reduce((sum, { turns }) => sum + turns.length, 0));
  for (const group of [0, 1]) {
    const members = first.filter(({ group_id }) => group_id === group);
    const mean = members.reduce((sum, { score }) => sum + score, 0) / members.length;
    for (const { advantage, score } of members) expect(advantage).toBeCloseTo(score - mean, 4);
  }
});

test('a chat that exceeds the model’s length continues in a new sample without its oldest turns', async () => {
  const { metrics, episodes } = await trained('actor_rollout_ref.rollout.max_model_len=140');
  expect(metrics[0]['train/context_shortened']).toBeGreaterThan(0);
  const shortened = episodes.filter(({ tokens }) => tokens.starts);
  expect(shortened.length).toBeGreaterThan(0);
  for (const episode of episodes) for (const { ids } of samplesOf(episode)) expect(ids.length).toBeLessThanOrEqual(140);
});

test('without a response mask, all tokens after the system message are trained on', async () => {
  const { episodes } = await trained('enable_response_mask=false');
  const beyond = episodes.map(({ tokens }) => tokens.advantages!.filter((a, t) => a !== 0 && !tokens.mask[t]).length);
  expect(beyond.some(tokens => tokens > 0)).toBe(true);
});

test('answers with thinking start inside a thought', async () => {
  const { episodes } = await trained('agent_proxy.enable_think=true');
  expect(episodes.every(({ turns }) => turns.every(({ raw }) => raw.startsWith('<think>')))).toBe(true);
});
