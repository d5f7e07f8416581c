// The interface between the readers of other trainers' files (the adapters) and the code that shows these files as a
// run. An adapter recognises its trainer by the names and contents of files, and returns sources of metrics and
// rollouts. It reads only files that the listing contains, never writes, and never opens a path that a file contains.
// docs/FOREIGN-RUNS.md explains how to write one.
import type { Episode } from '../run-data/episode';
import type { Mapping } from '../run-data/mapping-proposal';
import type { SourceFolder } from './source-folder';

/** Metrics of one step; several rows of a step are merged, and later values win. */
export interface MetricRow {
  step: number;
  /** Milliseconds since 1970; absent if the trainer does not store the time. */
  time?: number;
  /** Finite numbers by the trainer's names. */
  values: Record<string, number>;
}

/** A file or a set of files with metrics, which may grow. */
export interface MetricSource {
  /** Path relative to the source folder, for messages. */
  name: string;
  /**
   * Passes the rows that were added since the last call to `add`. Returns true if the source was truncated or replaced
   * since the last call; all its rows are then passed again.
   */
  read(add: (row: MetricRow) => void): Promise<boolean>;
  /** Sentences about parts that could not be read: file, reason and remedy. Absent if every part is read or fails. */
  problems?(): string[];
}

export interface ChatMessage {
  role: string;
  content: string;
  /** Reasoning that the trainer stores outside of `content`. */
  reasoning?: string;
  /** Whether the policy wrote the message; by default, messages of the role `assistant`. */
  sampled?: boolean;
  /** Reward of the turn that this message is; absent if the trainer stores no rewards of turns. */
  reward?: number;
  tokens?: MessageTokens;
  /**
   * Pictures, in the order of the words `[image]` in `content`: paths of listed files relative to the source folder;
   * null for a picture that the trainer has not stored.
   */
  pictures?: (string | null)[];
}

/** Token ids of a message. */
export interface MessageTokens {
  ids: number[];
  /** True for tokens that the policy sampled. */
  mask: boolean[];
  /** Log-probs of the sampled tokens, in order. */
  logprobs: number[];
  /** Advantages of the sampled tokens, in order; absent before they are computed. */
  advantages?: number[];
}

/** One rollout as an adapter reads it. */
export interface ForeignEpisode {
  /** Rollouts with equal keys form one prompt group. */
  group: string;
  /** True if `group` is the text of the prompt; a group then also has equal pictures before the first response. */
  isGroupedByText?: boolean;
  /** Environment or data source. */
  tag: string;
  messages: ChatMessage[];
  reward: number;
  /** Null if the trainer stores no success. */
  success: boolean | null;
  terminated?: boolean;
  truncated?: boolean;
  advantage?: number | null;
  kept?: boolean | null;
  /** Seed or index of the prompt; absent if unknown. */
  seed?: number;
  metrics?: Record<string, number>;
  error?: string;
  /** False if the messages only describe texts that the trainer did not store. */
  hasTexts?: boolean;
}

/** The rollouts of one step and mode. */
export interface RolloutUnit {
  mode: 'train' | 'val';
  step: number;
  /** Paths relative to the source folder, as in the listing. */
  files: string[];
  /** Identifies the content; by default, the sizes and modification times of the files. */
  key?: string;
  /** Yields the rollouts; null for a line or row that is no rollout of this trainer. */
  read(): AsyncIterable<ForeignEpisode | null>;
}

/** What an adapter has found in a folder. */
export interface ForeignRun {
  trainer: { name: string; version?: string };
  /** Name of the run; the folder's name by default. */
  name: string;
  config: Record<string, unknown>;
  /** Planned number of steps; 0 if unknown. */
  totalSteps: number;
  /** Set for an evaluation without steps, which is shown as a table: the planned number of rollouts, 0 if unknown. */
  evaluation?: { episodes: number };
  /** Sentences about the files that are read. */
  found: string[];
  /** What the folder lacks, each with the trainer's setting that writes it. */
  missing: string[];
  /** The fields or columns without which a line or row is no rollout, with the setting that writes them. */
  rolloutFields?: string;
  /** Returns this trainer's name for a metric in RAGEN's terms; the same name if RAGEN has no metric of this meaning. */
  rename?(name: string): string;
  /** Metrics whose value is the duration of a step in seconds; the first that a row has is used. */
  stepSeconds?: readonly string[];
  metrics: readonly MetricSource[];
  /**
   * Returns the rollouts that the folder contains now, in any order. Called after each refresh of the listing. `more` is
   * true if a part of the files has not been looked at yet; the next call continues. `problems` says which files could
   * not be read, in sentences.
   */
  rollouts(): Promise<{ units: RolloutUnit[]; more?: boolean; problems?: string[] }>;
  /** Looks for sources in files that the listing had not before; absent in what an adapter returns (growing-run.ts). */
  refresh?(): Promise<void>;
  /** Whether the trainer has marked the run as ended; absent if it never does. */
  ended?(): Promise<boolean>;
}

export interface Adapter {
  /** Name for `--trainer`, such as `verl`. */
  id: string;
  /** Returns what the folder contains; null if it contains no run of this trainer. */
  find(source: SourceFolder, mapping: Mapping): Promise<ForeignRun | null>;
}

/** Token data of an episode whose trainer stores none: empty lists. Pages then say that the tokens are missing. */
export const noTokens: Episode['tokens'] = { ids: [], mask: [], logprobs: [] };
