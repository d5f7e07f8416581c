// Self-play of two roles: turns and samples by role, what each role's context contains, credit and advantages by role,
// metrics by role, and a resume that is equal to the bit.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import type { Episode } from '../../../../extension/run-data/episode';
import { document, readRun } from '../../../support/terminal';
import { deviation, groupsOf, keepAll, mean, trainHere, unknownKeys } from '../../../support/train-here';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

/** Two roles answer in turns, twice each; a role earns the length of its answers minus that of the other's. */
const contest = `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'contest',
  config: z.object({}),
  instruction: 'Say a word.',
  roles: { long: { instruction: 'You are LONG.' }, short: { instruction: 'You are SHORT.' } },
  create() {
    let turns = 0;
    let seed = 0;
    return {
      reset: options => (([turns, seed] = [0, options.seed]), { observation: 'first ' + (seed % 5), role: 'long' }),
      step(action) {
        const acting = turns++ % 2 === 0 ? 'long' : 'short';
        const other = acting === 'long' ? 'short' : 'long';
        const reward = (String(action).length % 7) / 4;
        const over = turns === 4;
        return {
          observation: 'for ' + other + ' ' + turns,
          reward, terminated: over, truncated: false, info: { success: over },
          ...(!over && { role: other }),
          roles: { [other]: { reward: -reward }, [acting]: { success: reward > 0.5 } },
        };
      },
    };
  },
});
`;

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write('environments/contest.ts', contest);
});
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const overrides = [
  '+custom_envs.Contest={env_type: environments/contest.ts, max_actions_per_traj: 4, env_config: {}}',
  'es_manager.train.env_configs.tags=[Contest]',
  'agent_proxy.max_turn=6',
  'es_manager.train.group_size=4',
  'algorithm.adv_estimator=grpo',
  ...keepAll,
];

/** Tokens of each sample of an episode. */
function samplesOf({ tokens }: Episode): { from: number; to: number }[] {
  const starts = tokens.starts ?? [0];
  return starts.map((from, i) => ({ from, to: starts[i + 1] ?? tokens.ids.length }));
}

test('each role has its own context, return and advantage', { timeout: 180_000 }, async () => {
  const { episodes, lines } = await trainHere(workspace, overrides, 2);
  expect(episodes.some(({ turns }) => turns.length >= 3)).toBe(true);
  for (const { turns, roles, messages, reward } of episodes) {
    // a turn without a valid action is played again by the same role
    let role = 'long';
    for (const turn of turns) {
      expect(turn.role).toBe(role);
      if (turn.executed.length > 0) role = role === 'long' ? 'short' : 'long';
    }
    for (const [name, own] of Object.entries(roles!)) {
      const played = turns.filter(turn => turn.role === name);
      expect(own.turns).toBe(played.length);
      expect(own.reward).toBeCloseTo(mean([0, ...played.map(turn => turn.reward)]) * (played.length + 1), 6);
      const seen = messages.filter(message => message.name === name);
      if (seen.length === 0) continue;
      expect(seen[0].content).toContain(`You are ${name.toUpperCase()}.`);
      expect(seen.filter(message => message.role === 'assistant')).toHaveLength(played.length);
      const other = name === 'long' ? 'short' : 'long';
      expect(seen.some(({ content }) => content.includes(`for ${other}`))).toBe(false);
    }
    expect(reward).toBeCloseTo(0, 6); // what one role earns, the other loses
  }
  for (const group of [1, 2].flatMap(step => groupsOf(episodes.filter(e => e.step === step))))
    for (const [index, role] of ['long', 'short'].entries()) {
      const members = group.filter(({ roles }) => roles![role].turns > 0);
      const scores = members.map(({ roles }) => roles![role].score);
      if (members.length < 2) continue;
      for (const [i, member] of members.entries()) {
        const { to } = samplesOf(member)[index];
        const expected = (scores[i] - mean(scores)) / (deviation(scores) + 1e-6);
        expect(member.tokens.advantages![to - 1]).toBeCloseTo(expected, 3);
      }
    }
  const [first] = lines;
  const played = episodes.filter(({ step, roles }) => step === 1 && roles!.short.turns > 0);
  expect(first['train/Contest/roles/short/score']).toBeCloseTo(mean(played.map(({ roles }) => roles!.short.score)), 6);
  const own = episodes.filter(({ step }) => step === 1);
  expect(first['train/Contest/roles/long/success']).toBeCloseTo(
    mean(own.map(({ roles }) => Number(roles!.long.success))),
    6,
  );
  const known = lines.map(line =>
    Object.fromEntries(Object.entries(line).map(([key, value]) => [key.replace('/Contest/', '/Words/'), value])),
  );
  expect(unknownKeys(known as typeof lines)).toEqual([]);
});

test('a run that continues from a checkpoint is equal to the bit', { timeout: 240_000 }, async () => {
  const run = async () =>
    (
      await document<{ run: string; folder: string }>(workspace.folder, [
        ...['train', '--config-name', 'words', ...overrides, 'trainer.test_freq=-1', 'trainer.save_freq=1'],
        ...['workbench.keep_checkpoints=5', 'trainer.total_training_steps=3'],
      ])
    ).answer;
  const whole = await run();
  const parted = await run();
  const resumed = await document(workspace.folder, ['resume', parted.run, '--from', '1', '--discard']);
  expect(resumed.code, resumed.stderr).toBe(0);
  const played = (folder: string) =>
    readRun(folder).episodes.map(({ id, turns, roles, tokens }) => [id, turns, roles, tokens]);
  expect(played(parted.folder)).toEqual(played(whole.folder));
});

test('single-turn prompts are refused in one sentence', async () => {
  await expect(trainHere(workspace, [...overrides, 'agent_proxy.context_window_mode=single_turn'], 1)).rejects.toThrow(
    'config: agent_proxy.context_window_mode is single_turn, but environment contest has roles, whose contexts are chats: set it to full or limited_multi_turn',
  );
});
