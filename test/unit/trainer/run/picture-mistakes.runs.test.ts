// Complete runs in which an environment once sends a picture that cannot be shown: a damaged file, or one whose image
// tokens exceed the context. That episode ends with a sentence that names environment, turn and remedy; the others are
// trained on, and the run finishes. The model is ragen-tiny-vision, because it answers in a form that is executed.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { killAll } from '../../../support/terminal';
import { keepAll, trainHere, type Trained } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

/**
 * An environment whose states look like the built-in frozen lake's, which the model knows. The first episode that executes
 * `after` actions gets bad pictures from then on: PNG files that end too early, or of 1024 × 1024 pixels.
 */
const environment = `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { Drawing } from 'ragen-workbench/api/drawing';

let spoilt;

export default defineEnvironment({
  name: 'squares',
  config: z.object({ bad: z.enum(['damaged', 'large']), after: z.int() }),
  instruction: 'Walk over the frozen lake to the goal and keep out of the holes.',
  actions: { 1: 'Left', 2: 'Down', 3: 'Right', 4: 'Up' },
  create({ bad, after }) {
    const self = {};
    let steps = 0;
    let at = 0;
    const observe = () => {
      if (steps >= after) spoilt ??= self;
      const isBad = spoilt === self;
      const size = isBad && bad === 'large' ? 1024 : 112;
      const lake = new Drawing(size, size, [150, 180, 205]);
      for (let tile = 0; tile < 16; tile++) {
        const [x, y] = [28 * (tile % 4), 28 * Math.floor(tile / 4)];
        lake.rectangle(x + 1, y + 1, 26, 26, [214, 234, 245]);
        if (tile === 15) lake.rectangle(x + 6, y + 10, 16, 13, [205, 40, 50]);
        if (tile === at) lake.rectangle(x + 10, y + 12, 8, 11, [45, 140, 60]);
      }
      const png = lake.png();
      return { text: '<image>', images: [isBad && bad === 'damaged' ? png.subarray(0, 60) : png] };
    };
    return {
      reset({ seed }) {
        [steps, at] = [0, seed % 15];
        return { observation: observe() };
      },
      step(action) {
        steps++;
        at = (at + Number(action)) % 15;
        const success = action === 3;
        return { observation: observe(), reward: Number(success), terminated: false, truncated: false, info: { success } };
      },
    };
  },
});
`;

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write('environments/squares.ts', environment);
});
afterAll(async () => {
  await killAll(workspace.folder);
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

/** Trains two steps of two groups of two episodes with three turns. */
const trained = (bad: string, after: number, ...more: string[]): Promise<Trained> =>
  trainHere(
    workspace,
    [
      ...tinyOverrides({ groups: 2, turns: 3, tokens: 60, miniBatch: 4 }),
      `++custom_envs.Squares={env_type: environments/squares.ts, max_actions_per_traj: 6, env_config: {bad: ${bad}, after: ${after}}, max_tokens: 60}`,
      ...['es_manager.train.env_configs.tags=[Squares]', 'es_manager.val.env_configs.tags=[Squares]'],
      'actor_rollout_ref.rollout.max_model_len=800',
      ...keepAll,
      ...more,
    ],
    2,
    undefined,
    'quickstart-vision',
  );

type Episode = Trained['episodes'][number];

/** Checks that the other episodes were played and trained on, and returns the one that ended early. */
function endedEarly({ lines, episodes, end }: Trained, after: number, hasProblem: (of: Episode) => boolean): Episode {
  expect(end).toBe('finished');
  expect(lines).toHaveLength(2);
  for (const line of lines) expect(line['actor/grad_norm']).toBeGreaterThan(0);
  const [ended, ...further] = episodes.filter(hasProblem);
  expect(further).toEqual([]);
  expect(ended.turns.filter(({ executed }) => executed.length > 0)).toHaveLength(after);
  const others = episodes.filter(episode => episode !== ended);
  expect(others).toHaveLength(7);
  for (const { turns, tokens, advantage } of others) {
    expect(turns).toHaveLength(3);
    expect(tokens.pictures!.map(({ picture }) => picture)).toEqual(turns.flatMap(({ pictures = [] }) => pictures));
    expect(advantage).not.toBeNull();
  }
  return ended;
}

describe.each([
  ['at the start of an episode', 0],
  ['after an action', 1],
])('%s', (_, after) => {
  test('a damaged picture ends one episode, and the run finishes', async () => {
    const run = await trained('damaged', after);
    const { error, seed, turns } = endedEarly(run, after, ({ error }) => error !== undefined);
    expect(error).toMatch(
      new RegExp(
        `^environment Squares returned an observation in turn ${Math.max(1, turns.length)} \\(seed ${seed}, member [01]\\) that has a picture \\(number 1\\) that is a damaged or truncated PNG file: send the complete file$`,
      ),
    );
    expect(run.events.filter(event => event.includes(error!))).toHaveLength(1);
  });

  test('a picture with too many image tokens ends one episode, and the run finishes', async () => {
    // 1024 × 1024 pixels are reduced to at most 640,000, that is 28 × 28 tokens.
    const run = await trained('large', after, 'data.max_pixels=640000');
    const ended = endedEarly(run, after, ({ context_reason }) => context_reason !== undefined);
    expect(ended.error).toBeUndefined();
    expect(ended.context_reason).toMatch(
      new RegExp(
        `^environment Squares returned an observation that is too long \\(turn ${ended.turns.length + 1}, seed ${ended.seed}, member [01]\\), because the prompt of \\d+ tokens, of which 784 are image tokens of the state's 1 picture, and a response of response_length 60 exceed actor_rollout_ref\\.rollout\\.max_model_len 800: lower data\\.max_pixels, raise max_model_len, lower response_length, or shorten the observation$`,
      ),
    );
    expect(run.lines.map(line => line['train/context_full']).sort()).toEqual([0, 0.25]);
  });
});
