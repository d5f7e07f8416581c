// A run with slow environments yields bitwise equal metrics, episodes and weights in lock step with one process and
// asynchronously with several processes, although waiting times differ.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { results } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () => {
  const { testInstallation } = await import('../../../support/test-installation');
  return testInstallation();
});

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  const wait = `if (Math.random() < 0.3) await new Promise(done => setTimeout(done, Math.random() * 150));`;
  workspace.write('environments/uneven.ts', wordsEnvironment(wait));
});
afterAll(() => workspace.remove());

const trained = (...overrides: string[]) =>
  trainHere(workspace, [
    ...['custom_envs.Words.env_type=environments/uneven.ts', 'custom_envs.Words.max_actions_per_traj=9'],
    ...['agent_proxy.max_turn=3', 'trainer.val_before_train=true', 'trainer.test_freq=2', ...overrides],
  ]);

test.each([
  ['whole chats', []],
  ['windows', ['agent_proxy.context_window_mode=limited_multi_turn', 'agent_proxy.max_context_window=2']],
])('%s: lock step and asynchronous rollouts yield the same run', async (_, overrides) => {
  const plain = await trained('workbench.async_rollout=false', ...overrides);
  const parallel = ['+custom_envs.Words.parallel_friendly=true', '+custom_envs.Words.max_workers=8'];
  const several = await trained('workbench.async_rollout=true', ...parallel, ...overrides);
  const expected = results(plain.folder);
  expect(Object.keys(expected.weights).length).toBeGreaterThan(1);
  expect(plain.episodes.some(({ turns }) => turns.filter(turn => turn.executed.length > 0).length > 1)).toBe(true);
  expect(plain.lines.at(-1)!['actor/grad_norm']).toBeGreaterThan(0);
  expect(results(several.folder)).toEqual(expected);
});
