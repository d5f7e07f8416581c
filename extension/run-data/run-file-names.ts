// The run folder `.ragen/runs/<id>/`: names of its files and folders. The folder is the authoritative record of a run;
// pages, tree and terminal read from it. Logs are append-only JSON lines. Each kind of file has its schema in its own
// source file: run-manifest.ts, run-status-file.ts, run-events.ts, step-lines.ts, episode.ts, environment-snapshot.ts
// and lease-file.ts.
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
  /** Pictures of states. */
  pictures: 'pictures',
  /** Replies of judges (judgement.ts). */
  judgements: 'judgements.jsonl',
  /** Replies of models that play roles (role-reply.ts). */
  roleReplies: 'role-replies.jsonl',
  /** Derived from the episode files (episode-index-line.ts). */
  episodeIndex: 'episodes/index.jsonl',
  checkpoints: 'checkpoints',
  environments: 'environments',
  plugins: 'plugins',
  diagnostics: 'diagnostics',
  whatIf: 'what-if',
  /** Folder of the timeline, which records how the time of each step was spent (timeline.ts). */
  timeline: 'timeline',
  timelineSteps: 'timeline/steps.jsonl',
  /** The spans that the step in progress has recorded so far. */
  timelineCurrent: 'timeline/current.jsonl',
  /** TensorBoard event files, one per run session. */
  tensorboard: 'tensorboard',
  /** The user's labels of the run. */
  labels: 'labels.json',
  notes: 'notes.md',
  log: 'trainer.log',
  lease: 'lease',
  /** The Ray job of the run (job-record.ts). */
  job: 'job.json',
  /** Requests to the trainer from other machines (run-request.ts). */
  requests: 'requests',
  /**
   * The model's tokenizer, stored so that token ids can be decoded on any machine. Checkpoints contain a file of the
   * same name.
   */
  tokenizer: 'tokenizer.json',
  /** Result of an evaluation. */
  evaluation: 'evaluation.json',
  /** Signature of the trainer that wrote the manifest (run-trust.ts). */
  signature: 'signature.json',
  /** Which files of another trainer were converted to episodes (foreign-runs/attached-episodes.ts). */
  attached: 'attached.json',
  /** Which metrics of another trainer's run were computed from its rollouts (derived-metrics.ts). */
  derivedMetrics: 'derived-metrics.json',
} as const;

/**
 * Maximum bytes of a log line that readers accept. An episode line contains the episode's texts and tokens. An index
 * line contains all rows of a step.
 */
export const mostLineBytes = 2 ** 26;

/**
 * Whether a text is a valid name of a version's folder. Names with path separators are invalid because run folders are
 * untrusted.
 */
export const isVersionName = (text: string): boolean => /^[\w-]+$/.test(text);

/**
 * Whether a text is a valid run id: one folder name of at most 255 characters, without path separators or invisible
 * characters. The id must not begin with a dot or hyphen, nor end with a dot or blank. A leading hyphen would make the
 * id a command-line option.
 */
export const isRunId = (text: string): boolean => text.length <= 255 && /^(?![.-])[^\\/:\p{C}]+(?<![. ])$/u.test(text);

/** `environments/<version>/…`: environment code that the run used. */
export const environmentFile = (version: string, name: string): string => `${runFiles.environments}/${version}/${name}`;
export const environmentFiles = {
  /** The environment's code as one bundled file. */
  bundle: 'environment.js',
  about: 'version.json',
  /** Folder of the saved sources, whose names are listed in `version.json`. */
  sources: 'sources',
  coverage: 'coverage.jsonl',
  /** Signature of the trainer that saved the code (run-trust.ts). */
  signature: 'signature.json',
} as const;

/** `plugins/<version>/…`: code of a plug-in that the run used. */
export const pluginFile = (version: string, name: string): string => `${runFiles.plugins}/${version}/${name}`;
export const pluginFiles = {
  /** The plug-in's code as one bundled file. */
  bundle: 'plugin.js',
  about: 'version.json',
  /** Folder of the saved sources, whose names are listed in `version.json`. */
  sources: 'sources',
} as const;

/** Folder of a workspace's runs, relative to the workspace's root. */
export const runsFolder = '.ragen/runs';

/** `episodes/step-000123.jsonl`, or `episodes/val-000120.jsonl` for a validation after step 120. */
export const episodesFile = (mode: 'train' | 'val', step: number): string =>
  `${runFiles.episodes}/${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}.jsonl`;

/** Whether a text is the name of a picture in `pictures/`: the SHA-256 of a file of the run's own episodes. */
export const isStoredPicture = (text: string): boolean => /^[0-9a-f]{64}\.(?:png|jpg)$/.test(text);

/** `pictures/step-000123`: the folder of the pictures that the episodes of a file name, in a run of another trainer. */
export const picturesFolder = (mode: 'train' | 'val', step: number): string =>
  `${runFiles.pictures}/${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}`;

/** Whether a text is the name of a picture in such a folder. */
export const isPictureName = (text: string): boolean => /^[0-9a-f]{40}\.(?:png|jpg)$/.test(text);

/**
 * Returns the file of an episode: the file of the step's what-if episodes if the id ends in `-w1`, `-w2` …, else the
 * file of the step's episodes.
 */
export function episodeFile({ mode, step, id }: { mode: 'train' | 'val'; step: number; id: string }): string {
  const file = episodesFile(mode, step);
  return /-w\d+$/.test(id) ? `${runFiles.whatIf}${file.slice(runFiles.episodes.length)}` : file;
}

/** `diagnostics/groups-000123.jsonl`: the prompt groups of a step. */
export const groupsFile = (step: number): string =>
  `${runFiles.diagnostics}/groups-${String(step).padStart(6, '0')}.jsonl`;

/** `timeline/step-000123.jsonl`: the spans of a step. */
export const timelineFile = (step: number): string =>
  `${runFiles.timeline}/step-${String(step).padStart(6, '0')}.jsonl`;

/** Returns the folder of a checkpoint, such as `checkpoints/step-000100`. */
export const checkpointFolder = (step: number): string =>
  `${runFiles.checkpoints}/step-${String(step).padStart(6, '0')}`;
