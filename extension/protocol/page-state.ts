// Messages between the extension host and its pages, and the state that each page saves. The host reads the run folder
// and sends a complete snapshot first, then each complete new line. A page saves only its navigation and view settings.
// A page that becomes visible again sends `ready` and receives a new snapshot.
import type { NotificationType } from 'vscode-messenger-common';
import type { JobRecord } from '../run-data/job-record';
import type { RunColour } from '../run-data/run-colour';
import type { Manifest } from '../run-data/run-manifest';
import type { RunStatus } from '../run-data/run-status-file';

export interface RunSummary {
  id: string;
  name: string;
  folder: string;
  config_name: string;
  created: string;
  /** The user's tags (`labels.json`); absent if the user has set none. */
  tags?: string[];
  archived?: boolean;
  /** The colour that the user has chosen (run-data/run-colour.ts); absent if the user has chosen none. */
  colour?: RunColour;
  /** The run, by id, and the step of the checkpoint from which this run was forked; absent for other runs. */
  parent?: Manifest['parent'];
  /** The other trainer to which an attached run belongs; absent for runs of this product. */
  trainer?: Manifest['trainer'];
  /** First words of `notes.md`; absent without notes. */
  notes?: string;
  status: RunStatus;
  /** The Ray job that runs the trainer; absent for runs of this machine. */
  job?: Pick<JobRecord, 'address' | 'id' | 'host'>;
  /** Host of the running trainer, if it is another machine or container, whose socket may be unreachable. */
  otherHost?: string;
  /**
   * Whether the run's trainer is alive (`trainerLife` in node/lease-liveness.ts), the process that follows an attached run
   * is alive, or the run's job is queued. A run with
   * status `running` that is not live was interrupted.
   */
  live: boolean;
  /**
   * Seconds for which the trainer has not responded, although its process exists or, on another machine, its lease is
   * not old; absent while the trainer responds.
   */
  silent_s?: number;
  /** Reason why the status cannot be read, in one sentence; absent if the status was read. */
  problem?: string;
}

/**
 * State that every page saves with `setState`, in addition to its view settings. The host uses this state to restore
 * the panel after a window reload. A page gets `folder` from the attribute `<body data-run="…">`, which the host
 * writes, or from the run in a snapshot.
 */
export interface PageState {
  /** Absolute path of the run folder. */
  folder: string;
}

/** Every page reports the width of its window, in CSS pixels, when it opens and whenever the width changes. */
export const windowWidth: NotificationType<{ width: number }> = { method: 'page/windowWidth' };

/** Tells a page that stays in memory while it is hidden when it is shown and hidden. */
export const pageVisibility: NotificationType<{ visible: boolean }> = { method: 'page/visibility' };
