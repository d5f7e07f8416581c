// The pen of a run: writes metrics, events, episodes and status into the run folder and tells watchers that there is more to read.
// What is appended is whole lines; a step's metrics line is written last, so that a step with a line has everything else too.
// A status that could not be written fails the next sync; the last words of a run that failed find room on a full disk.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { relative } from 'node:path';
import type { Episode, GroupRow, RunEvent, RunStatus } from '../protocol/run-folder';
import { episodesFile, groupsFile, runFiles } from '../protocol/run-folder';
import { finiteOnly } from './step-metrics';
import type { LineLog } from './store/line-log';
import type { RunFolder } from './store/run-folder';

/** Whoever wants to hear of progress as it happens. */
export interface Watchers {
  status(status: RunStatus, fraction: number): void;
  appended(file: string, bytes: number, step: number): void;
  event(event: RunEvent): void;
}

export class Journal {
  private readonly metricsLog: LineLog;
  private readonly eventsLog: LineLog;
  private current: RunStatus;
  private fraction = 0;
  private readonly started = performance.now();
  private writing: Promise<void> = Promise.resolve();
  private dirty = false;
  private unwritten: Error | undefined;

  constructor(
    private readonly folder: RunFolder,
    private readonly watchers: Watchers,
    initial: RunStatus,
    /** Seconds that earlier sittings of this run took. */
    private readonly earlierSeconds: number,
  ) {
    this.metricsLog = folder.metrics();
    this.eventsLog = folder.events();
    this.current = initial;
  }

  get status(): RunStatus {
    return this.current;
  }

  /** Seconds of all sittings. */
  get wallSeconds(): number {
    return this.earlierSeconds + (performance.now() - this.started) / 1000;
  }

  /** Byte lengths of the logs, for a checkpoint. */
  get offsets(): Record<string, number> {
    return { [runFiles.metrics]: this.metricsLog.offset, [runFiles.events]: this.eventsLog.offset };
  }

  /** A step's metrics; numbers that are not finite are left out. */
  metrics(step: number, values: Readonly<Record<string, number>>): void {
    const line = { step, time: now(), wall_s: round(this.wallSeconds), ...finiteOnly(values) };
    this.watchers.appended(runFiles.metrics, this.metricsLog.append(line), step);
  }

  event(kind: RunEvent['kind'], message: string, data?: Record<string, unknown>): void {
    const event: RunEvent = { time: now(), step: this.current.step, kind, message, ...(data && { data }) };
    this.eventsLog.append(event);
    this.watchers.event(event);
  }

  /** A step's episodes, all of them. */
  episodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>): void {
    this.appendEpisodes(mode, step, episodes, true);
  }

  /** Further episodes of a step. */
  addEpisodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>): void {
    this.appendEpisodes(mode, step, episodes, false);
  }

  private appendEpisodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>, anew: boolean): void {
    const log = this.folder.episodes(mode, step);
    try {
      if (anew) log.truncateTo(0);
      for (const episode of episodes) log.append(episode);
      log.sync();
      this.watchers.appended(episodesFile(mode, step), log.offset, step);
    } finally {
      log.close();
    }
  }

  /** A step's prompt groups. */
  groups(step: number, groups: readonly GroupRow[]): void {
    const log = this.folder.groups(step);
    try {
      log.truncateTo(0);
      for (const group of groups) log.append(group);
      log.sync();
      this.watchers.appended(groupsFile(step), log.offset, step);
    } finally {
      log.close();
    }
  }

  /** What a diagnosis of a step found, as a file of its own. */
  async diagnosis(file: string, step: number, document: unknown): Promise<void> {
    this.watchers.appended(file, await this.folder.writeDiagnosis(file, document), step);
  }

  /** Changes the status, in memory and for watchers at once, on disk as soon as the last write is done. */
  update(change: Partial<RunStatus>, fraction = 0): void {
    this.current = { ...this.current, ...change, updated: now() };
    this.fraction = fraction;
    this.watchers.status(this.current, fraction);
    this.dirty = true;
    this.writing = this.writing.then(() => this.writeStatus());
  }

  /** Progress within a phase: for watchers alone. */
  progress(fraction: number): void {
    if (fraction - this.fraction < 0.01 && fraction >= this.fraction) return;
    this.fraction = fraction;
    this.watchers.status(this.current, fraction);
  }

  /** Makes everything durable. */
  async sync(): Promise<void> {
    this.metricsLog.sync();
    this.eventsLog.sync();
    await this.writing;
    if (this.unwritten) throw this.unwritten;
  }

  /**
   * The last words of a run that failed: `sentence` in status and events, as far as they can be written. Where there is no room for a
   * new status file, the old one is written over in place, since a full disk may be what ended the run.
   */
  async fail(sentence: string): Promise<void> {
    this.update({ state: 'failed', phase: 'idle', download: undefined, error: sentence, eta_s: null });
    await this.writing;
    try {
      if (this.unwritten) overwrite(this.folder.file(runFiles.status), `${JSON.stringify(this.current)}\n`);
      this.event('state', `failed: ${sentence}`);
    } catch {
      // the trainer's log has the sentence, and whoever watches has heard it
    }
  }

  /** Closes the logs; what was not synced before is left to the system. */
  async close(): Promise<void> {
    await this.writing;
    this.metricsLog.close();
    this.eventsLog.close();
  }

  /** The folder of a checkpoint as the user knows it, from the run folder. */
  relative(path: string): string {
    return relative(this.folder.path, path);
  }

  private async writeStatus(): Promise<void> {
    if (!this.dirty) return;
    this.dirty = false;
    try {
      await this.folder.writeStatus(this.current);
      this.unwritten = undefined;
    } catch (error) {
      this.unwritten = error as Error;
    }
  }
}

/** Writes over the start of a file without needing room; the text must be JSON, since what it does not cover becomes blanks. */
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
const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;
