// Runs whose end the user has not seen yet. The list survives a reload of the window. Must not import `vscode`.
import type { Memory } from './waiting-runs';

const key = 'ragen.runs.unseenEnds';

export class UnseenEnds {
  constructor(private readonly memory: Memory) {}

  /** Run folders, the newest end first. */
  get folders(): readonly string[] {
    return this.memory.get<string[]>(key) ?? [];
  }

  add(folder: string): void {
    void this.memory.update(key, [folder, ...this.folders.filter(other => other !== folder)]);
  }

  /** Removes a run whose end the user has seen. Returns false if the run was not listed. */
  see(folder: string): boolean {
    if (!this.folders.includes(folder)) return false;
    void this.memory.update(
      key,
      this.folders.filter(other => other !== folder),
    );
    return true;
  }
}
