// The run folder `.ragen/runs/<id>/`: names of its files and the schema of each line. The folder is the truth about a run;
// whatever else shows a run (pages, tree, terminal) has read it from here. Lines are append-only JSON, one a line.
import { z } from 'zod';

/** Names inside a run folder. */
export const runFiles = {
  manifest: 'manifest.json',
  status: 'status.json',
  metrics: 'metrics.jsonl',
  events: 'events.jsonl',
  episodes: 'episodes',
  checkpoints: 'checkpoints',
  environments: 'environments',
  diagnostics: 'diagnostics',
  log: 'trainer.log',
  lease: 'lease',
  /** Of an evaluation: what it came to. */
  evaluation: 'evaluation.json',
} as const;

/** Where a workspace keeps its runs, from the workspace's root. */
export const runsFolder = '.ragen/runs';

/** `episodes/step-000123.jsonl`, or `episodes/val-000120.jsonl` for a validation after step 120. */
export const episodesFile = (mode: 'train' | 'val', step: number): string =>
  `${runFiles.episodes}/${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}.jsonl`;

/** `diagnostics/groups-000123.jsonl`: the prompt groups of a step. */
export const groupsFile = (step: number): string =>
  `${runFiles.diagnostics}/groups-${String(step).padStart(6, '0')}.jsonl`;

/** `checkpoints/step-000100`. */
export const checkpointFolder = (step: number): string =>
  `${runFiles.checkpoints}/step-${String(step).padStart(6, '0')}`;

export const runState = z.enum(['starting', 'running', 'paused', 'stopping', 'stopped', 'finished', 'failed']);
export type RunState = z.infer<typeof runState>;

/** `manifest.json`: written once when the run is made; never changed by a resume. */
export const manifestSchema = z.object({
  schema: z.literal(1),
  id: z.string(),
  name: z.string(),
  created: z.string().describe('ISO time'),
  config_name: z.string(),
  overrides: z.array(z.string()),
  config: z.record(z.string(), z.unknown()).describe('resolved configuration, RAGEN keys'),
  config_hash: z.string().describe('sha256 of the resolved configuration in canonical JSON'),
  seeds: z.record(z.string(), z.number()),
  versions: z.record(z.string(), z.string()),
  hardware: z.record(z.string(), z.union([z.string(), z.number()])),
  model: z.object({
    path: z.string(),
    sha256: z.string(),
    parameters: z.number(),
    revision: z.string().optional().describe('commit of a model of the hub'),
  }),
  environments: z.array(z.object({ tag: z.string(), name: z.string(), source: z.string(), version: z.string() })),
  sweep: z
    .object({ id: z.string(), point: z.string().describe('what sets it apart in its sweep') })
    .optional()
    .describe('of a run that belongs to a sweep'),
  tags: z.array(z.string()).optional(),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** `status.json`: the newest state, replaced atomically after each step and at each change of state. */
export const statusSchema = z.object({
  state: runState,
  step: z.number().int().describe('steps finished'),
  total_steps: z.number().int(),
  success: z.number().nullable().describe('newest validation success, else training success, 0…1'),
  reward: z.number().nullable().describe('mean episodic return of the newest step'),
  tokens_per_s: z.number().nullable(),
  eta_s: z.number().nullable(),
  phase: z.string().describe('download, rollout, update, validation, checkpoint, idle'),
  download: z
    .object({ file: z.string(), bytes: z.number(), total: z.number() })
    .optional()
    .describe('while the model is fetched: the file on its way, bytes of all files here and in all'),
  updated: z.string(),
  error: z.string().optional().describe('one sentence: place, value, remedy'),
});
export type RunStatus = z.infer<typeof statusSchema>;

/** A line of `metrics.jsonl`: step, time, then metrics by RAGEN's key names. Values that are not finite are left out. */
export const metricsLineSchema = z
  .object({ step: z.number().int(), time: z.string(), wall_s: z.number() })
  .catchall(z.union([z.number(), z.string()]));
export type MetricsLine = z.infer<typeof metricsLineSchema>;

/** A line of `events.jsonl`. */
export const eventSchema = z.object({
  time: z.string(),
  step: z.number().int(),
  kind: z.enum([
    'state',
    'checkpoint',
    'memory_plan',
    'longest_batch',
    'resume',
    'download',
    'environment_error',
    'environment_version',
    'alarm',
    'setting',
    'warning',
    'early_stop',
  ]),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
});
export type RunEvent = z.infer<typeof eventSchema>;

export const turnSchema = z.object({
  turn: z.number().int().describe('1-based'),
  state: z.string(),
  actions_left: z.number().int(),
  /** The model's whole text of the turn, with the generation prefix in front. */
  raw: z.string(),
  thought: z.string().nullable().describe('null when the answer did not parse'),
  answer: z.string().nullable(),
  parsed: z.array(z.string()).describe('actions as the model wrote them, after the cut to max_actions_per_turn'),
  executed: z.array(z.string()).describe('names of the actions the environment executed'),
  reward: z.number(),
  penalty: z.number(),
  info: z.record(z.string(), z.unknown()),
  finish: z.enum(['stop', 'length']),
  /** Token span [from, to) of the sampled tokens in `tokens.ids`. */
  span: z.tuple([z.number().int(), z.number().int()]),
});
export type EpisodeTurn = z.infer<typeof turnSchema>;

/** A line of `episodes/*.jsonl`: one whole episode with what the trainer saw. */
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
  success: z.boolean(),
  reward: z.number().describe('sum of turn rewards'),
  penalty: z.number().describe('sum of format penalties'),
  score: z.number().describe('reward + penalty, before normalisation'),
  advantage: z.number().nullable().describe('mean over trained tokens; null when not trained on'),
  kept: z.boolean().nullable().describe('kept by the rollout filter; null for validation'),
  turns: z.array(turnSchema),
  final_state: z.string(),
  metrics: z.record(z.string(), z.number()),
  error: z.string().optional(),
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
  tokens: z.object({
    ids: z.array(z.number().int()),
    mask: z.array(z.union([z.literal(0), z.literal(1)])).describe('1 where the token was sampled'),
    logprobs: z.array(z.number().nullable()).describe('of the sampled tokens under the sampler, null elsewhere'),
    advantages: z.array(z.number()).optional(),
    starts: z
      .array(z.number().int())
      .optional()
      .describe('where each training sample begins, in a windowed context; left out where there is one'),
  }),
});
export type Episode = z.infer<typeof episodeSchema>;

/** A line of `diagnostics/groups-*.jsonl` (`trainer.log_group_rv_table`). */
export const groupRowSchema = z.object({
  step: z.number().int(),
  group_id: z.number().int(),
  tag: z.string(),
  seed: z.number().int(),
  scores: z.array(z.number()).describe('of its episodes: reward + penalty, before normalisation'),
  reward_std: z.number().describe('unbiased deviation of what the rollout filter measured'),
  selected: z.boolean().describe('trained on'),
});
export type GroupRow = z.infer<typeof groupRowSchema>;

/** `lease`: who serves this run now; touched each second while the trainer lives. */
export const leaseSchema = z.object({
  pid: z.number().int(),
  started: z.string(),
  endpoint: z.string().describe('path of the socket or name of the pipe'),
  token: z.string(),
});
export type Lease = z.infer<typeof leaseSchema>;

/** A lease whose file is older than this is stale. */
export const leaseStaleMs = 5000;
