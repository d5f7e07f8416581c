// Observations of 2^20 characters, the contract's maximum. With the shipped tokenizer, each observation ends its own
// episode with a message that it does not fit; the other episodes of the batch continue.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { largest } from '../../../../extension/protocol/environment-message-bounds';
import { installation } from '../../../../extension/node/installation';
import { trainHere } from '../../../support/train-here';
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

/** Member 1 returns a long text in its first step, member 2 in its reset. */
const longTexts = wordsEnvironment(
  `if (member === 1) return { observation: 'y'.repeat(${largest}), reward: 1, terminated: false, truncated: false, info: {} };`,
).replace(`'word ' + (seed % 7)`, `member === 2 ? 'x'.repeat(${largest}) : 'word ' + (seed % 7)`);

test('overlong observations end only their own episodes', async () => {
  workspace.write('environments/words.ts', longTexts);
  const groups = ['es_manager.train.env_groups=1', 'es_manager.train.env_configs.n_groups=[1]'];
  const { episodes, end } = await trainHere(
    workspace,
    ['agent_proxy.max_turn=3', 'ppo_mini_batch_size=2', 'micro_batch_size_per_gpu=2', ...groups],
    1,
  );
  expect(end).toBe('finished');
  expect(episodes).toHaveLength(4);
  for (const { member, turns, truncated, context_reason, final_state } of episodes) {
    const reason = (turn: number) =>
      new RegExp(
        `^environment Words returned an observation that is too long \\(turn ${turn}, seed \\d+, member ${member}\\), because the prompt of \\d{6,7} tokens .*shorten the observation$`,
      );
    if (member === 2) {
      expect([turns.length, truncated, final_state.length]).toEqual([0, true, largest]);
      expect(context_reason).toMatch(reason(1));
    } else if (final_state.length === largest) {
      expect(truncated).toBe(true);
      expect(context_reason).toMatch(reason(turns.length + 1));
    } else expect(context_reason).toBeUndefined();
  }
  expect(episodes.some(({ member, final_state }) => member === 1 && final_state.length === largest)).toBe(true);
});
