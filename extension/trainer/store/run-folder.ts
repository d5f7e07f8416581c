// The folder of one run: making it, opening it, and the files in it that are not a log or a checkpoint. The manifest is written
// once, when the run is made; the status is replaced whole. A folder without a manifest is no run.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { z } from 'zod';
import {
  episodesFile,
  groupsFile,
  manifestSchema,
  runFiles,
  runsFolder,
  statusSchema,
} from '../../protocol/run-folder';
import type { Manifest, RunStatus } from '../../protocol/run-folder';
import { UserError } from '../../protocol/user-error';
import { replaceFile, storeError } from './files';
import { LineLog } from './line-log';

const maxSlug = 40;

/** A run's name as part of its id: lower case, words joined by hyphens. */
function slug(name: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  return words.slice(0, maxSlug).replace(/^-+|-+$/g, '') || 'run';
}

/** `YYYYMMDD-HHMMSS-<slug>-<4 hex>`, UTC; the hex digits are of the configuration's hash and a counter. */
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
  ) {}

  get id(): string {
    return this.manifest.id;
  }

  /** Makes the folder of a new run, with an id of its own and its manifest. Leaves nothing when it fails. */
  static async create(
    workspace: string,
    about: Omit<Manifest, 'schema' | 'id' | 'created'>,
    created: Date,
  ): Promise<RunFolder> {
    const runs = resolve(workspace, runsFolder);
    let path: string | undefined;
    try {
      await mkdir(runs, { recursive: true });
      const id = await claim(runs, counter => runId(about.name, created, about.config_hash, counter));
      path = join(runs, id);
      const manifest: Manifest = { schema: 1, id, created: created.toISOString(), ...about };
      for (const folder of [runFiles.episodes, runFiles.checkpoints, runFiles.environments])
        await mkdir(join(path, folder));
      await replaceFile(join(path, runFiles.manifest), json(manifestSchema.parse(manifest)));
      return new RunFolder(path, manifest);
    } catch (error) {
      if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => undefined);
      throw storeError('make a run folder in', runs, error);
    }
  }

  /** Opens an existing run. Throws a UserError where the folder is none. */
  static open(path: string): RunFolder {
    const file = join(path, runFiles.manifest);
    if (!existsSync(file))
      throw new UserError(
        `store: ${path} has no ${runFiles.manifest}, so it is no run: choose a folder below ${runsFolder}`,
      );
    return new RunFolder(resolve(path), readJson(file, manifestSchema));
  }

  /** Opens a run of the workspace by its id. */
  static find(workspace: string, id: string): RunFolder {
    const runs = resolve(workspace, runsFolder);
    if (/^[\w-]+$/.test(id) && existsSync(join(runs, id, runFiles.manifest))) return RunFolder.open(join(runs, id));
    throw new UserError(`store: there is no run ${id} in ${runs}: list the runs for their ids`);
  }

  /** All runs of a workspace, newest first. Folders that are no run, or a damaged one, are passed over. */
  static list(workspace: string): RunFolder[] {
    const runs = resolve(workspace, runsFolder);
    if (!existsSync(runs)) return [];
    const found = readdirSync(runs).flatMap(name => {
      try {
        return [RunFolder.open(join(runs, name))];
      } catch {
        return [];
      }
    });
    return found.sort((a, b) =>
      a.manifest.created < b.manifest.created ? 1 : a.manifest.created > b.manifest.created ? -1 : 0,
    );
  }

  /** Absolute path of a file in the folder, by its name from `runFiles`. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Replaces the status. */
  async writeStatus(status: RunStatus): Promise<void> {
    await replaceFile(this.file(runFiles.status), json(statusSchema.parse(status)));
  }

  /** The newest status, or null before the first. */
  readStatus(): RunStatus | null {
    const file = this.file(runFiles.status);
    return existsSync(file) ? readJson(file, statusSchema) : null;
  }

  /** Writers of the run's two logs; durable once `sync()` returned. */
  metrics(): LineLog {
    return new LineLog(this.file(runFiles.metrics), { fsync: 'explicit' });
  }
  events(): LineLog {
    return new LineLog(this.file(runFiles.events), { fsync: 'explicit' });
  }

  /** Writer of a step's episodes. */
  episodes(mode: 'train' | 'val', step: number): LineLog {
    return new LineLog(this.file(episodesFile(mode, step)), { fsync: 'explicit' });
  }

  /** Writer of a step's prompt groups; the folder is made with the first. */
  groups(step: number): LineLog {
    mkdirSync(this.file(runFiles.diagnostics), { recursive: true });
    return new LineLog(this.file(groupsFile(step)), { fsync: 'explicit' });
  }

  /** Writes the document of a diagnosis; gives its bytes. The folder is made with the first. */
  async writeDiagnosis(name: string, document: unknown): Promise<number> {
    mkdirSync(this.file(runFiles.diagnostics), { recursive: true });
    const text = `${JSON.stringify(document)}\n`;
    await replaceFile(this.file(name), text);
    return Buffer.byteLength(text);
  }

  /** Keeps the source of an environment that ran, once a version, as `environments/<version>/environment.js`. */
  async keepEnvironment(version: string, bundle: string): Promise<void> {
    if (!/^[\w-]+$/.test(version)) throw new UserError(`store: ${version} is no environment version: use its sha256`);
    const folder = join(this.file(runFiles.environments), version);
    const file = join(folder, 'environment.js');
    if (existsSync(file)) return;
    try {
      await mkdir(folder, { recursive: true });
    } catch (error) {
      throw storeError('make', folder, error);
    }
    await replaceFile(file, bundle);
  }

  /**
   * Takes the folder back to the end of `step`, before a resume: cuts the logs to the offsets that the checkpoint noted (by file
   * name) and removes episodes and diagnostics of later steps. May be repeated. The logs must have been synced before the checkpoint was written.
   */
  async rollBack(step: number, offsets: Readonly<Record<string, number>>): Promise<void> {
    for (const name of [runFiles.metrics, runFiles.events]) {
      const log = new LineLog(this.file(name), { fsync: 'explicit' });
      try {
        log.truncateTo(offsets[name] ?? 0);
      } finally {
        log.close();
      }
    }
    for (const name of [runFiles.episodes, runFiles.diagnostics]) {
      const folder = this.file(name);
      if (!existsSync(folder)) continue;
      const later = readdirSync(folder).filter(
        file => Number(/^[a-z][\w-]*-(\d{6,})\.\w+$/.exec(file)?.[1] ?? 0) > step,
      );
      for (const file of later) await rm(join(folder, file), { force: true });
    }
  }
}

/** Makes a folder whose name nobody has, trying counters in turn; returns the name. */
async function claim(runs: string, name: (counter: number) => string): Promise<string> {
  for (let counter = 0; ; counter++) {
    try {
      await mkdir(join(runs, name(counter)));
      return name(counter);
    } catch (error) {
      // 4 hex digits: more than 65,536 runs of one name in one second do not happen, but a loop must end.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || counter > 1_000_000) throw error;
    }
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

function readJson<Schema extends z.ZodType>(file: string, schema: Schema): z.infer<Schema> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw storeError('read', file, error);
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(`store: ${file} is damaged (${reason}): restore it or remove the run`, { cause: error });
  }
}
