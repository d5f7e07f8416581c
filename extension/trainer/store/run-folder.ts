// The folder of one run: opens and lists runs, reads and writes status and labels, and opens the writers of the logs.
// The status file is replaced atomically. A folder without a manifest is not a run. Related files: run-creation.ts,
// rollback.ts, environment-store.ts and checkpoint.ts; file names are in run-data/run-file-names.ts.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { maximum } from '../../common/lists';
import { episodesFile, groupsFile, isRunId, runFiles, runsFolder } from '../../run-data/run-file-names';
import { jobRecordSchema, type JobRecord } from '../../run-data/job-record';
import { labelsSchema, manifestIn } from '../../run-data/run-manifest';
import { statusSchema } from '../../run-data/run-status-file';
import type { Labels, Manifest } from '../../run-data/run-manifest';
import type { RunStatus } from '../../run-data/run-status-file';
import { isManifestSigned, sha256Of } from '../../node/run-trust';
import type { RunCode } from '../../node/run-trust';
import { secrets } from '../../node/secrets';
import { hasEntrySync, namesInRunSync, runNamesSync } from '../../node/read-run-file';
import { UserError } from '../../common/user-error';
import { makeFolderSync, replaceFile, storeError } from '../../node/files';
import type { LogPiece } from './append-log';
import { stepFolder } from './checkpoint';
import { EventLog, eventLogName } from './event-log';
import { ColumnLog } from './column-log';
import { verifiedSeal } from './manifest-seal';
import { LineLog } from './line-log';
import { LogLedger } from './log-ledger';
import { createRunFolder } from './run-creation';
import { bytesIn, parsed, json, readJson } from './run-documents';

/** The folder of one run. */
export class RunFolder {
  private constructor(
    readonly path: string,
    readonly manifest: Manifest,
    /** Hash (sha256, hex) of the manifest's bytes as read. */
    readonly manifestSha256: string,
  ) {}

  get id(): string {
    return this.manifest.id;
  }

  /**
   * Creates the folder of a new run, with a unique id and its manifest. If the creation fails, the folder is removed.
   */
  static async create(
    workspace: string,
    about: Omit<Manifest, 'schema' | 'id' | 'created'>,
    created: Date,
  ): Promise<RunFolder> {
    const { path, manifest, manifestSha256 } = await createRunFolder(workspace, about, created);
    return new RunFolder(path, manifest, manifestSha256);
  }

  /** Opens an existing run. Throws a UserError if the folder is not a run. */
  static open(path: string): RunFolder {
    if (!hasEntrySync(path, runFiles.manifest))
      throw new UserError(
        `store: ${path} has no ${runFiles.manifest}, so it is not a run: choose a folder below ${runsFolder}`,
      );
    const found = resolve(path);
    const bytes = bytesIn(found, runFiles.manifest);
    const schema = manifestIn(basename(found));
    return new RunFolder(
      found,
      parsed(join(found, runFiles.manifest), bytes.toString('utf8'), schema),
      sha256Of(bytes),
    );
  }

  /** Opens a run of the workspace by its id. */
  static find(workspace: string, id: string): RunFolder {
    const runs = resolve(workspace, runsFolder);
    const isFolder = isRunId(id) && lstatSync(join(runs, id), { throwIfNoEntry: false })?.isDirectory();
    if (isFolder && hasEntrySync(join(runs, id), runFiles.manifest)) return RunFolder.open(join(runs, id));
    if (isFolder)
      throw new UserError(
        `store: ${join(runs, id, runFiles.manifest)} is gone: restore it from a copy, or start a new run from one of its checkpoints with trainer.resume_mode=resume_path and trainer.resume_from_path=${join(runs, id, runFiles.checkpoints)}/step-…`,
      );
    throw new UserError(`store: there is no run ${id} in ${runs}: see ragen runs for their ids`);
  }

  /** Returns all runs of a workspace, newest first. Other folders and damaged runs are omitted. */
  static list(workspace: string): RunFolder[] {
    return RunFolder.survey(workspace).runs;
  }

  /**
   * Returns all runs of a workspace, newest first, and the folders whose manifest is unusable, each with the reason.
   */
  static survey(workspace: string): { runs: RunFolder[]; damaged: { folder: string; reason: string }[] } {
    const folder = resolve(workspace, runsFolder);
    const runs: RunFolder[] = [];
    const damaged: { folder: string; reason: string }[] = [];
    for (const name of runNamesSync(folder)) {
      const path = join(folder, name);
      if (!hasEntrySync(path, runFiles.manifest)) continue;
      try {
        runs.push(RunFolder.open(path));
      } catch (error) {
        damaged.push({ folder: path, reason: (error as Error).message });
      }
    }
    runs.sort((a, b) =>
      a.manifest.created < b.manifest.created ? 1 : a.manifest.created > b.manifest.created ? -1 : 0,
    );
    return { runs, damaged };
  }

  /** Verifies the manifest against its checksums. @throws UserError like `verifiedSeal` */
  verifySeal(): ReturnType<typeof verifiedSeal> {
    return verifiedSeal(this.path);
  }

  /** Returns the absolute path of a file, by its name in `runFiles`. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes the status, replacing the old one atomically. */
  async writeStatus(status: RunStatus): Promise<void> {
    await replaceFile(this.file(runFiles.status), json(secrets.value(statusSchema.parse(status))));
  }

  /** Reads the status; null if none has been written. */
  readStatus(): RunStatus | null {
    return hasEntrySync(this.path, runFiles.status) ? readJson(this.path, runFiles.status, statusSchema) : null;
  }

  /**
   * Reads the user's labels of the run. If the file is missing or damaged, returns empty labels, because no result
   * depends on labels.
   */
  readLabels(): Labels {
    try {
      return readJson(this.path, runFiles.labels, labelsSchema);
    } catch {
      return { schema: 1 };
    }
  }

  /** Reads the record of the run's Ray job; null if the run has none, or if the record is damaged. */
  readJob(): JobRecord | null {
    try {
      return readJson(this.path, runFiles.job, jobRecordSchema);
    } catch {
      return null;
    }
  }

  /** Writes the record of the run's Ray job, replacing an earlier one atomically; null removes the record. */
  async writeJob(record: JobRecord | null): Promise<void> {
    if (record) await replaceFile(this.file(runFiles.job), json(jobRecordSchema.parse(record)));
    else await rm(this.file(runFiles.job), { force: true });
  }

  /** Returns the steps of the run's checkpoints, in ascending order. Incomplete checkpoints are not listed. */
  checkpointSteps(): number[] {
    return namesInRunSync(this.path, runFiles.checkpoints)
      .flatMap(name => Number(stepFolder.exec(name)?.[1] ?? Number.NaN))
      .filter(step => !Number.isNaN(step))
      .sort((a, b) => a - b);
  }

  /** Opens the writer of metrics or events. Written lines are durable after `sync()`. */
  metrics(): LineLog {
    return new LineLog(this.file(runFiles.metrics), { fsync: 'explicit' });
  }
  events(): LineLog {
    return new LineLog(this.file(runFiles.events), { fsync: 'explicit' });
  }

  /**
   * Opens the writer of metrics.columns, which stores metrics.jsonl by columns. `length` is the number of committed
   * bytes of metrics.jsonl.
   */
  columns(length: number): ColumnLog {
    return new ColumnLog(this.file(runFiles.columns), this.file(runFiles.metrics), length);
  }

  /** Opens the writer of the logs' checksums. */
  ledger(): LogLedger {
    return new LogLedger(this.file(runFiles.checksums));
  }

  /** Opens the writer of the score distributions, one line per step. */
  scores(): LineLog {
    return new LineLog(this.file(runFiles.scores), { fsync: 'explicit' });
  }

  /**
   * Creates a new TensorBoard file. Also returns the lengths of the files of earlier sessions, by name in the run
   * folder.
   * @param resumedAt the step from which the run continues; null for a new run
   */
  eventLog(resumedAt: number | null): { name: string; log: EventLog; earlier: Record<string, number> } {
    const folder = this.file(runFiles.tensorboard);
    try {
      makeFolderSync(folder, this.path);
      const names = readdirSync(folder).filter(name => name.includes('tfevents'));
      const earlier = names.map((name): [string, number] => [inTensorboard(name), statSync(join(folder, name)).size]);
      const sessions = names.map(name => Number(/\.(\d+)\.ragen$/.exec(name)?.[1] ?? 0));
      const name = eventLogName(maximum(sessions, 0) + 1);
      const log = new EventLog(join(folder, name), resumedAt, Date.now() / 1000, { fsync: 'explicit' });
      return { name: inTensorboard(name), log, earlier: Object.fromEntries(earlier) };
    } catch (error) {
      throw storeError('write', folder, error);
    }
  }

  /** Opens the writer of a step's episodes. */
  episodes(mode: 'train' | 'val', step: number): LineLog {
    return new LineLog(this.file(episodesFile(mode, step)), { fsync: 'explicit' });
  }

  /** Opens the writer of a step's prompt groups; creates the folder if needed. */
  groups(step: number): LineLog {
    makeFolderSync(this.file(runFiles.diagnostics), this.path);
    return new LineLog(this.file(groupsFile(step)), { fsync: 'explicit' });
  }

  /**
   * Writes the document of a diagnosis to a file. Returns the file's content as one piece, so that its checksum can be
   * recorded. Creates the folder if needed.
   */
  async writeDiagnosis(name: string, document: unknown): Promise<LogPiece> {
    makeFolderSync(this.file(runFiles.diagnostics), this.path);
    const text = `${secrets.json(document)}\n`;
    await replaceFile(this.file(name), text);
    return {
      file: name,
      from: 0,
      to: Buffer.byteLength(text),
      sha256: createHash('sha256').update(text).digest('hex'),
    };
  }

  /** The run's manifest with its hash and signature state. The manifest determines which code the run executes. */
  get manifestCode(): RunCode {
    const sha256 = this.manifestSha256;
    return { file: runFiles.manifest, sha256, signed: isManifestSigned(this.path, this.id, sha256) };
  }

  /** Opens the writer of a file of what-if episodes; creates the folder if needed. */
  whatIf(file: string): LineLog {
    makeFolderSync(this.file(runFiles.whatIf), this.path);
    return new LineLog(this.file(file), { fsync: 'explicit' });
  }
}

/** Returns the name of a TensorBoard file relative to the run folder. */
export const inTensorboard = (name: string): string => `${runFiles.tensorboard}/${name}`;
