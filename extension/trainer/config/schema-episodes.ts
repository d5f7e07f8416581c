// Schema of episode generation: the turns of the agent proxy, the layout of the environment groups, and the settings of
// the environment with each tag.
import { z } from 'zod';
import { promptFormats } from '../rollout/prompt-format';
import { count, flag } from './schema-policy';
import { rewards } from './schema-rewards';
import { rolePlayers } from './schema-roles';

export const agentProxy = z
  .strictObject({
    context_window_mode: z
      .enum(['full', 'limited_multi_turn', 'single_turn'])
      .describe(
        'Which part of the episode the prompt contains: the complete chat (full), the last turns as a chat (limited_multi_turn), or one message with a summary of previous turns (single_turn).',
      ),
    max_context_window: z
      .int()
      .min(-1)
      .nullable()
      .describe(
        'Number of turns in the prompt, including the current turn. -1 or null includes all turns. Has no effect if context_window_mode is full.',
      ),
    max_turn: count('Maximum turns per episode.'),
    action_sep: z.string().min(1).describe('Separator between the actions of one response.'),
    max_actions_per_turn: count('Maximum actions executed per response; further actions are dropped.'),
    use_turn_scores: flag(
      "Assign each turn's reward to the last token of the turn, instead of the total reward to the last token of the episode.",
    ),
    enable_think: flag('The model reasons in <think> tags before its <answer>.'),
    batch_adjust_mode: z
      .enum(['weights', 'copy', 'delete'])
      .describe(
        'What happens if the samples do not fill all mini-batches. weights: the last mini-batch is smaller, and loss weights correct for its size. copy: random samples are duplicated. delete: random samples are dropped.',
      ),
    reward_normalization: z
      .strictObject({
        grouping: z
          .enum(['state', 'inductive', 'batch'])
          .describe(
            'Which episodes are normalised together: those of a group (state), those of a tag (inductive), or all (batch).',
          ),
        method: z
          .enum(['identity', 'mean', 'mean_std', 'asym_clip'])
          .describe(
            'How the scores are normalised. identity keeps the scores. mean subtracts their mean. mean_std then also divides by their standard deviation. asym_clip then also clips to [-1, 3].',
          ),
      })
      .describe('Normalisation of episode scores before advantages.'),
  })
  .describe('The turn protocol between model and environment.');

const envGroups = (what: string) =>
  z
    .strictObject({
      env_groups: count(`Number of prompt groups of ${what}; must equal the sum of n_groups.`),
      group_size: count('Episodes per group; all begin in the same state.'),
      env_configs: z
        .strictObject({
          tags: z.array(z.string()).min(1).describe('Tags of the environments to use; custom_envs defines each tag.'),
          n_groups: z.array(z.int().min(1)).min(1).describe('Number of groups of each tag, in the order of tags.'),
        })
        .describe('Environments, and the number of groups of each.'),
    })
    .describe(`Episodes of ${what}.`);

export const esManager = z
  .strictObject({
    format_penalty: z
      .number()
      .max(0)
      .describe(
        'Penalty (0 or a negative number). It is added to the score for each turn whose response cannot be parsed, contains no valid action, or contains an invalid action.',
      ),
    train: envGroups('a training step'),
    val: envGroups('a validation'),
  })
  .describe('The environment state manager.');

const per = z
  .enum(['run', 'episode'])
  .default('run')
  .describe('Whether the server is started once, or again for each episode.');

const start_timeout_ms = count('Time limit of starting the server and of listing its tools, in milliseconds.').default(
  60_000,
);

const variable = z.string().regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable');

const mcpServer = z.union([
  z.strictObject({
    command: z.string().min(1).describe('Program of a server that communicates over standard input and output.'),
    args: z.array(z.string()).default([]).describe("The program's arguments."),
    env: z
      .record(z.string(), z.string())
      .default({})
      .describe("Variables that are added to the program's environment."),
    pass_env: z
      .array(variable)
      .default([])
      .describe('Names of environment variables that the program receives, such as one that contains a key.'),
    per,
    start_timeout_ms,
  }),
  z.strictObject({
    url: z.url({ protocol: /^https?$/ }).describe('Address of a server that communicates over HTTP.'),
    headers: z.record(z.string(), z.string()).default({}).describe('Headers of all requests.'),
    headers_env: z
      .record(z.string(), variable)
      .default({})
      .describe('Names of environment variables that contain the values of further headers, such as Authorization.'),
    per,
    start_timeout_ms,
  }),
]);

const tag = z
  .strictObject({
    env_type: z.string().min(1).describe('Name of a built-in environment, or path of a TypeScript file.'),
    max_actions_per_traj: count('Maximum actions per episode.'),
    env_instruction: z
      .string()
      .nullish()
      .describe("Task instruction in the system message; null uses the environment's instruction."),
    max_tokens: count('Response length, in tokens, that the prompt asks for; defaults to response_length.').nullish(),
    parallel_friendly: flag(
      'Run episodes in several processes, which requires an environment that shares no state between episodes.',
    ).default(false),
    max_workers: count(
      'Maximum number of environment processes if parallel_friendly is true; never more than the number of cores.',
    ).default(1),
    env_config: z
      .record(z.string(), z.unknown())
      .nullable()
      .default(null)
      .describe("Values that replace the environment's defaults."),
    prompt_format: z
      .enum(promptFormats)
      .nullish()
      .describe(
        "VAGEN's prompt format, which an answer must follow exactly (docs/environments/states.md). grounding asks for a description of the state (<observation>), worldmodeling for the state after the actions (<prediction>), in sentences, as JSON (_structured) or as a grid (_symbolic). null: a thought if agent_proxy.enable_think, and the answer.",
      ),
    rewards: rewards.nullish(),
    roles: rolePlayers.nullish(),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    mcp_servers: z
      .record(z.string().regex(/^[\w-]{1,32}$/, 'letters, digits, hyphens and underscores, at most 32'), mcpServer)
      .default({})
      .describe("Servers of the Model Context Protocol by name; their tools are added to the environment's tools."),
  })
  .describe('A named environment configuration.');

export const customEnvs = z
  .record(z.string().regex(/^[\w.-]+$/, 'letters, digits, dots, hyphens and underscores'), tag)
  .describe('Environments by tag.');
