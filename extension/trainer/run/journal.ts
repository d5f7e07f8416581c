// Writes a run's logs: metrics (also for TensorBoard), episodes and events; status-writer.ts writes the status. Every
// append is a complete line. The metrics line of a step is written after all other data of the step, so a step with a
// metrics line is complete. If a write fails, for example on a full disk, it is queued with all later writes. The
// trainer waits at the end of the step until the queue is written.
import { relative } from 'node:path';
import type { Episode } from '../../run-data/episode';
import type { GroupRow, ScoresLine } from '../../run-data/step-lines';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import { episodesFile, groupsFile, runFiles } from '../../run-data/run-file-names';
import { secrets } from '../../node/secrets';
import { scoresByTag } from '../loop/score-spread';
import { finiteOnly } from '../loop/metric-statistics';
import type { ColumnLog } from '../store/column-log';
import { EpisodeIndexLog } from '../store/episode-index-log';
import { StoreRefusal } from '../../node/files';
import type { LineLog } from '../store/line-log';
import type { LogLedger } from '../store/log-ledger';
import type { RunFolder } from '../store/run-folder';
import type { TimedMetrics } from '../tracking/mlflow-run';
import { StatusWriter } from './status-writer';
import type { Watchers } from './status-writer';

/** Milliseconds between retries of a refused write. */
const retryMs = 5000;

/** Pauses the run while the disk refuses writes. Implemented by RunControl. */
export interface WaitControl {
  /** Pauses for up to `ms` and shows `sentence` as the reason. Resolves with false if the run is to stop. */
  wait(sentence: string, ms: number): Promise<boolean>;
  /** Ends the pause; called after the disk accepted a write. */
  resumeAfterWait(): void;
}

export class Journal {
  private readonly metricsLog: LineLog;
  private readonly eventsLog: LineLog;
  private readonly columns: ColumnLog;
  private readonly scoresLog: LineLog;
  private readonly episodeIndex: EpisodeIndexLog;
  private readonly ledger: LogLedger;
  private readonly tensorboard: ReturnType<RunFolder['eventLog']> | undefined;
  private readonly statusFile: StatusWriter;
  private readonly started = performance.now();
  /** Queued writes, oldest first; the first of them has failed at least once. */
  private readonly backlog: (() => void)[] = [];

  constructor(
    private readonly folder: RunFolder,
    private readonly watchers: Watchers,
    initial: RunStatus,
    /** Seconds that earlier sessions of this run took. */
    private readonly earlierSeconds: number,
    private readonly waitControl?: WaitControl,
    /** Receives each line of metrics after it was written, to send it elsewhere; must return at once. */
    private readonly onMetrics: (line: TimedMetrics) => void = () => undefined,
  ) {
    this.metricsLog = folder.metrics();
    this.eventsLog = folder.events();
    this.columns = folder.columns(this.metricsLog.offset);
    this.scoresLog = folder.scores();
    this.ledger = folder.ledger();
    this.episodeIndex = new EpisodeIndexLog(folder.file(runFiles.episodeIndex), name => folder.file(name));
    if (wantsTensorboard(folder)) this.tensorboard = folder.eventLog(initial.step > 0 ? initial.step : null);
    this.statusFile = new StatusWriter(folder, watchers, initial);
  }

  get status(): RunStatus {
    return this.statusFile.status;
  }

  /** Seconds that all sessions of this run took. */
  get wallSeconds(): number {
    return this.earlierSeconds + (performance.now() - this.started) / 1000;
  }

  /** Length of each log in bytes, for a checkpoint. */
  get offsets(): Record<string, number> {
    const { name, log, earlier } = this.tensorboard ?? {};
    return {
      [runFiles.metrics]: this.metricsLog.offset,
      [runFiles.events]: this.eventsLog.offset,
      [runFiles.checksums]: this.ledger.mark.offset,
      ...earlier,
      ...(name !== undefined && log && { [name]: log.offset }),
    };
  }

  /** Last hash in the ledger's hash chain, for a checkpoint. */
  get logChain(): string {
    return this.ledger.mark.chain;
  }

  /** Writes a step's metrics; non-finite numbers are omitted. */
  metrics(step: number, values: Readonly<Record<string, number>>): void {
    const finite = finiteOnly(values);
    const line = { step, time: now(), wall_s: round(this.wallSeconds), ...finite };
    this.write(() => this.tensorboard?.log.scalars(step, Date.parse(line.time) / 1000, finite));
    this.write(() => {
      const end = this.metricsLog.append(line);
      this.columns.append(line, end);
      this.watchers.appended(runFiles.metrics, end, step);
      this.onMetrics({ step, timestamp: Date.parse(line.time), values: { wall_s: line.wall_s, ...finite } });
    });
  }

  event(kind: RunEvent['kind'], message: string, data?: Record<string, unknown>): void {
    const cleared = secrets.value({ message, ...(data && { data }) });
    const event: RunEvent = { time: now(), step: this.status.step, kind, ...cleared };
    this.write(() => this.eventsLog.append(event));
    this.watchers.event(event);
  }

  /** Writes events of earlier sessions again, unchanged: the events that a resume keeps. */
  keepEvents(events: readonly RunEvent[]): void {
    for (const event of events) this.write(() => this.eventsLog.append(event));
  }

  /** Writes all episodes of a step; replaces episodes that were written earlier for this step. */
  episodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>): void {
    this.appendEpisodes(mode, step, episodes, true);
  }

  /** Appends episodes to a step's file. */
  addEpisodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>): void {
    this.appendEpisodes(mode, step, episodes, false);
  }

  private appendEpisodes(mode: 'train' | 'val', step: number, episodes: Iterable<Episode>, anew: boolean): void {
    let from = anew ? 0 : undefined; // offset of the first of these episodes; a retry uses the same offset
    this.write(() => {
      const log = this.folder.episodes(mode, step);
      try {
        from ??= log.offset;
        if (log.offset > from) {
          log.truncateTo(from);
          if (anew) this.episodeIndex.forget(mode, step);
        }
        const written = Array.from(episodes, episode => [episode, log.append(episode)] as const);
        log.sync();
        this.ledger.note(log.takePiece(episodesFile(mode, step)));
        this.episodeIndex.append(mode, step, from, written);
        this.watchers.appended(episodesFile(mode, step), log.offset, step);
      } finally {
        log.close();
      }
    });
    // In a training, writing a checkpoint flushes the ledger. An evaluation writes no checkpoints, so the ledger is
    // flushed here.
    if (!anew) this.write(() => this.ledger.flush());
  }

  /** Writes the score distribution of a step's training episodes. */
  scores(step: number, episodes: readonly { tag: string; score: number }[]): void {
    const line: ScoresLine = { step, tags: scoresByTag(episodes) };
    this.write(() => this.scoresLog.append(line));
  }

  /** Writes a step's prompt groups. */
  groups(step: number, groups: readonly GroupRow[]): void {
    this.write(() => {
      const log = this.folder.groups(step);
      try {
        log.truncateTo(0);
        for (const group of groups) log.append(group);
        log.sync();
        this.ledger.note(log.takePiece(groupsFile(step)));
        this.watchers.appended(groupsFile(step), log.offset, step);
      } finally {
        log.close();
      }
    });
  }

  /** Writes the result of a step's diagnosis to a separate file. */
  async diagnosis(file: string, step: number, document: unknown): Promise<void> {
    const piece = await this.retryUntilWritable(() => this.folder.writeDiagnosis(file, document));
    this.ledger.note(piece);
    this.watchers.appended(file, piece.to, step);
  }

  /**
   * Changes the status. Watchers are notified immediately; the status file is written as soon as no earlier write is
   * pending.
   */
  update(change: Partial<RunStatus>, fraction = 0): void {
    this.statusFile.update(change, fraction);
  }

  /** Sends progress within a phase, and a short description of the current work, to watchers only. */
  progress(fraction: number, activity?: string): void {
    this.statusFile.progress(fraction, activity);
  }

  /**
   * Runs `job`, and repeats it while the disk refuses its writes, for example until space is freed. The run is paused
   * in the meantime.
   * @param job may be called several times
   * @throws StoreRefusal if the run is to stop instead of waiting
   */
  async retryUntilWritable<T>(job: () => T | Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await job();
        this.waitControl?.resumeAfterWait();
        return result;
      } catch (error) {
        if (!(error instanceof StoreRefusal) || !(await this.waitControl?.wait(error.message, retryMs))) throw error;
      }
    }
  }

  /** Resolves after every earlier write has succeeded. @throws StoreRefusal like `retryUntilWritable` */
  async settled(): Promise<void> {
    await this.retryUntilWritable(() => this.flush());
  }

  /** Makes everything written so far durable. @throws StoreRefusal like `retryUntilWritable` */
  async sync(): Promise<void> {
    await this.retryUntilWritable(async () => {
      this.flush();
      this.metricsLog.sync();
      this.eventsLog.sync();
      this.scoresLog.sync();
      this.tensorboard?.log.sync();
      this.syncLedger();
      await this.statusFile.sync();
    });
  }

  /** Writes the checksums of all new log content and makes them durable. */
  private syncLedger(): void {
    this.ledger.note(this.metricsLog.takePiece(runFiles.metrics));
    this.ledger.note(this.eventsLog.takePiece(runFiles.events));
    this.ledger.note(this.scoresLog.takePiece(runFiles.scores));
    this.ledger.note(this.columns.takePiece(runFiles.columns));
    for (const piece of this.episodeIndex.takePieces(runFiles.episodeIndex)) this.ledger.note(piece);
    const { name, log } = this.tensorboard ?? {};
    if (name !== undefined) this.ledger.note(log!.takePiece(name));
    this.ledger.flush();
    this.ledger.sync();
  }

  /** Ends the run as failed: writes `sentence` to status and events if the disk accepts it. */
  async fail(sentence: string): Promise<void> {
    this.update({ state: 'failed', phase: 'idle', download: undefined, error: sentence, eta_s: null });
    await this.statusFile.written();
    try {
      this.event('state', `failed: ${sentence}`);
      this.flush();
    } catch {
      // The sentence could not be written here, but trainer.log and the watchers have received it.
    }
  }

  /**
   * Like `fail`, but for an unexpected error of the trainer: later changes of the status are ignored. Resolves when the
   * status is on disk. If writing takes longer than `withinMs`, the old status file is overwritten in place.
   */
  async crash(sentence: string, withinMs: number): Promise<void> {
    if (this.statusFile.frozen) return;
    const failing = this.fail(sentence);
    this.statusFile.freeze();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>(resolve => {
      timer = setTimeout(() => {
        this.statusFile.overwriteStatus();
        resolve();
      }, withinMs);
    });
    await Promise.race([failing, late]);
    clearTimeout(timer);
  }

  /** Closes the logs without syncing them. */
  async close(): Promise<void> {
    await this.statusFile.written();
    this.metricsLog.close();
    this.eventsLog.close();
    this.scoresLog.close();
    this.ledger.close();
    this.columns.close();
    this.episodeIndex.close();
    this.tensorboard?.log.close();
  }

  /** Returns the path of a checkpoint folder relative to the run folder, for messages. */
  relative(path: string): string {
    return relative(this.folder.path, path);
  }

  /**
   * Runs a write. If the disk refuses the write, or an earlier write is still queued, the write is queued and repeated
   * later.
   */
  private write(job: () => void): void {
    this.backlog.push(job);
    if (this.backlog.length > 1) return; // earlier writes come first
    try {
      this.flush();
    } catch (error) {
      if (error instanceof StoreRefusal) return; // `settled` retries the write
      this.backlog.shift();
      throw error;
    }
  }

  private flush(): void {
    for (; this.backlog.length > 0; this.backlog.shift()) this.backlog[0]();
  }
}

/** Returns true unless `workbench.tensorboard` is false. Manifests of older versions lack this key. */
function wantsTensorboard({ manifest }: RunFolder): boolean {
  const workbench = manifest.config['workbench'] as { tensorboard?: boolean } | undefined;
  return workbench?.tensorboard ?? true;
}

const now = (): string => new Date().toISOString();
const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;
