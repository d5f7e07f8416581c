// Which runs have paused themselves anew, so that each occurrence is told once: not again while it lasts, and not after a reload of the
// window, for which it is remembered by the time that the status gives. No `vscode` here.
import type { RunSummary } from '../protocol/pages';
import { waitsBecause } from './run-words';

/** What survives a reload: the workspace's memory. */
export interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

const key = 'ragen.runs.waitsTold';

export class WaitingRuns {
  /** Folders of those that wait now. */
  private readonly waiting = new Set<string>();

  constructor(private readonly memory: Memory) {}

  /** Of all runs that there are, those that wait since the last look and were not told of. */
  unheard<R extends { folder: string; summary: RunSummary }>(runs: readonly R[]): R[] {
    const told = this.memory.get<Record<string, string>>(key) ?? {};
    const now = runs.filter(({ summary }) => waitsBecause(summary) !== undefined);
    const fresh = now.filter(
      ({ folder, summary }) => !this.waiting.has(folder) && told[folder] !== summary.status.updated,
    );
    this.waiting.clear();
    for (const { folder } of now) this.waiting.add(folder);
    // A run that is not read yet, or whose trainer is silent for a moment, may still wait by what it was told for.
    const over = new Set(runs.filter(({ summary }) => summary.status.state !== 'paused').map(({ folder }) => folder));
    const tell = Object.fromEntries([
      ...Object.entries(told).filter(([folder]) => !over.has(folder)),
      ...now.map(({ folder, summary }) => [folder, summary.status.updated] as const),
    ]);
    if (JSON.stringify(tell) !== JSON.stringify(told)) void this.memory.update(key, tell);
    return fresh;
  }
}
