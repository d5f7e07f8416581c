// `episodes/*.jsonl` and `what-if/*.jsonl` of a run folder: one complete episode per line, with its turns and the
// trainer's data of each token.
import { z } from 'zod';
import { judgementSchema } from './judgement';
import { roleReturnSchema } from './role-return';
import { toolCallSchema } from './tool-call';

/** Maximum number of pictures of a state. */
export const mostStatePictures = 256;

/**
 * Pictures of a state, in the order of the marks `<image>` in its text: names of files in the folder `pictures`. In a
 * run of another trainer, the marks are the words `[image]`, and the files are in the folder of the episode's file
 * (`picturesFolder`); null for a missing picture. In an episode that the extension host sends to a page, the names are
 * replaced by data URLs.
 */
const picturesSchema = z.array(z.string().nullable()).max(mostStatePictures).optional();

export const turnSchema = z.object({
  turn: z.number().int().describe('1-based'),
  role: z.string().optional().describe('the role that played the turn; absent in an environment without roles'),
  state: z.string(),
  pictures: picturesSchema.describe('pictures of the state, in the order of its marks; absent if it has none'),
  actions_left: z.number().int().nullable().describe('null if another trainer trained the run'),
  /** The model's complete text of the turn, including the generation prefix. */
  raw: z.string(),
  thought: z.string().nullable().describe('null if the response could not be parsed'),
  answer: z.string().nullable(),
  parsed: z.array(z.string()).describe('actions as the model wrote them, truncated to max_actions_per_turn'),
  executed: z.array(z.string()).describe('names of the actions that the environment executed'),
  reward: z.number(),
  penalty: z.number(),
  components: z
    .record(z.string(), z.number())
    .optional()
    .describe('values of reward components by name, before weights; absent if the tag has no components'),
  component_reward: z.number().optional().describe('weighted sum of `components`'),
  judgements: z
    .record(z.string(), z.array(judgementSchema))
    .optional()
    .describe('judgements of the descriptions of states, by reward component'),
  info: z.record(z.string(), z.unknown()),
  calls: z.array(toolCallSchema).optional().describe('tool calls of the response; absent if it has none'),
  true_state: z
    .string()
    .optional()
    .describe(
      'the true state before the actions, in the form of prompt_format or, for a model that reads pictures, as a grid of symbols if the environment gives it; otherwise absent',
    ),
  true_next_state: z.string().optional().describe('the true state after the actions'),
  finish: z.enum(['stop', 'length']),
  /**
   * Token span [from, to) of the sampled tokens in `tokens.ids`; empty if the tokens are not stored, or if a model behind
   * an API played the turn.
   */
  span: z.tuple([z.number().int(), z.number().int()]),
});
export type EpisodeTurn = z.infer<typeof turnSchema>;

/**
 * Describes how an episode of `what-if/*.jsonl` differs from its original. Tokens that the user wrote have mask 0 and
 * log-prob null.
 */
export const whatIfSchema = z.object({
  of: z.string().describe('id of the episode that was changed'),
  turn: z.number().int().describe('first turn that differs from the original'),
  given: z
    .object({ thought: z.string().optional(), answer: z.string().optional() })
    .describe('the text that the user wrote in this turn'),
  players: z
    .array(z.string())
    .describe(
      'who played each turn from `turn` on: the name of a checkpoint, `initial` for the initial weights, or `hand` for the user',
    ),
  seed: z.number().int(),
  notes: z.array(z.string()),
});

/** A line of `episodes/*.jsonl`: one complete episode with the trainer's data. */
export const episodeSchema = z.object({
  id: z.string().describe('train-000012-g003-m05'),
  step: z.number().int(),
  mode: z.enum(['train', 'val']),
  group_id: z.number().int(),
  member: z.number().int(),
  env_id: z.number().int(),
  tag: z.string(),
  environment: z.object({ name: z.string(), version: z.string() }),
  seed: z.number().int(),
  terminated: z.boolean(),
  truncated: z.boolean(),
  success: z.boolean().nullable().describe('null if another trainer trained the run and stored no success'),
  reward: z.number().describe('sum of turn rewards'),
  penalty: z.number().describe('sum of format penalties'),
  component_reward: z
    .number()
    .optional()
    .describe('weighted sum of the components of all turns and of the episode; absent if the tag has no components'),
  score: z.number().describe('reward + penalty + component_reward, before normalisation'),
  advantage: z
    .number()
    .nullable()
    .describe('mean advantage over trained tokens; null if the episode was not trained on'),
  kept: z
    .boolean()
    .nullable()
    .describe(
      'whether the rollout filter, the trajectory filter and the response filters kept the episode; null for validation',
    ),
  roles: z
    .record(z.string(), roleReturnSchema)
    .optional()
    .describe('what each role has earned; absent in an environment without roles'),
  turns: z.array(turnSchema),
  final_state: z.string(),
  final_pictures: picturesSchema.describe('pictures of the final state; absent if it has none'),
  metrics: z.record(z.string(), z.number()),
  components: z
    .record(z.string(), z.number())
    .optional()
    .describe('values of the reward components of the complete episode, before weights'),
  judgements: z
    .record(z.string(), z.array(judgementSchema))
    .optional()
    .describe('judgements of the complete episode, by reward component'),
  error: z.string().optional(),
  context_reason: z
    .string()
    .optional()
    .describe(
      'reason in one sentence if the episode ended because the next prompt exceeded the context; otherwise absent',
    ),
  messages: z.array(
    z.object({
      role: z.string(),
      content: z.string(),
      name: z.string().optional().describe('the role of the environment in whose context the message is'),
    }),
  ),
  /** Empty lists if another trainer trained the run and stored no tokens (hasTokens). */
  tokens: z.object({
    ids: z.array(z.number().int()),
    mask: z.array(z.union([z.literal(0), z.literal(1)])).describe('1 for sampled tokens, 0 for other tokens'),
    logprobs: z
      .array(z.number().nullable())
      .describe('log-probs of the sampled tokens under the sampler; null for other tokens'),
    advantages: z.array(z.number()).optional(),
    entropies: z
      .array(z.number().nullable())
      .optional()
      .describe('entropy, in nats, of the distribution at each trained token; absent if the update did not compute it'),
    ref_logprobs: z
      .array(z.number().nullable())
      .optional()
      .describe('log-probs under the reference policy; absent without a reference policy'),
    teacher_logprobs: z
      .array(z.number().nullable())
      .optional()
      .describe('log-probs under the teacher of on-policy distillation; absent without a teacher'),
    values: z
      .array(z.number().nullable())
      .optional()
      .describe('the critic’s value before each token; absent without a critic'),
    starts: z
      .array(z.number().int())
      .optional()
      .describe('index of the first token of each sample; absent if the episode has only one sample'),
    pictures: z
      .array(z.object({ at: z.number().int(), picture: z.string() }))
      .optional()
      .describe(
        'pictures that the tokens show, and the index of the first image token of each; absent without pictures',
      ),
  }),
  what_if: whatIfSchema.optional(),
});
export type Episode = z.infer<typeof episodeSchema>;

/** Whether the tokens of an episode are stored. Runs of other trainers may lack them. */
export const hasTokens = ({ tokens, turns }: Pick<Episode, 'tokens' | 'turns'>): boolean =>
  tokens.ids.length > 0 || turns.length === 0;

/** Formats the success of an episode; it is unknown if another trainer trained the run and stored no success. */
export const successLabel = (success: boolean | null): string =>
  success === null ? 'success unknown' : success ? 'success' : 'no success';
