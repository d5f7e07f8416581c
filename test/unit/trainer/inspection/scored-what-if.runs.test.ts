// A what-if episode has the reward components of the score functions with which the run played the original, even if the
// rewards file has been edited since; judges are not asked..
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { unknownKeys, keepAll, trainHere } from '../../../support/train-here';
import { makeWorkspace, type Workspace } from '../../../support/workspace';
import { Inspector } from '../../../../extension/trainer/inspection/inspector';
import { installation } from '../../../../extension/node/installation';
import { startPeer } from '../evaluation/api-peer';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const file = (letters: string) => `import { defineRewards } from 'ragen-workbench/api/rewards';
export default defineRewards({
  components: { letters: 0.1, turns: 1 },
  score: ({ answer }) => ({ letters: ${letters} }),
  scoreEpisode: ({ turns }) => ({ turns: turns.length }),
});
`;

test('a what-if is scored by the stored code, and says that it asks no judges', async () => {
  writeFileSync(join(workspace.folder, 'environments/words.rewards.ts'), file('(answer ?? "").length'));
  writeFileSync(join(workspace.folder, 'rubric.md'), 'Is it long?');
  const peer = await startPeer();
  peer.answer = () => ({ text: 'Score: 10' });
  process.env.RAGEN_TEST_JUDGE_KEY = peer.key;
  const inspector = new Inspector(1, { phase: () => undefined, whatIfTokens: () => undefined });
  try {
    const rewards = '{repetition:{weight:-1},judges:{length:{weight:3,rubric:rubric.md,models:[judge]}}}';
    const model = `{provider_name:openai,model_name:m,base_url:'${peer.url}/v1',api_key_env:RAGEN_TEST_JUDGE_KEY}`;
    const overrides = [
      `+custom_envs.Words.rewards=${rewards}`,
      `model_info={judge:${model}}`,
      'agent_proxy.max_turn=3',
    ];
    const run = await trainHere(workspace, [...keepAll, 'trainer.save_freq=1', ...overrides], 1);
    expect(unknownKeys(run.lines)).toEqual([]);
    const origin = run.episodes.find(({ turns, mode }) => mode === 'train' && turns.length === 3)!;
    expect(origin.components).toEqual({ turns: 3, length: 1 });
    const sent = peer.requests.length;
    writeFileSync(join(workspace.folder, 'environments/words.rewards.ts'), file('1000'));
    const { id, mode, step } = origin;
    const about = { folder: run.folder, mode, step, id };
    const { episode, notes } = await inspector.whatIf({
      ...about,
      turn: 2,
      given: { answer: 'abc' },
      checkpoint: 'step-000001',
      seed: 5,
    });
    expect(episode.turns[0]).toEqual(origin.turns[0]);
    expect(episode.turns[1]).toMatchObject({ components: { letters: 3, repetition: 0 } });
    expect(episode.turns[1].component_reward).toBeCloseTo(0.3, 12);
    expect(episode.components).toEqual({ turns: episode.turns.length });
    expect(notes).toEqual(['A what-if asks no judges, so these reward components are missing from its score: length.']);
    expect(peer.requests).toHaveLength(sent);
  } finally {
    delete process.env.RAGEN_TEST_JUDGE_KEY;
    await inspector.close();
    await peer.close();
  }
}, 180_000);
