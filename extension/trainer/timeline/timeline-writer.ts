// Writes the timeline files of a run (run-data/timeline.ts) in the background, one write after another. The newest
// steps and every k-th step keep a file with all their spans; steps.jsonl has a line with sums for each step. No result
// depends on these files, so they are not synced. If a write fails, the timeline of that step is missing, and training
// continues. Before a checkpoint, the file of the step in progress is written; if the trainer is killed before the
// step's own file is written, the next trainer uses it instead (`continueAfter`).
import { existsSync } from 'node:fs';
import { appendFile, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { makeFolder, fileSystem } from '../../node/files';
import { keptSteps, readStepTimeline } from '../../node/read-timeline';
import { encodeStep, type StepTimeline } from '../../run-data/timeline';
import { summaryOf } from '../../run-data/timeline-measures';
import { runFiles, timelineFile } from '../../run-data/run-file-names';
import { readLines } from '../store/line-log';
import type { RunFolder } from '../store/run-folder';

export interface TimelineSettings {
  /** `workbench.timeline_steps`: number of newest steps whose spans are kept. */
  steps: number;
  /** `workbench.timeline_every`: the spans of every k-th step are kept too; 0 for none. */
  every: number;
}

export class TimelineWriter {
  private last: Promise<void> = Promise.resolve();
  private writing = 0;

  constructor(
    private readonly folder: Pick<RunFolder, 'path' | 'file'>,
    private readonly settings: TimelineSettings,
  ) {}

  /**
   * Writes a finished step. `spans` is not called immediately. The work is divided into parts, and the event loop runs
   * between them, so that the trainer's thread is never blocked for long.
   * @param count number of spans that were recorded
   */
  write(step: number, spans: () => StepTimeline, count: number): void {
    this.queue(async () => {
      await yieldToEventLoop();
      const timeline = spans();
      await yieldToEventLoop();
      await this.writeStep(step, timeline, count);
    });
  }

  /** Writes the timeline of the step in progress, unless an earlier write is still going on. */
  writeCurrent(timeline: () => StepTimeline): void {
    if (this.writing > 0) return;
    const shown = timeline();
    this.queue(() => this.replaceCurrent(shown));
  }

  /** Writes the timeline of the step in progress after all earlier writes. Resolves when it is written. */
  async secure(timeline: StepTimeline): Promise<void> {
    this.queue(() => this.replaceCurrent(timeline));
    await this.settled();
  }

  /**
   * Continues after the checkpoint of `step`. If the previous trainer was killed between the checkpoint and the step's
   * file, the file of the step in progress becomes the step's file. Files that are not to be kept are removed.
   */
  continueAfter(step: number): void {
    this.queue(async () => {
      const current = await readStepTimeline(this.folder.path, 'current').catch(() => null); // a damaged file is removed
      if (current?.step === step && !this.hasSummary(step))
        await this.writeStep(step, { ...current, partial: false }, recorded(current));
      else await rm(this.folder.file(runFiles.timelineCurrent), { force: true });
      for (const kept of await keptSteps(this.folder.path)) await this.removeUnlessKept(kept, step);
    });
  }

  /** Resolves when all writes have ended. */
  settled(): Promise<void> {
    return this.last;
  }

  /** Removes the file of the step in progress. Resolves when all writes have ended. */
  async close(): Promise<void> {
    this.queue(() => rm(this.folder.file(runFiles.timelineCurrent), { force: true }));
    await this.last;
  }

  private async writeStep(step: number, timeline: StepTimeline, count: number): Promise<void> {
    const line = `${JSON.stringify(summaryOf(timeline, count))}\n`;
    await makeFolder(this.folder.file(runFiles.timeline), fileSystem, this.folder.path);
    if (this.keeps(step, step)) await this.replace(timelineFile(step), timeline);
    await appendFile(this.folder.file(runFiles.timelineSteps), line);
    await rm(this.folder.file(runFiles.timelineCurrent), { force: true });
    await this.removeUnlessKept(step - this.settings.steps, step);
  }

  private async removeUnlessKept(step: number, newest: number): Promise<void> {
    if (step >= 0 && !this.keeps(step, newest)) await rm(this.folder.file(timelineFile(step)), { force: true });
  }

  /** Whether steps.jsonl has a line of `step`. */
  private hasSummary(step: number): boolean {
    const file = this.folder.file(runFiles.timelineSteps);
    return existsSync(file) && [...readLines(file)].some(({ text }) => text.startsWith(`{"step":${step},`));
  }

  private async replaceCurrent(timeline: StepTimeline): Promise<void> {
    await makeFolder(this.folder.file(runFiles.timeline), fileSystem, this.folder.path);
    await this.replace(runFiles.timelineCurrent, timeline);
  }

  /** Whether the spans of `step` are kept when `newest` is the newest step. */
  private keeps(step: number, newest: number): boolean {
    const { steps, every } = this.settings;
    return step > newest - steps || (every > 0 && step % every === 0);
  }

  /** Replaces a file atomically, without making it durable. */
  private async replace(name: string, timeline: StepTimeline): Promise<void> {
    const file = this.folder.file(name);
    const temporary = join(dirname(file), `.tmp-${basename(file)}`);
    const handle = await open(temporary, 'w');
    try {
      for (const line of encodeStep(timeline)) await handle.write(line);
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  }

  private queue(job: () => Promise<void>): void {
    this.writing++;
    this.last = this.last
      .then(job)
      .catch(() => undefined)
      .finally(() => this.writing--);
  }
}

/** Number of spans that were recorded, including merged ones. */
const recorded = ({ spans, merged }: StepTimeline): number =>
  merged.reduce((sum, { count }) => sum + count, spans.start.length);
