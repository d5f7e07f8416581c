// Household tasks in text (RAGEN, ALFWorld on TextWorld). The games need Python, so they run on a server; the clients
// in `envs/remote` connect to it. The server uses the seed to select a game of the training or validation split. The
// server's info contains `admissible_commands` and `won`. As RAGEN does, this file computes the observation, the reward
// and the info flags, and applies the step limit.
import { z } from 'zod';
import { defineEnvironment, type StepResult } from '../api/environment';
import { timeoutMsOf, peerOf, requireServer, serverKeys } from '../remote/index';
import type { RemoteState } from '../remote/peer';
import { RemoteEpisode } from '../remote/remote-episode';

const config = z.strictObject({
  config_file: z
    .string()
    .nullable()
    .default(null)
    .describe("path of ALFWorld's configuration file on the server; null: the server uses its default"),
  score: z.number().default(10).describe('reward for solving the task'),
  render_mode: z.literal('text').default('text'),
  eval_dataset: z.enum(['eval_in_distribution', 'eval_out_of_distribution']).default('eval_in_distribution'),
  max_steps: z.int().min(1).default(50).describe('number of steps after which an unfinished episode is truncated'),
  ...serverKeys,
});
type Config = z.infer<typeof config>;

/**
 * Returns the client for the game server. `mode` selects the split of the games; the client sends the server ALFWorld's
 * name for this split.
 */
const peerFor = (config: Config, mode: 'train' | 'val') =>
  peerOf(config, {
    train_eval: mode === 'train' ? 'train' : config.eval_dataset,
    ...(config.config_file !== null && { config_file: config.config_file }),
  });

/** Returns the admissible commands in the server's info; undefined if the info has none. */
function admissibleIn({ info }: RemoteState): string[] | undefined {
  const { admissible_commands: commands } = info;
  return Array.isArray(commands) && commands.every(command => typeof command === 'string') ? commands : undefined;
}

/** Returns the observation as RAGEN formats it. */
function shown({ text }: RemoteState, admissible: readonly string[] | undefined): string {
  return admissible === undefined ? text : `${text}\n\nAdmissible actions: [${admissible.join(', ')}]`;
}

/**
 * Whether the task is solved. The server's `won` or `success` decides; if the info has neither, a positive reward at
 * the end of the episode counts as solved.
 */
function isWon({ info: { won, success }, done, reward }: RemoteState): boolean {
  const said = won ?? success;
  return said === undefined ? done && reward > 0 : Boolean(said);
}

export default defineEnvironment({
  name: 'alfworld',
  config,
  instruction:
    'You are an expert in household tasks. Think about what to do next, then choose one of the admissible actions and give it as it is' +
    ' written, inside <answer> and </answer>.',
  patience: timeoutMsOf,
  dependencies: config =>
    requireServer(
      config,
      peerFor(config, 'train'),
      'start a server for ALFWorld (docs/environments/alfworld.md contains the code of such a server), or correct env_config.url and env_config.protocol',
    ),

  create(config) {
    let episode: RemoteEpisode | undefined;
    let admissible: string[] | undefined;
    let observation = '';
    let steps = 0;

    const see = (state: RemoteState) => {
      admissible = admissibleIn(state);
      observation = shown(state, admissible);
    };

    return {
      async reset({ seed, member = 0, mode = 'train' }) {
        await episode?.close();
        episode = new RemoteEpisode(peerFor(config, mode), { seed, member, mode }, config);
        steps = 0;
        see(await episode.begin());
        return { observation };
      },

      async step(action): Promise<StepResult> {
        const command = String(action);
        const isKnown = admissible?.includes(command) ?? true;
        const state = await episode!.step(command);
        const success = isWon(state);
        steps++;
        see(state);
        return {
          observation,
          reward: success ? config.score : 0,
          terminated: success,
          truncated: !success && (state.done || steps >= config.max_steps),
          info: { action_is_effective: true, action_is_valid: isKnown, success },
        };
      },

      render: () => observation,
      close: async () => episode?.close(),
    };
  },
});
