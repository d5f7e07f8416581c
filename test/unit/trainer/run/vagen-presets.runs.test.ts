// VAGEN's presets, each in one real step with a random Qwen2.5-VL, smaller only in size: the model sees the sprites of its
// environment, and the two masks and turn ends of its episodes are right. The expected advantages are derived from the
// stored episodes: with γ = λ = 1 between tokens, a token's advantage is the return from its turn on (Full: discounted
// by γ = 0.95 between turns) minus the critic's value, whitened over all sampled tokens.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Observation } from '../../../../envs/api/environment';
import frozenLake from '../../../../envs/frozen-lake';
import sokoban from '../../../../envs/sokoban';
import type { Episode } from '../../../../extension/run-data/episode';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { installation } from '../../../../extension/node/installation';
import { createSync } from '../../../support/sync-environment';
import { deviation, keepAll, mean, trainHere } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeVisionModel } from '../../../support/vision-checkpoints';
import { makeWorkspace, type Workspace } from '../../../support/workspace';
import { load } from '../config/presets';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let model: string;
beforeAll(async () => {
  workspace = makeWorkspace();
  model = await makeVisionModel(workspace.folder, 'qwen2_5_vl');
  // Answers of a random model do not follow the format, so all of its turns would be worth the same.
  writeFileSync(
    join(workspace.folder, 'uneven.rewards.ts'),
    `import { defineRewards } from 'ragen-workbench/api/rewards';
export default defineRewards({ components: { uneven: 1 }, score: ({ turn, raw }) => ({ uneven: turn + raw.length / 50 }) });
`,
  );
});
afterAll(() => {
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

/** What each turn earned. */
const earned = ({ turns }: Episode): number[] =>
  turns.map(({ reward, penalty, component_reward = 0 }) => reward + penalty + component_reward);

/** The return from each turn on: of Base the score of the episode, of Full with the discount between turns. */
function returnsOf(episode: Episode, gamma: number | null): number[] {
  if (gamma === null) return episode.turns.map(() => episode.score);
  const returns = earned(episode);
  for (let turn = returns.length - 2; turn >= 0; turn--) returns[turn] += gamma * returns[turn + 1];
  return returns;
}

const pictureIn = (observation: Observation): Uint8Array => (observation as Exclude<Observation, string>).images[0];

test.each([
  ['vagen-base', 'VagenSokoban', sokoban, null],
  ['vagen-full', 'VagenSokoban', sokoban, 0.95],
  ['vagen-frozen-lake', 'VagenFrozenLake', frozenLake, 0.95],
] as const)('%s', { timeout: 180_000 }, async (preset, tag, definition, gamma) => {
  const { lines, episodes, folder, end } = await trainHere(
    workspace,
    [
      ...tinyOverrides({ groups: 3, turns: 3, tokens: 7, miniBatch: 3 }),
      ...keepAll,
      `model_path=${model}`,
      'actor_rollout_ref.rollout.max_model_len=2048',
      `+custom_envs.${tag}.rewards.file=uneven.rewards.ts`,
    ],
    1,
    undefined,
    preset,
  );
  expect(end).toBe('finished');
  const [line] = lines;
  for (const key of ['actor/grad_norm', 'critic/grad_norm']) expect(line[key]).toBeGreaterThan(0);
  expect(line['critic/returns/max']).toBeCloseTo(Math.max(...episodes.flatMap(e => returnsOf(e, gamma))), 4);
  expect(line['critic/returns/min']).toBeCloseTo(Math.min(...episodes.flatMap(e => returnsOf(e, gamma))), 4);

  expect(episodes).toHaveLength(6);
  expect(episodes.every(({ turns }) => turns.length === 3)).toBe(true);
  const imageToken = readTokenizer(model).pictures!.imageToken;
  const { env_config } = load(preset).config.custom_envs[tag];
  for (const episode of episodes) {
    const { tokens, turns, seed } = episode;
    // The first picture is the environment's, with sprites.
    const environment = createSync(definition as typeof sokoban, definition.config.parse(env_config) as never);
    const { observation } = environment.reset({ seed }) as { observation: Observation };
    const picture = turns[0].pictures![0]!;
    expect(new Uint8Array(readFileSync(join(folder, 'pictures', picture)))).toEqual(pictureIn(observation));
    // No answer has an action, so each turn shows this picture again.
    expect(turns.map(({ executed, pictures }) => [executed, pictures])).toEqual(turns.map(() => [[], [picture]]));
    expect(tokens.pictures!.map(shown => shown.picture)).toEqual(turns.map(() => picture));

    // The loss mask is the turns' spans; no image token of a picture is in it, and none has an advantage.
    const inTurn = new Uint8Array(tokens.ids.length);
    for (const { span } of turns) inTurn.fill(1, ...span);
    expect(tokens.mask).toEqual([...inTurn]);
    for (const { at } of tokens.pictures!) expect([tokens.ids[at], tokens.mask[at]]).toEqual([imageToken, 0]);
    tokens.mask.forEach((sampled, i) => {
      if (!sampled) expect([i, tokens.advantages![i]]).toEqual([i, 0]);
    });
    expect(tokens.starts).toBeUndefined();
  }

  const expected = episodes.flatMap(episode =>
    episode.turns.flatMap(({ span }, turn) =>
      episode.tokens.values!.slice(...span).map(value => returnsOf(episode, gamma)[turn] - value!),
    ),
  );
  const found = episodes.flatMap(({ turns, tokens }) => turns.flatMap(({ span }) => tokens.advantages!.slice(...span)));
  expect(found).toHaveLength(expected.length);
  found.forEach((advantage, i) =>
    expect(advantage).toBeCloseTo((expected[i] - mean(expected)) / deviation(expected), 3),
  );
});
