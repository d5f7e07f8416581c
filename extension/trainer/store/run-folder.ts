// The folder of one run: creating it, opening it, and its files other than logs and checkpoints. The manifest is
// written once, when the run is created; the status is replaced atomically. A folder without a manifest is not a run.
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { mkdir, rm, truncate } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ZodError, type z } from 'zod';
import { listBoundedSync } from '../../protocol/bounded-file';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { maximum } from '../../protocol/lists';
import {
  environmentFile,
  environmentFiles,
  episodesFile,
  groupsFile,
  isRunId,
  isVersionName,
  keptEnvironmentSchema,
  labelsSchema,
  manifestIn,
  manifestSchema,
  runFiles,
  runsFolder,
  statusSchema,
} from '../../protocol/run-folder';
import type { CoverageLine, KeptEnvironment, Labels, Manifest, RunStatus } from '../../protocol/run-folder';
import {
  environmentSignature,
  isManifestSigned,
  manifestSignature,
  readKeptCode,
  sha256Of,
  signedTags,
} from '../../protocol/run-trust';
import type { ReadCode, RunCode } from '../../protocol/run-trust';
import { secrets } from '../secrets';
import {
  hasEntrySync,
  hasRunFile,
  mostEntries,
  namesInRunSync,
  readRunFileSync,
  runNamesSync,
} from '../../protocol/run-file';
import { UserError } from '../../protocol/user-error';
import { fileSystem, isTemporary, makeFolder, makeFolderSync, replaceFile, storeError } from './files';
import type { LogPiece } from './append-log';
import { EventLog, eventLogName } from './event-log';
import { sourceSnapshots } from './source-snapshots';
import { ColumnLog } from './column-log';
import { manifestSeal, verifiedSeal } from './manifest-seal';
import { LineLog, readLines } from './line-log';
import { LogLedger } from './log-ledger';

const maxSlug = 40;

/** Maximum depth of folders in a run folder; stored sources are the deepest. */
const deepest = 64;

/** Number of steps for which a version's coverage is kept. */
const coveredSteps = 100;

/** A run's name as part of its id: lower case, words joined by hyphens. */
function slug(name: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  return words.slice(0, maxSlug).replace(/^-+|-+$/g, '') || 'run';
}

/** `YYYYMMDD-HHMMSS-<slug>-<4 hex>`, UTC; the hex digits come from a hash of the configuration's hash and a counter. */
function runId(name: string, created: Date, hash: string, counter: number): string {
  const [day, time] = created.toISOString().split(/[T.]/);
  const digits = createHash('sha256').update(`${hash}${counter}`).digest('hex').slice(0, 4);
  return `${day.replaceAll('-', '')}-${time.replaceAll(':', '')}-${slug(name)}-${digits}`;
}

/** One run's folder. */
export class RunFolder {
  private constructor(
    readonly path: string,
    readonly manifest: Manifest,
    /** Hash of the bytes that the manifest was read from. */
    readonly manifestSha256: string,
  ) {}

  get id(): string {
    return this.manifest.id;
  }

  /** Creates the folder of a new run, with a unique id and its manifest. Leaves nothing behind if it fails. */
  static async create(
    workspace: string,
    about: Omit<Manifest, 'schema' | 'id' | 'created'>,
    created: Date,
  ): Promise<RunFolder> {
    const runs = resolve(workspace, runsFolder);
    let path: string | undefined;
    try {
      await makeFolder(runs);
      const id = await claim(runs, counter => runId(about.name, created, about.config_hash, counter));
      path = join(runs, id);
      const unsealed: Manifest = { schema: 1, id, created: created.toISOString(), ...about };
      const manifest: Manifest = { ...unsealed, sha256: manifestSeal(manifestSchema.parse(unsealed)) };
      for (const folder of [runFiles.episodes, runFiles.checkpoints, runFiles.environments])
        await mkdir(join(path, folder));
      const text = json(manifestSchema.parse(manifest));
      const sha256 = sha256Of(Buffer.from(text));
      await writeSignature(join(path, runFiles.signature), () => manifestSignature(id, sha256));
      await replaceFile(join(path, runFiles.manifest), text);
      return new RunFolder(path, manifest, sha256);
    } catch (error) {
      if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => undefined);
      throw storeError('make a run folder in', runs, error);
    }
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

  /** All runs of a workspace, newest first. Other folders and damaged runs are skipped. */
  static list(workspace: string): RunFolder[] {
    return RunFolder.survey(workspace).runs;
  }

  /** All runs of a workspace, newest first, and the folders with an unusable manifest, each with the reason. */
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

  /** Checks the manifest against its checksums. @throws UserError as `verifiedSeal` */
  verifySeal(): ReturnType<typeof verifiedSeal> {
    return verifiedSeal(this.path);
  }

  /** Absolute path of a file in the folder, by its name from `runFiles`. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes the status, replacing the old one atomically. */
  async writeStatus(status: RunStatus): Promise<void> {
    await replaceFile(this.file(runFiles.status), json(secrets.value(statusSchema.parse(status))));
  }

  /** The newest status, or null before the first. */
  readStatus(): RunStatus | null {
    return hasEntrySync(this.path, runFiles.status) ? readJson(this.path, runFiles.status, statusSchema) : null;
  }

  /** The user's labels of the run; empty if the file is missing or damaged, since no run depends on it. */
  readLabels(): Labels {
    try {
      return readJson(this.path, runFiles.labels, labelsSchema);
    } catch {
      return { schema: 1 };
    }
  }

  /** Writers of metrics and events; written lines are durable after `sync()`. */
  metrics(): LineLog {
    return new LineLog(this.file(runFiles.metrics), { fsync: 'explicit' });
  }
  events(): LineLog {
    return new LineLog(this.file(runFiles.events), { fsync: 'explicit' });
  }

  /** Writer of the columns of metrics.jsonl, which is `length` bytes long. */
  columns(length: number): ColumnLog {
    return new ColumnLog(this.file(runFiles.columns), this.file(runFiles.metrics), length);
  }

  /** Writer of the checksums of the logs. */
  ledger(): LogLedger {
    return new LogLedger(this.file(runFiles.checksums));
  }

  /** Writer of the score distributions, one line per step. */
  scores(): LineLog {
    return new LineLog(this.file(runFiles.scores), { fsync: 'explicit' });
  }

  /**
   * Creates a new TensorBoard file of the run; also returns the lengths of the files of earlier sessions, by name in
   * the run folder. `resumedAt` is the step to continue from, null for a new run.
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

  /** Writer of a step's episodes. */
  episodes(mode: 'train' | 'val', step: number): LineLog {
    return new LineLog(this.file(episodesFile(mode, step)), { fsync: 'explicit' });
  }

  /** Writer of a step's prompt groups; creates the folder if needed. */
  groups(step: number): LineLog {
    makeFolderSync(this.file(runFiles.diagnostics), this.path);
    return new LineLog(this.file(groupsFile(step)), { fsync: 'explicit' });
  }

  /** Writes the document of a diagnosis and returns its bytes as a piece; creates the folder if needed. */
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

  /** The manifest, as the file that decides which code the run executes. */
  get manifestCode(): RunCode {
    const sha256 = this.manifestSha256;
    return { file: runFiles.manifest, sha256, signed: isManifestSigned(this.path, this.id, sha256) };
  }

  /**
   * Stores the code of an environment that ran: the bundle and its newest sources, since comments do not change a
   * version. It is signed, so that it may be executed again.
   */
  async keepEnvironment({ tag, version, name, source, bundle }: LoadedEnvironment): Promise<void> {
    if (!isVersionName(version)) throw new UserError(`store: ${version} is not an environment version: use its sha256`);
    const file = (part: string) => this.file(environmentFile(version, part));
    const sign = (tags: string[], about: string) =>
      writeSignature(file(environmentFiles.signature), () =>
        environmentSignature(this.id, { version, tags, bundle: sha256Of(Buffer.from(bundle)), about }),
      );
    const kept = readKeptCode(this.path, this.id, { version, tag });
    const signed =
      kept && signedTags(this.path, this.id, { version, bundle: kept.bundle.sha256, about: kept.about.sha256 });
    const tags = [...new Set([...(signed ?? []), tag])];
    if (kept && signed && kept.bundle.bytes.equals(Buffer.from(bundle)))
      return signed.includes(tag) ? undefined : sign(tags, kept.about.sha256);
    const { root, sources } = sourceSnapshots(source, bundle);
    const about = { version, name, kept: new Date().toISOString(), root, entry: sources[0].name };
    const texts = sources.map(({ name, text }) => ({ path: file(`${environmentFiles.sources}/${name}`), text }));
    const written = json({ ...about, sources: sources.map(({ name }) => name) });
    // The bundle is written last: if it exists, the other files are complete.
    const files = [
      ...texts,
      { path: file(environmentFiles.about), text: written },
      { path: file(environmentFiles.bundle), text: bundle },
    ];
    for (const { path, text } of files) {
      await makeFolder(dirname(path), fileSystem, this.path);
      await replaceFile(path, text);
    }
    await sign(tags, sha256Of(Buffer.from(written)));
  }

  /** The stored code of an environment version that a tag ran, for execution; undefined if there is none. */
  keptCode(version: string, tag: string): { bundle: ReadCode; about: ReadCode } | undefined {
    return readKeptCode(this.path, this.id, { version, tag });
  }

  /** The bundle file and the description of a stored environment version; undefined if there is none. */
  keptEnvironment(version: string): { bundle: string; about: KeptEnvironment } | undefined {
    if (!isVersionName(version)) return undefined;
    const [bundle, about] = [environmentFiles.bundle, environmentFiles.about].map(part =>
      environmentFile(version, part),
    );
    return hasRunFile(this.path, bundle) && hasRunFile(this.path, about)
      ? { bundle: this.file(bundle), about: readJson(this.path, about, keptEnvironmentSchema) }
      : undefined;
  }

  /** Writer of a file of what-if episodes; creates the folder if needed. */
  whatIf(file: string): LineLog {
    makeFolderSync(this.file(runFiles.whatIf), this.path);
    return new LineLog(this.file(file), { fsync: 'explicit' });
  }

  /** Adds a line to an environment version's coverage; lines of the oldest steps are dropped. */
  async noteCoverage(version: string, line: CoverageLine): Promise<void> {
    const file = environmentFile(version, environmentFiles.coverage);
    const known = hasRunFile(this.path, file) ? bytesIn(this.path, file).toString('utf8').split('\n').slice(0, -1) : [];
    const newest = [...known.slice(1 - coveredSteps), JSON.stringify(line)];
    await replaceFile(this.file(file), `${newest.join('\n')}\n`);
  }

  /**
   * Rolls the folder back to the end of `step`, before a resume: cuts the logs, including TensorBoard's, to the offsets
   * in the checkpoint (by file name) and removes episodes and diagnostics of later steps. Can be repeated. The logs
   * must have been synced before the checkpoint was written.
   */
  async rollBack(step: number, offsets: Readonly<Record<string, number>>): Promise<void> {
    try {
      await this.takeBack(step, offsets);
    } catch (error) {
      throw storeError('roll back', this.path, error);
    }
  }

  private async takeBack(step: number, offsets: Readonly<Record<string, number>>): Promise<void> {
    await makeFolder(this.file(runFiles.episodes), fileSystem, this.path); // it may have been deleted to free space
    for (const name of [runFiles.metrics, runFiles.events, runFiles.checksums]) {
      if (name === runFiles.checksums && !existsSync(this.file(name))) continue; // from a trainer without checksums
      const log = new LineLog(this.file(name), { fsync: 'explicit' });
      try {
        log.truncateTo(offsets[name] ?? 0);
      } finally {
        log.close();
      }
    }
    for (const name of namesInRunSync(this.path, runFiles.tensorboard)) {
      const file = join(this.file(runFiles.tensorboard), name);
      const offset = offsets[inTensorboard(name)] ?? 0;
      if (offset === 0) await rm(file, { force: true });
      else if (statSync(file).size > offset) await truncate(file, offset);
    }
    this.cutScores(step);
    await this.removeTemporaries();
    for (const name of [runFiles.episodes, runFiles.diagnostics]) {
      const later = namesInRunSync(this.path, name).filter(
        file => Number(/^[a-z][\w-]*-(\d{6,})\.\w+$/.exec(file)?.[1] ?? 0) > step,
      );
      for (const file of later) await rm(join(this.file(name), file), { force: true });
    }
  }

  /** Removes temporary files left by a crash. Checkpoints remove their own. */
  private async removeTemporaries(): Promise<void> {
    for (const name of this.names())
      if (isTemporary(basename(name)) && !name.startsWith(runFiles.checkpoints))
        await rm(this.file(name), { force: true });
  }

  /** Names of everything in the folder, at any depth; links are not followed. */
  private *names(below = '', level = 0): Generator<string> {
    if (level > deepest)
      throw new UserError(`store: ${this.file(below)} lies more than ${deepest} folders deep: remove it`);
    for (const { name, kind } of listBoundedSync(this.file(below), { most: mostEntries, within: this.path })) {
      const path = below === '' ? name : `${below}/${name}`;
      yield path;
      if (kind === 'folder') yield* this.names(path, level + 1);
    }
  }

  private cutScores(step: number): void {
    const file = this.file(runFiles.scores);
    if (!existsSync(file)) return; // written by a trainer without scores
    const log = this.scores();
    try {
      log.truncateTo(endOfStep(file, step));
    } finally {
      log.close();
    }
  }
}

const inTensorboard = (name: string): string => `${runFiles.tensorboard}/${name}`;

/** The end of the last line whose step is at most `step`. */
function endOfStep(file: string, step: number): number {
  let end = 0;
  for (const { text, next } of readLines(file)) {
    if (Number(/^\{"step":(\d+),/.exec(text)?.[1] ?? Infinity) > step) break;
    end = next;
  }
  return end;
}

/** Creates a folder with an unused name, trying counters in turn; returns the name. */
async function claim(runs: string, name: (counter: number) => string): Promise<string> {
  for (let counter = 0; ; counter++) {
    try {
      await mkdir(join(runs, name(counter)));
      return name(counter);
    } catch (error) {
      // 4 hex digits: more than 65,536 runs of one name in one second do not occur, but the loop must end.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || counter > 1_000_000) throw error;
    }
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

/**
 * Writes a signature. A run that cannot be signed, because the user's storage is not writable, works like others, but
 * executing its code requires confirmation.
 */
async function writeSignature(file: string, text: () => string): Promise<void> {
  let signature: string;
  try {
    signature = text();
  } catch (error) {
    process.stderr.write(
      `note: ${(error as Error).message}; until then the run is not signed, and resuming it asks for confirmation\n`,
    );
    return;
  }
  await replaceFile(file, signature);
}

/** Bytes of a file of a run folder. Errors are UserErrors. */
function bytesIn(folder: string, name: string): Buffer {
  try {
    return readRunFileSync(folder, name);
  } catch (error) {
    throw storeError('read', join(folder, name), error);
  }
}

const readJson = <Schema extends z.ZodType>(folder: string, name: string, schema: Schema): z.infer<Schema> =>
  parsed(join(folder, name), bytesIn(folder, name).toString('utf8'), schema);

function parsed<Schema extends z.ZodType>(file: string, text: string, schema: Schema): z.infer<Schema> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new UserError(`store: ${file} is damaged (${reasonOf(error)}): restore it or remove the run`, {
      cause: error,
    });
  }
}

/** One line about what is wrong with a document. */
function reasonOf(error: unknown): string {
  if (!(error instanceof ZodError)) return (error as Error).message.split('\n', 1)[0];
  const [{ path, message }] = error.issues;
  return path.length > 0 ? `${path.join('.')}: ${message}` : message;
}
