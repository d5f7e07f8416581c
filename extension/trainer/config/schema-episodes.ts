// Schema of episode generation: the agent proxy's turns, the environment groups and the environments by tag.
import { z } from 'zod';
import { count, flag } from './schema-policy';

export const agentProxy = z
  .strictObject({
    context_window_mode: z
      .enum(['full', 'limited_multi_turn', 'single_turn'])
      .describe(
        'What of an episode the model is shown: all of it, the last turns as a chat, or a summary in one message.',
      ),
    max_context_window: z
      .int()
      .min(-1)
      .nullable()
      .describe('Turns in the context of the windowed modes, the present one included; -1 or null for all.'),
    max_turn: count('Most turns of an episode.'),
    action_sep: z.string().min(1).describe('Separator between the actions of one answer.'),
    max_actions_per_turn: count('Actions of one answer that are executed; further ones are cut.'),
    use_turn_scores: flag("Give each turn's reward to its own last token instead of the sum to the episode's last."),
    enable_think: flag('The model reasons in <think> tags before its <answer>.'),
    batch_adjust_mode: z
      .enum(['weights', 'copy', 'delete'])
      .describe(
        'Where samples do not divide into mini-batches: a smaller last one with exact weights, or some drawn at random twice, or left out.',
      ),
    reward_normalization: z
      .strictObject({
        grouping: z
          .enum(['state', 'inductive', 'batch'])
          .describe('Episodes normalised together: of a group, of a tag, or all.'),
        method: z
          .enum(['identity', 'mean', 'mean_std', 'asym_clip'])
          .describe('Leave scores, subtract the mean, divide by the deviation too, or clip that to [-1, 3].'),
      })
      .describe('Normalisation of episode scores before advantages.'),
  })
  .describe('The turn protocol between model and environment.');

const envGroups = (what: string) =>
  z
    .strictObject({
      env_groups: count(`Prompt groups of ${what}; the sum of n_groups.`),
      group_size: count('Episodes of a group, all with the same initial state.'),
      env_configs: z
        .strictObject({
          tags: z.array(z.string()).min(1).describe('Environments by their tag in custom_envs.'),
          n_groups: z.array(z.int().min(1)).min(1).describe('Groups of each tag, in the order of tags.'),
        })
        .describe('Which environments, and how many groups of each.'),
    })
    .describe(`Episodes of ${what}.`);

export const esManager = z
  .strictObject({
    format_penalty: z
      .number()
      .max(0)
      .describe('Added to the score once for each turn whose answer does not parse or names no valid action.'),
    train: envGroups('a training step'),
    val: envGroups('a validation'),
  })
  .describe('The environment state manager.');

const tag = z
  .strictObject({
    env_type: z.string().min(1).describe('Name of a built-in environment, or path of your own TypeScript file.'),
    max_actions_per_traj: count('Most actions of an episode.'),
    env_instruction: z
      .string()
      .nullish()
      .describe("What the system message says of the task, in place of the environment's own instruction."),
    max_tokens: count('Length of an answer that the prompt asks for; response_length where left out.').nullish(),
    parallel_friendly: flag('Episodes may run in several processes, which share nothing.').default(false),
    max_workers: count(
      'Most processes that run episodes where they may run in several; no more than there are cores.',
    ).default(1),
    env_config: z
      .record(z.string(), z.unknown())
      .nullable()
      .default(null)
      .describe("Changes to the environment's own defaults."),
  })
  .describe('An environment under a name of its own.');

export const customEnvs = z
  .record(z.string().regex(/^[\w.-]+$/, 'letters, digits, dots, hyphens and underscores'), tag)
  .describe('Environments by tag.');
