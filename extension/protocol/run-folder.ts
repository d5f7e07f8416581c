// The run folder `.ragen/runs/<id>/`: its file names and the schema of each line. The folder is the authoritative
// record of a run; pages, tree and terminal read from it. Logs are append-only JSON lines.
import { z } from 'zod';

/** File names in a run folder. */
export const runFiles = {
  manifest: 'manifest.json',
  status: 'status.json',
  metrics: 'metrics.jsonl',
  /** Derived from metrics.jsonl (metric-segments.ts). */
  columns: 'metrics.columns',
  scores: 'scores.jsonl',
  /** Checksums of the other logs (store/log-ledger.ts). */
  checksums: 'checksums.jsonl',
  events: 'events.jsonl',
  episodes: 'episodes',
  /** Derived from the episode files (episode-index.ts). */
  episodeIndex: 'episodes/index.jsonl',
  checkpoints: 'checkpoints',
  environments: 'environments',
  diagnostics: 'diagnostics',
  whatIf: 'what-if',
  /** TensorBoard event files, one per run session. */
  tensorboard: 'tensorboard',
  /** The user's labels of the run. */
  labels: 'labels.json',
  notes: 'notes.md',
  log: 'trainer.log',
  lease: 'lease',
  /**
   * The model's tokenizer, to decode token ids wherever the folder is moved. Checkpoints have a file of the same name.
   */
  tokenizer: 'tokenizer.json',
  /** Result of an evaluation. */
  evaluation: 'evaluation.json',
  /** Signature of the trainer that wrote the manifest (run-trust.ts). */
  signature: 'signature.json',
} as const;

/**
 * Maximum bytes of a log line that readers accept. An episode line holds its texts and tokens, an index line all rows
 * of a step.
 */
export const mostLineBytes = 2 ** 26;

/**
 * Whether a text may name a version's folder. Run folders are untrusted, and a version name may be a path that leads
 * out.
 */
export const isVersionName = (text: string): boolean => /^[\w-]+$/.test(text);

/**
 * Whether a text may be a run id: the name of a single folder that is not a path, not a command-line option, and has no
 * invisible characters.
 */
export const isRunId = (text: string): boolean => text.length <= 255 && /^(?![.-])[^\\/:\p{C}]+(?<![. ])$/u.test(text);

/** `environments/<version>/…`: environment code that the run used. */
export const environmentFile = (version: string, name: string): string => `${runFiles.environments}/${version}/${name}`;
export const environmentFiles = {
  /** The bundled code. */
  bundle: 'environment.js',
  about: 'version.json',
  /** The sources, under their names in `version.json`. */
  sources: 'sources',
  coverage: 'coverage.jsonl',
  /** Signature of the trainer that saved the code (run-trust.ts). */
  signature: 'signature.json',
} as const;

/** Folder of a workspace's runs, relative to its root. */
export const runsFolder = '.ragen/runs';

/** `episodes/step-000123.jsonl`, or `episodes/val-000120.jsonl` for a validation after step 120. */
export const episodesFile = (mode: 'train' | 'val', step: number): string =>
  `${runFiles.episodes}/${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}.jsonl`;

/** File of an episode: that of its step, or of the step's what-if episodes if the id ends in `-w1`, `-w2` …. */
export function episodeFile({ mode, step, id }: { mode: 'train' | 'val'; step: number; id: string }): string {
  const file = episodesFile(mode, step);
  return /-w\d+$/.test(id) ? `${runFiles.whatIf}${file.slice(runFiles.episodes.length)}` : file;
}

/** `diagnostics/groups-000123.jsonl`: the prompt groups of a step. */
export const groupsFile = (step: number): string =>
  `${runFiles.diagnostics}/groups-${String(step).padStart(6, '0')}.jsonl`;

/** `checkpoints/step-000100`. */
export const checkpointFolder = (step: number): string =>
  `${runFiles.checkpoints}/step-${String(step).padStart(6, '0')}`;

const runState = z.enum(['starting', 'running', 'paused', 'stopping', 'stopped', 'finished', 'failed']);
export type RunState = z.infer<typeof runState>;

/** `manifest.json`: written once when the run is created; a resume never changes it. */
export const manifestSchema = z.object({
  schema: z.literal(1),
  id: z.string(),
  name: z.string(),
  created: z.string().describe('ISO time'),
  config_name: z.string(),
  config_file: z.string().optional().describe('absolute path, where a file was given'),
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
    .object({ id: z.string(), point: z.string().describe('the values that identify it in its sweep') })
    .optional()
    .describe('set for a run of a sweep'),
  tags: z.array(z.string()).optional(),
  sha256: z
    .string()
    .optional()
    .describe('of everything except name and tags, in canonical JSON; missing in runs of earlier versions'),
});
export type Manifest = z.infer<typeof manifestSchema>;

/**
 * Schema of the manifest of the run in the folder `name`. The folder name is the run id, regardless of the manifest: a
 * copied or renamed folder is a separate run, and no id leads out of the folder of runs.
 */
export const manifestIn = (name: string) =>
  manifestSchema
    .refine(() => isRunId(name), { error: `a run’s folder cannot be called ${JSON.stringify(name)}` })
    .transform((manifest): Manifest => ({ ...manifest, id: name }));

/** `labels.json`: the user's labels, which override the manifest. Any process may replace it, atomically. */
export const labelsSchema = z.object({
  schema: z.literal(1),
  name: z.string().min(1).optional(),
  tags: z.array(z.string().min(1)).optional(),
  archived: z.boolean().optional().describe('hidden in lists by default'),
});
export type Labels = z.infer<typeof labelsSchema>;

/** `status.json`: the newest state, replaced atomically after each step and at each change of state. */
export const statusSchema = z.object({
  state: runState,
  step: z.number().int().describe('steps finished'),
  total_steps: z.number().int().describe('0 for an evaluation'),
  episodes: z
    .object({ done: z.number().int(), of: z.number().int() })
    .optional()
    .describe('of an evaluation: validation episodes that are finished, and all'),
  success: z.number().nullable().describe('newest validation success, else training success, 0…1'),
  success_of: z.enum(['train', 'val']).optional().describe('whether the success is of training or validation'),
  reward: z.number().nullable().describe('mean episodic return of the newest step'),
  tokens_per_s: z.number().nullable(),
  eta_s: z.number().nullable(),
  phase: z.string().describe('download, rollout, update, validation, checkpoint, idle'),
  activity: z
    .string()
    .optional()
    .describe(
      'progress of the phase, such as "12 of 32 episodes, 310 turns"; sent to clients more often than written to the file',
    ),
  download: z
    .object({ file: z.string(), bytes: z.number(), total: z.number() })
    .optional()
    .describe('while the model is downloaded: the current file, and the bytes of all files downloaded and in total'),
  debugging: z.boolean().optional().describe('a debugger may halt the environments: their steps have no time limit'),
  updated: z.string(),
  error: z
    .string()
    .optional()
    .describe('why it failed, or why it is paused where it paused by itself; one sentence: place, value, remedy'),
});
export type RunStatus = z.infer<typeof statusSchema>;

/** A line of `metrics.jsonl`: step, time, then metrics by RAGEN's key names. Non-finite values are left out. */
export const metricsLineSchema = z
  .object({ step: z.number().int(), time: z.string(), wall_s: z.number() })
  .catchall(z.union([z.number(), z.string()]));
export type MetricsLine = z.infer<typeof metricsLineSchema>;

/**
 * A line of `scores.jsonl`: distribution of the scores of a step's training episodes, without those whose environment
 * failed.
 */
export const scoresLineSchema = z.object({
  step: z.number().int(),
  tags: z
    .record(z.string(), z.array(z.tuple([z.number(), z.number().int()])))
    .describe('by tag: score (reward + penalty, before normalisation) and how many episodes had it, growing scores'),
});
export type ScoresLine = z.infer<typeof scoresLineSchema>;

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
    'environment_reload',
    'environment_refused',
    'environment_mended',
    'environment_debug',
    'alarm',
    'setting',
    'warning',
    'early_stop',
  ]),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
});
export type RunEvent = z.infer<typeof eventSchema>;

/** `data` of a `setting` event: a configuration value that changed, effective from the step after the event. */
export const settingChangeSchema = z.object({ key: z.string(), from: z.number(), to: z.number() });
export type SettingChange = z.infer<typeof settingChangeSchema>;

const sourceProblemSchema = z.object({
  file: z.string().describe('absolute path'),
  line: z.number().int(),
  column: z.number().int(),
  endLine: z.number().int().optional(),
  endColumn: z.number().int().optional(),
  message: z.string(),
  kind: z.enum(['build', 'type', 'load']),
});

/** `data` of `environment_reload`: episodes that start from now on run the new code. */
export const environmentReloadSchema = z.object({
  tag: z.string(),
  from: z.string().describe('version'),
  to: z.string(),
  files: z.array(z.string()).describe('absolute paths of the files that were saved'),
  step: z.number().int().describe('the current step'),
  ms: z.number().describe('from the save to its use'),
});
/**
 * `data` of `environment_refused`: the code on disk is rejected and not used, until `environment_mended` or
 * `environment_reload` of the tag.
 */
export const environmentRefusedSchema = z.object({
  tag: z.string(),
  version: z.string().describe('version that keeps running'),
  problems: z.array(sourceProblemSchema),
});
/** `data` of `environment_error`: environment code ended an episode. */
export const environmentErrorSchema = z.object({
  tag: z.string(),
  seed: z.number(),
  kind: z.string(),
  at: z.string().optional().describe('file:line'),
  episodes: z
    .number()
    .int()
    .optional()
    .describe('episodes that ended there and are not covered by another event; default 1'),
});
/**
 * `data` of `environment_version`: the code that a resumed run finds on disk differs from the code of the checkpoint's
 * steps.
 */
export const environmentVersionSchema = z.object({ tag: z.string(), from: z.string(), to: z.string() });

/** A relative name below a folder, without `.` or `..` parts. */
const sourceName = z.string().regex(/^(?!\.{1,2}(\/|$))[^\\/:]+(\/(?!\.{1,2}(\/|$))[^\\/:]+)*$/);

/** Whether a text may name a saved source below `sources/`. */
export const isSourceName = (text: string): boolean => sourceName.safeParse(text).success;

/** Schema of `environments/<version>/version.json`. */
export const keptEnvironmentSchema = z.object({
  version: z.string(),
  name: z.string(),
  kept: z.string().describe('ISO time'),
  root: z.string().describe('absolute path of the folder that the sources were in'),
  entry: sourceName.describe('the source that was named in the configuration'),
  sources: z.array(sourceName).describe('names below `root` and below `sources/`, with forward slashes'),
});
export type KeptEnvironment = z.infer<typeof keptEnvironmentSchema>;

/**
 * A line of `environments/<version>/coverage.jsonl`: how often the episodes of a step executed the lines of its code.
 */
export const coverageLineSchema = z.object({
  step: z.number().int(),
  map: z.string().describe('line numbers are comparable only under the same map'),
  files: z
    .record(z.string(), z.array(z.tuple([z.number().int(), z.number(), z.number()])))
    .describe('by name below `sources/`: 1-based line, highest and lowest execution count of its parts'),
});
export type CoverageLine = z.infer<typeof coverageLineSchema>;

const turnSchema = z.object({
  turn: z.number().int().describe('1-based'),
  state: z.string(),
  actions_left: z.number().int(),
  /** The model's complete text of the turn, including the generation prefix. */
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

/**
 * How an episode of `what-if/*.jsonl` differs from its original. Tokens written by the user have mask 0 and no
 * log-prob.
 */
const whatIfSchema = z.object({
  of: z.string().describe('id of the episode that was changed'),
  turn: z.number().int().describe('first turn that differs from the original'),
  given: z.object({ thought: z.string().optional(), answer: z.string().optional() }).describe('in that turn, by hand'),
  players: z.array(z.string()).describe('of each turn from that one on: a checkpoint’s name, `initial`, or `hand`'),
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
  context_reason: z.string().optional().describe('why the next prompt did not fit, which ended the episode'),
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
  tokens: z.object({
    ids: z.array(z.number().int()),
    mask: z.array(z.union([z.literal(0), z.literal(1)])).describe('1 where the token was sampled'),
    logprobs: z.array(z.number().nullable()).describe('of the sampled tokens under the sampler, null elsewhere'),
    advantages: z.array(z.number()).optional(),
    entropies: z
      .array(z.number().nullable())
      .optional()
      .describe('of the distribution that each trained token was drawn from, in nats; where the update needed them'),
    ref_logprobs: z.array(z.number().nullable()).optional().describe('under the reference policy, where there is one'),
    values: z.array(z.number().nullable()).optional().describe('the critic’s, before each token, where there is one'),
    starts: z
      .array(z.number().int())
      .optional()
      .describe('start of each training sample in a windowed context; absent if there is only one'),
  }),
  what_if: whatIfSchema.optional(),
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

/**
 * `lease`: the process that serves this run; touched every second while the trainer lives. Leases of earlier versions
 * lack the optional fields that identify the process.
 */
export const leaseSchema = z.object({
  pid: z
    .int()
    .min(1)
    .max(2 ** 31 - 1),
  started: z.string(),
  endpoint: z.string().describe('path of the socket or name of the pipe'),
  token: z.string(),
  process_start: z.string().max(64).optional().describe('when the process started (process-identity.ts)'),
  host: z.string().max(256).optional(),
  boot: z.string().max(64).nullable().optional().describe('id of the boot of the machine, on Linux'),
  pid_namespace: z.string().max(64).nullable().optional().describe('inode of the PID namespace, on Linux'),
  folder: z
    .object({ path: z.string().describe('real path'), inode: z.string() })
    .optional()
    .describe('the run folder that it was written for; trainers of earlier versions left it out'),
});
export type Lease = z.infer<typeof leaseSchema>;

/**
 * Whether a lease was written for the folder in which it lies. The lease of a copied or renamed folder points to the
 * trainer of the original. A folder that a container shows under another path is recognized by its inode.
 */
export function isLeaseOf({ folder }: Lease, at: NonNullable<Lease['folder']>): boolean {
  if (folder === undefined || folder.path === at.path) return true;
  const name = (path: string): string | undefined => path.split(/[\\/]/).at(-1);
  return folder.inode === at.inode && name(folder.path) === name(at.path);
}

/** Milliseconds without a touch after which a lease of another machine or container is stale. */
export const leaseStaleMs = 5000;
