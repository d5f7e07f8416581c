// `workbench.compat: ragen` in real runs: the scores that the rollout filter uses (docs/QUIRKS.md, 25).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, killAll, readRun } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

/** The in-group deviation that the filter reports for one step, and the deviation computed for each group. */
async function deviations(compat: string): Promise<{ reported: number; groups: number[] }> {
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
    ...['train', '--config-name', 'words', `workbench.compat=${compat}`],
    ...['trainer.total_training_steps=1', 'trainer.val_before_train=false', 'trainer.test_freq=-1'],
    ...['agent_proxy.reward_normalization.method=mean_std', 'es_manager.val.env_groups=1'],
    ...['es_manager.val.env_configs.n_groups=[1]', 'actor_rollout_ref.rollout.rollout_filter_value=1'],
  ]);
  expect(code, stderr).toBe(0);
  const { metrics, episodes } = readRun(answer.folder);
  const train = episodes.filter(({ mode }) => mode === 'train');
  const groups = [...new Set(train.map(e => e.group_id))].map(id => {
    const scores = train.filter(e => e.group_id === id).map(e => e.score);
    const mean = scores.reduce((sum, x) => sum + x, 0) / scores.length;
    return Math.sqrt(scores.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (scores.length - 1));
  });
  return { reported: metrics[0]['rollout/in_group_reward_std'] as number, groups };
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

test('the filter uses raw scores', async () => {
  const { reported, groups } = await deviations('corrected');
  expect(Math.max(...groups)).toBeGreaterThan(0.05);
  expect(reported).toBeCloseTo(mean(groups), 5);
});

test('with compat: ragen it uses normalised scores: a group’s deviation is 1 or 0', async () => {
  const { reported, groups } = await deviations('ragen');
  expect(reported).toBeCloseTo(mean(groups.map(std => Number(std > 1e-6))), 4);
  expect(reported).not.toBeCloseTo(mean(groups), 3);
});
