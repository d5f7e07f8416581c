// Writes a run's status file and notifies watchers of each change. Watchers are notified immediately; the file is
// written as soon as no earlier write is pending. If the disk is too full for a replacement file, the old file is
// overwritten in place, but only if the run has failed or is waiting.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import type { RunStatus } from '../../run-data/run-status-file';
import { runFiles } from '../../run-data/run-file-names';
import { secrets } from '../../node/secrets';
import type { RunFolder } from '../store/run-folder';
import type { RunEvent } from '../../run-data/run-events';

/** Receives status changes, appended log bytes and events immediately. */
export interface Watchers {
  status(status: RunStatus, fraction: number): void;
  appended(file: string, bytes: number, step: number): void;
  event(event: RunEvent): void;
}

export class StatusWriter {
  private fraction = 0;
  private writing: Promise<void> = Promise.resolve();
  private dirty = false;
  private unwritten: Error | undefined;
  /** True if the status is final. */
  private crashed = false;

  constructor(
    private readonly folder: RunFolder,
    private readonly watchers: Pick<Watchers, 'status'>,
    private current: RunStatus,
  ) {}

  get status(): RunStatus {
    return this.current;
  }

  /**
   * Changes the status. Watchers are notified immediately; the file is written as soon as no earlier write is pending.
   */
  update(change: Partial<RunStatus>, fraction = 0): void {
    if (this.crashed) return;
    const { activity: _, ...current } = this.current; // the activity described the status before this change
    this.current = { ...current, ...secrets.value(change), updated: now() };
    this.fraction = fraction;
    this.watchers.status(this.current, fraction);
    this.dirty = true;
    this.writing = this.writing.then(() => this.writeStatus());
  }

  /** Sends progress within a phase, and a short description of the current work, to watchers only. */
  progress(fraction: number, activity?: string): void {
    const cleared = activity === this.current.activity;
    if (cleared && fraction - this.fraction < 0.01 && fraction >= this.fraction) return;
    this.fraction = fraction;
    this.current = { ...this.current, activity };
    this.watchers.status(this.current, fraction);
  }

  /** Resolves after all pending writes of the file. */
  async written(): Promise<void> {
    await this.writing;
  }

  /** Makes the newest status durable. @throws StoreRefusal if writing fails */
  async sync(): Promise<void> {
    await this.writing;
    if (this.unwritten) {
      this.dirty = true;
      await this.writeStatus();
    }
    if (this.unwritten) throw this.unwritten;
  }

  /** Makes the current status final: all later changes are ignored. */
  freeze(): void {
    this.crashed = true;
  }

  /** True once the status is final. */
  get frozen(): boolean {
    return this.crashed;
  }

  private async writeStatus(): Promise<void> {
    if (!this.dirty) return;
    this.dirty = false;
    try {
      await this.folder.writeStatus(this.current);
      this.unwritten = undefined;
    } catch (error) {
      this.unwritten = error as Error;
      if (this.current.error !== undefined) this.overwriteStatus();
    }
  }

  /** Overwrites the status file in place. Errors are ignored, because watchers have already received the status. */
  overwriteStatus(): void {
    try {
      overwrite(this.folder.file(runFiles.status), `${JSON.stringify(this.current)}\n`);
    } catch {
      // This write failed, too.
    }
  }
}

/**
 * Overwrites a file in place. This needs additional disk space only if the text is longer than the file. If the text is
 * shorter, blanks fill the rest of the file, which JSON permits.
 */
function overwrite(file: string, text: string): void {
  const fd = openSync(file, 'r+');
  try {
    const bytes = Buffer.alloc(Math.max(fstatSync(fd).size, Buffer.byteLength(text)), ' ');
    bytes.write(text);
    writeSync(fd, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(fd);
  }
}

const now = (): string => new Date().toISOString();
