// Detects runs that their trainers have paused since the last call of `unreported`, so that each pause is reported
// once. Reported pauses are stored with the `updated` time of the run's status, so a window reload does not repeat a
// report. Must not import `vscode`.
import type { RunSummary } from '../../../protocol/page-state';
import { waitsBecause } from '../run-format';

/** Storage that survives a window reload: the workspace state. */
export interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

const key = 'ragen.runs.waitsTold';

export class WaitingRuns {
  /** Folders of the runs that are paused by their trainers now. */
  private readonly waiting = new Set<string>();

  constructor(private readonly memory: Memory) {}

  /**
   * Returns those of `runs` (all runs) that were paused by their trainers since the last call, without runs whose pause
   * has already been reported.
   */
  unreported<R extends { folder: string; summary: RunSummary }>(runs: readonly R[]): R[] {
    const reported = this.memory.get<Record<string, string>>(key) ?? {};
    const now = runs.filter(({ summary }) => waitsBecause(summary) !== undefined);
    const fresh = now.filter(
      ({ folder, summary }) => !this.waiting.has(folder) && reported[folder] !== summary.status.updated,
    );
    this.waiting.clear();
    for (const { folder } of now) this.waiting.add(folder);
    // The stored report of a run is removed only if the run's state is known and not `paused`. A run that has not been
    // read yet, or whose trainer looks dead for a moment, may still be paused.
    const over = new Set(runs.filter(({ summary }) => summary.status.state !== 'paused').map(({ folder }) => folder));
    const updated = Object.fromEntries([
      ...Object.entries(reported).filter(([folder]) => !over.has(folder)),
      ...now.map(({ folder, summary }) => [folder, summary.status.updated] as const),
    ]);
    if (JSON.stringify(updated) !== JSON.stringify(reported)) void this.memory.update(key, updated);
    return fresh;
  }
}
