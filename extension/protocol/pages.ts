// Messages between the extension host and its pages, and the state of each page. Ownership: the run folder owns the
// data; the host reads it and sends a complete snapshot first, then complete lines; a page owns only its navigation and
// view settings. A page that was hidden sends `ready` again and gets a new snapshot.
import type { RunStatus } from '../run-data/run-status-file';

export interface RunSummary {
  id: string;
  name: string;
  folder: string;
  config_name: string;
  created: string;
  /** Set by the user, if at all (`labels.json`, `notes.md`). */
  tags?: string[];
  archived?: boolean;
  /** First words of the notes. */
  notes?: string;
  status: RunStatus;
  /** The trainer's lease is alive. A run with status `running` and no live lease was interrupted. */
  live: boolean;
  /** Why the status cannot be read, in one sentence. */
  problem?: string;
}

/**
 * State that every page saves with `setState`, beside its own view settings, so that the host can restore the panel
 * after a window reload. The host writes `folder` into `<body data-run="…">`; a page copies it from there or from the
 * run of a snapshot.
 */
export interface PageState {
  /** Absolute path of the run folder. */
  folder: string;
}
