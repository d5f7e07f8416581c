// Converts rollouts of another trainer to the episode files of a run folder: newest steps first, one file per step and
// mode, replaced as a whole if its source has changed. Of a large newest step, the beginning is converted first, so that
// its episodes are shown soon. `attached.json` names the sources of each file, so that a later process converts only
// what is new. The files have a limit of bytes in total; beyond it, the oldest steps are removed. The conversion of a
// step can be interrupted at each rollout; nothing of it is then kept.
import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { maximum } from '../common/lists';
import { replaceFile } from '../node/files';
import { episodesFile, picturesFolder, runFiles } from '../run-data/run-file-names';
import { EpisodeIndexLog } from '../trainer/store/episode-index-log';
import type { RunFolder } from '../trainer/store/run-folder';
import { json, readJson } from '../trainer/store/run-documents';
import type { RolloutUnit } from './adapter';
import { AttachedPictures } from './attached-pictures';
import { writeEpisodes } from './episode-file';
import { problemOf } from './left-out';
import type { DiagnosedStep } from './rollout-diagnosis';
import type { SourceFolder } from './source-folder';
import type { SummarisedValidation } from './validation-summary';

/** The summary of a validation whose rollouts were written at `written` (milliseconds since 1970). */
export type ValidatedStep = SummarisedValidation & { step: number; written: number };

/** Default limit of the converted episodes in bytes. */
export const defaultEpisodeBytes = 4 * 10 ** 9;
/** Converted bytes of the newest step that are shown before the complete step is converted. */
const beginningBytes = 2 ** 22;
/** Maximum characters of a key in `attached.json`; a longer one is hashed. */
const mostKeyLength = 1000;
/** A file that changed less than this many milliseconds ago may still be written. */
const settledMs = 2000;

const convertedSchema = z.object({
  schema: z.literal(1),
  units: z.record(
    z.string(),
    z.object({
      key: z.string(),
      bytes: z.number(),
      skipped: z.number(),
      left_out: z.number().optional().describe('rollouts beyond the limits of a step'),
      pictures: z.number().optional(),
    }),
  ),
  /** By training step; kept when the episodes of the step are removed. Absent in files of earlier versions. */
  diagnoses: z
    .record(
      z.string(),
      z.object({
        metrics: z.record(z.string(), z.number()),
        asksForThoughts: z.boolean(),
        written: z.number().describe('modification time of the newest file, in milliseconds since 1970'),
      }),
    )
    .default({}),
  /** By validated step, like `diagnoses`. */
  validations: z
    .record(
      z.string(),
      z.object({
        metrics: z.record(z.string(), z.number()),
        episodes: z.number(),
        written: z.number().describe('as in `diagnoses`'),
      }),
    )
    .default({}),
});
type Converted = z.infer<typeof convertedSchema>;

export interface ConvertOptions {
  /** Called between units; no further unit is converted once it returns true. */
  until: () => boolean;
  /** If aborted, the unit that is being converted is left as it was, and no further one is converted. */
  signal: AbortSignal;
  /** Called before each conversion of a step's rollouts. */
  onStep?: (step: number) => Promise<void>;
}

interface Sums {
  /** Number of changes for which the sums were computed. */
  version: number;
  skipped: number;
  leftOut: readonly { step: number; rollouts: number }[];
}

export class AttachedEpisodes {
  private readonly index: EpisodeIndexLog;
  private readonly converted: Converted;
  private saved = true;
  private changes = 0;
  /** Number of steps that the last call of `convert` left because their files may still be written. */
  young = 0;
  private counted: Sums | undefined;
  /** Whether steps are left out because of the limit of bytes. */
  isCut = false;
  /** Files that could not be divided into steps, each in a sentence. */
  unread: readonly string[] = [];
  /** Sources that could not be read, each with the reason; tried again when they change. */
  readonly problems = new Map<string, string>();

  constructor(
    private readonly folder: RunFolder,
    private readonly source: SourceFolder,
    /** Maximum bytes of the converted episodes, also of one step; the step that exceeds them is the last. */
    readonly mostBytes: number,
    /** Maximum number of rollouts of a step. */
    readonly mostRollouts = 200_000,
  ) {
    this.index = new EpisodeIndexLog(folder.file(runFiles.episodeIndex), name => folder.file(name));
    this.converted = convertedIn(folder);
    for (const [id, { bytes }] of Object.entries(this.converted.units)) {
      const file = folder.file(fileOf(id));
      const { mode, step } = unitOf(id);
      const isComplete = step in this.converted[mode === 'val' ? 'validations' : 'diagnoses'];
      if (!isComplete || !existsSync(file) || statSync(file).size !== bytes) delete this.converted.units[id];
    }
  }

  /** Number of changes of the converted steps; `diagnoses` stays the same until it grows. */
  get version(): number {
    return this.changes;
  }

  /** Returns the diagnoses of all converted training steps. */
  get diagnoses(): DiagnosedStep[] {
    return diagnosedSteps(this.converted);
  }

  /** Returns the summaries of all converted validations. */
  get validations(): ValidatedStep[] {
    return validatedSteps(this.converted);
  }

  /** Number of lines and rows that were no rollouts. */
  get skipped(): number {
    return this.sums.skipped;
  }

  /** Steps of which some rollouts are left out because of the limits of a step, the newest first. */
  get leftOut(): readonly { step: number; rollouts: number }[] {
    return this.sums.leftOut;
  }

  /** What is left out of all units; computed once per change, because a run may have many steps. */
  private get sums(): Sums {
    if (this.counted?.version === this.changes) return this.counted;
    let skipped = 0;
    const leftOut: { step: number; rollouts: number }[] = [];
    for (const [id, unit] of Object.entries(this.converted.units)) {
      skipped += unit.skipped;
      if (unit.left_out !== undefined) leftOut.push({ step: unitOf(id).step, rollouts: unit.left_out });
    }
    leftOut.sort((a, b) => b.step - a.step);
    this.counted = { version: this.changes, skipped, leftOut };
    return this.counted;
  }

  /** Number of converted steps. */
  get steps(): number {
    return Object.keys(this.converted.units).length;
  }

  /**
   * Converts new and changed units, newest step first, until `until` returns true. Returns the number of units that
   * remain, without those beyond the limit of bytes.
   */
  async convert(units: readonly RolloutUnit[], options: ConvertOptions): Promise<number> {
    const { until, signal } = options;
    const newestFirst = [...units].sort((a, b) => b.step - a.step || (a.mode < b.mode ? 1 : -1));
    await this.convertBeginnings(newestFirst, options);
    let bytes = 0;
    let waiting = 0;
    this.young = 0;
    for (const unit of newestFirst) {
      const id = idOf(unit);
      const known = this.converted.units[id];
      if (bytes >= this.mostBytes) {
        this.isCut = true;
        if (known) this.drop(unit);
        continue;
      }
      const key = this.keyOf(unit);
      if (known?.key === key || this.problems.has(`${id} ${key}`)) {
        bytes += sizeOf(known);
        continue;
      }
      const isYoung = this.isYoung(unit);
      const isPostponed = signal.aborted || until() || isYoung;
      const converted = isPostponed ? undefined : await this.convertUnit(unit, key, options);
      if (converted === undefined) waiting++;
      if (isYoung) this.young++;
      bytes += converted ?? sizeOf(known);
    }
    return waiting;
  }

  /** Converts the beginning of the newest step of each mode, if nothing of the step is converted yet. */
  private async convertBeginnings(newestFirst: readonly RolloutUnit[], options: ConvertOptions): Promise<void> {
    for (const mode of ['train', 'val'] as const) {
      const unit = newestFirst.find(each => each.mode === mode && !this.isYoung(each));
      if (!unit || this.mostBytes <= 0 || this.converted.units[idOf(unit)]) continue;
      const key = this.keyOf(unit);
      if (options.signal.aborted || this.problems.has(`${idOf(unit)} ${key}`)) continue;
      await this.convertUnit(unit, key, options, beginningBytes);
    }
  }

  /** Stores which sources are converted. */
  async save(): Promise<void> {
    if (this.saved) return;
    this.saved = true;
    await replaceFile(this.folder.file(runFiles.attached), json(this.converted));
  }

  close(): void {
    this.index.close();
  }

  private keyOf({ files, key }: RolloutUnit): string {
    if (key !== undefined) return key;
    const stamps = files
      .map(name => {
        const { size = 0, mtimeMs = 0 } = this.source.stat(name) ?? {};
        return `${name} ${size} ${Math.round(mtimeMs)}`;
      })
      .join('\n');
    return stamps.length <= mostKeyLength ? stamps : createHash('sha256').update(stamps).digest('hex');
  }

  private isYoung({ files }: RolloutUnit): boolean {
    return files.some(name => Math.abs(Date.now() - (this.source.stat(name)?.mtimeMs ?? 0)) < settledMs);
  }

  /**
   * Writes the episodes of a unit, at most about `most` bytes; returns their number of bytes, with the pictures. Undefined
   * if `signal` is aborted before the last rollout is read; the files are then as before.
   */
  private async convertUnit(
    unit: RolloutUnit,
    key: string,
    { signal, onStep }: ConvertOptions,
    most = Infinity,
  ): Promise<number | undefined> {
    const { mode, step } = unit;
    const id = idOf(unit);
    const file = this.folder.file(episodesFile(mode, step));
    await onStep?.(step);
    const pictures = new AttachedPictures(this.source, this.folder.file(picturesFolder(mode, step)), this.mostBytes);
    try {
      const limits = { bytes: this.mostBytes, rollouts: this.mostRollouts };
      const written = await writeEpisodes(unit, `${file}.new`, { most, limits, pictures, signal });
      const { index, bytes, skipped, leftOut, isComplete, diagnosis, validation } = written;
      pictures.publish();
      if (this.converted.units[id] || existsSync(file)) this.index.forget(mode, step);
      if (bytes > 0) renameSync(`${file}.new`, file);
      else rmSync(`${file}.new`, { force: true });
      this.index.appendLine(index);
      const newest = maximum(
        unit.files.map(name => this.source.stat(name)?.mtimeMs ?? 0),
        0,
      );
      this.converted.units[id] = {
        key: isComplete ? key : `beginning of ${key}`,
        ...{ bytes, skipped },
        ...(leftOut > 0 && { left_out: leftOut }),
        ...(pictures.bytes > 0 && { pictures: pictures.bytes }),
      };
      if (mode === 'train' && isComplete) this.converted.diagnoses[step] = { ...diagnosis, written: newest };
      if (mode === 'val' && isComplete) this.converted.validations[step] = { ...validation, written: newest };
      this.noteChange();
      return bytes + pictures.bytes;
    } catch (error) {
      rmSync(`${file}.new`, { force: true });
      pictures.discard();
      if (signal.aborted) return undefined;
      this.problems.set(`${id} ${key}`, problemOf(error, join(this.source.root, unit.files[0]), this.folder.path));
      return 0;
    }
  }

  private drop({ mode, step }: RolloutUnit): void {
    this.index.forget(mode, step);
    rmSync(this.folder.file(episodesFile(mode, step)), { force: true });
    rmSync(this.folder.file(picturesFolder(mode, step)), { recursive: true, force: true });
    delete this.converted.units[idOf({ mode, step })];
    this.noteChange();
  }

  private noteChange(): void {
    this.saved = false;
    this.changes++;
  }
}

const sizeOf = (unit: Converted['units'][string] | undefined): number => (unit?.bytes ?? 0) + (unit?.pictures ?? 0);
const convertedIn = (folder: RunFolder): Converted =>
  existsSync(folder.file(runFiles.attached))
    ? readJson(folder.path, runFiles.attached, convertedSchema)
    : { schema: 1, units: {}, diagnoses: {}, validations: {} };

const diagnosedSteps = ({ diagnoses }: Converted): DiagnosedStep[] =>
  Object.entries(diagnoses).map(([step, diagnosis]) => ({ ...diagnosis, step: Number(step) }));

const validatedSteps = ({ validations }: Converted): ValidatedStep[] =>
  Object.entries(validations).map(([step, validation]) => ({ ...validation, step: Number(step) }));

/** Returns what an earlier process computed from a run's rollouts. */
export function storedFindings(folder: RunFolder): { diagnoses: DiagnosedStep[]; validations: ValidatedStep[] } {
  const converted = convertedIn(folder);
  return { diagnoses: diagnosedSteps(converted), validations: validatedSteps(converted) };
}

const idOf = ({ mode, step }: Pick<RolloutUnit, 'mode' | 'step'>): string => `${mode}-${step}`;

function unitOf(id: string): Pick<RolloutUnit, 'mode' | 'step'> {
  const [mode, step] = id.split('-');
  return { mode: mode === 'val' ? 'val' : 'train', step: Number(step) };
}

function fileOf(id: string): string {
  const { mode, step } = unitOf(id);
  return episodesFile(mode, step);
}
