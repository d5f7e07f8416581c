// Detects runs that have newly paused themselves, so that each pause is reported once: not again while it lasts, nor
// after a window reload, for which it is remembered by the status's `updated` time. Must not import `vscode`.
import type { RunSummary } from '../../../protocol/pages';
import { waitsBecause } from '../run-format';

/** Storage that survives a reload: the workspace state. */
export interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

const key = 'ragen.runs.waitsTold';

export class WaitingRuns {
  /** Folders of the runs that wait now. */
  private readonly waiting = new Set<string>();

  constructor(private readonly memory: Memory) {}

  /** Returns those of all runs that started waiting since the last call and were not reported. */
  unreported<R extends { folder: string; summary: RunSummary }>(runs: readonly R[]): R[] {
    const reported = this.memory.get<Record<string, string>>(key) ?? {};
    const now = runs.filter(({ summary }) => waitsBecause(summary) !== undefined);
    const fresh = now.filter(
      ({ folder, summary }) => !this.waiting.has(folder) && reported[folder] !== summary.status.updated,
    );
    this.waiting.clear();
    for (const { folder } of now) this.waiting.add(folder);
    // A run that is not read yet, or whose trainer is briefly silent, may still be in the reported pause.
    const over = new Set(runs.filter(({ summary }) => summary.status.state !== 'paused').map(({ folder }) => folder));
    const updated = Object.fromEntries([
      ...Object.entries(reported).filter(([folder]) => !over.has(folder)),
      ...now.map(({ folder, summary }) => [folder, summary.status.updated] as const),
    ]);
    if (JSON.stringify(updated) !== JSON.stringify(reported)) void this.memory.update(key, updated);
    return fresh;
  }
}
