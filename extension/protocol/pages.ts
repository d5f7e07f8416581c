// Messages between the extension host and its pages, and the state each page is given. Who owns what: the run folder owns data,
// the host reads it and sends whole snapshots first and whole lines after; a page owns its navigation and view settings only.
// A page that was hidden asks again with `ready` and gets a fresh snapshot.
import type { RunStatus } from './run-folder';

export interface RunSummary {
  id: string;
  name: string;
  folder: string;
  config_name: string;
  created: string;
  /** What a user said of the run, where anything was said (`labels.json`, `notes.md`). */
  tags?: string[];
  archived?: boolean;
  /** The first words of the notes. */
  notes?: string;
  status: RunStatus;
  /** The trainer's lease is alive; a run that says `running` without it was interrupted. */
  live: boolean;
  /** Why its status cannot be read, in one sentence. */
  trouble?: string;
}

/**
 * What every page keeps by `setState`, beside its own view settings, so that the host can restore its panel after a reload
 * of the window. The host writes `folder` into `<body data-run="…">`; a page copies it from there or from a snapshot's run.
 */
export interface PageState {
  /** Absolute path of the run's folder. */
  folder: string;
}

/** A row of the Episodes page's list. */
export interface EpisodeRow {
  id: string;
  step: number;
  mode: 'train' | 'val';
  group_id: number;
  member: number;
  tag: string;
  success: boolean;
  score: number;
  /** Sum of turn rewards, without penalties. */
  reward?: number;
  /** Mean over trained tokens; null when not trained on. */
  advantage?: number | null;
  turns: number;
  /** Sampled tokens: the sum of the mask. */
  tokens: number;
  kept: boolean | null;
  /** Actions that the environment does not know, and answers that held none; left out where nobody counted. */
  invalid?: number;
}
