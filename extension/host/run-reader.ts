// Reads one run folder for the host: manifest, status, whether its trainer is alive, metrics and episodes. The folder
// is authoritative; nothing here writes. Files are read in slices, and again only if they changed. Must not import
// `vscode`. The clock is injected for tests of leases.
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { z } from 'zod';
import { isMissing, RefusedFile } from '../protocol/bounded-file';
import { jsonOrNothing } from '../protocol/json';
import { appendAll } from '../protocol/lists';
import { holderOf, TouchWatch, type LeaseHolder } from '../protocol/lease-judgement';
import type { EpisodeRow, RunSummary } from '../protocol/pages';
import { isAlive, startOf, currentPidScope, type Processes } from '../protocol/process-identity';
import {
  environmentFile,
  environmentFiles,
  episodeSchema,
  episodesFile,
  eventSchema,
  isLeaseOf,
  isVersionName,
  keptEnvironmentSchema,
  leaseSchema,
  manifestIn,
  metricsLineSchema,
  runFiles,
  statusSchema,
  type Episode,
  type KeptEnvironment,
  type Labels,
  type Lease,
  type Manifest,
  type MetricsLine,
  type RunEvent,
  type RunStatus,
} from '../protocol/run-folder';
import { hasEntry, namesInRun, openRunFile, readRunFile } from '../protocol/run-file';
import {
  comparedEpisodeSchema,
  comparedRange,
  ranVersions,
  versionEffect,
  type ComparedEpisode,
  type RanVersion,
  type VersionEffect,
} from '../protocol/version-effect';
import { JsonLines, lineSlices, openOrNothing, readRange } from './json-lines';
import { firstLine, readLabels } from './run-labels';

/** Milliseconds for which a run may be `starting` without a lease before its trainer counts as dead. */
const startingTimeoutMs = 60_000;

/** Clocks and process queries, replaceable in tests. */
export interface ReaderDependencies extends Processes {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  monotonic(): number;
}

/**
 * Except on Linux, the start time of a process requires running a program, which would block the host, so the touches
 * decide.
 */
const defaultDependencies: ReaderDependencies = {
  now: Date.now,
  monotonic: () => performance.now(),
  pidScope: currentPidScope,
  isAlive,
  startOf: pid => (process.platform === 'linux' ? startOf(pid) : undefined),
};

/**
 * All metrics and events of a run. `epoch` is incremented when the files were truncated, so that clients discard
 * earlier data.
 */
export interface RunNumbers {
  epoch: number;
  metrics: MetricsLine[];
  events: RunEvent[];
}

export type EpisodeStep = { step: number; mode: 'train' | 'val' };

interface EpisodeIndex {
  stamp: string;
  rows: EpisodeRow[];
  spans: Map<string, { from: number; length: number }>;
}

export class RunReader {
  private manifest: Manifest | undefined;
  private status: RunStatus | undefined;
  private statusRead: RunStatus | undefined;
  private readonly manifestFile: SmallFile<Manifest>;
  private readonly statusFile: SmallFile<RunStatus>;
  private holder: LeaseHolder | 'none' = 'none';
  private readonly touches = new TouchWatch();
  private readonly dependencies: ReaderDependencies;
  private labels: Labels = { schema: 1 };
  private notes = '';
  private labelsStamp = '';
  private readonly metricsFile: JsonLines<MetricsLine>;
  private readonly eventsFile: JsonLines<RunEvent>;
  private readonly loaded: RunNumbers = { epoch: 0, metrics: [], events: [] };
  private reading: Promise<unknown> = Promise.resolve();
  private readonly indexes = new Map<string, EpisodeIndex>();

  constructor(
    readonly folder: string,
    dependencies: Partial<ReaderDependencies> = {},
  ) {
    this.dependencies = { ...defaultDependencies, ...dependencies };
    this.manifestFile = new SmallFile(folder, runFiles.manifest, manifestIn(basename(folder)));
    this.statusFile = new SmallFile(folder, runFiles.status, statusSchema);
    this.metricsFile = new JsonLines(join(folder, runFiles.metrics), metricsLineSchema);
    this.eventsFile = new JsonLines(join(folder, runFiles.events), eventSchema);
  }

  /** Reads manifest, status, labels and lease again. Returns false if the folder contains no run (yet). */
  async refresh(): Promise<boolean> {
    const isThere = await hasEntry(this.folder, runFiles.manifest);
    if (!isThere) return false;
    if (!this.manifest) this.manifest = await this.manifestFile.read();
    const status = await this.statusFile.read();
    if (status !== this.statusRead) [this.status, this.statusRead] = [status ?? this.status, status];
    await this.readLabels();
    const { dependencies } = this;
    const touched = (await statOrNothing(join(this.folder, runFiles.lease)))?.mtimeMs;
    const lease = touched === undefined ? null : await this.lease();
    if (touched !== undefined && lease !== null)
      this.touches.see(touched, dependencies.now(), dependencies.monotonic());
    this.holder = lease === null ? 'none' : holderOf(lease ?? null, dependencies);
    return this.manifest !== undefined;
  }

  /** Why the manifest or status cannot be used, in one sentence; undefined if they can or are missing. */
  get trouble(): string | undefined {
    return this.manifestFile.trouble ?? this.statusFile.trouble;
  }

  /** Records a status sent by the trainer, unless the file's is newer. */
  report(status: RunStatus): void {
    if (!this.status || status.updated >= this.status.updated) this.status = status;
  }

  /** The run as shown by pages and the tree; undefined until its manifest was read. */
  get summary(): RunSummary | undefined {
    const { manifest } = this;
    if (!manifest) return undefined;
    const status = this.status ?? freshStatus(manifest);
    const { holder, dependencies } = this;
    const begun = Math.abs(dependencies.now() - Date.parse(status.updated)) < startingTimeoutMs;
    const starting = status.state === 'starting' && holder !== 'gone' && begun;
    const held = holder === 'held' || (holder === 'unknown' && this.touches.isFresh(dependencies.monotonic()));
    const { id, created, config_name } = manifest;
    const { name = manifest.name, tags = manifest.tags ?? [], archived = false } = this.labels;
    const live = held || starting;
    return {
      id,
      name,
      created,
      config_name,
      folder: this.folder,
      status,
      live,
      ...(tags.length > 0 && { tags }),
      ...(archived && { archived }),
      ...(this.notes !== '' && { notes: this.notes }),
      ...(this.statusFile.trouble !== undefined && { trouble: this.statusFile.trouble }),
    };
  }

  /** The manifest; undefined until it was read. */
  get origin(): Manifest | undefined {
    return this.manifest;
  }

  private async readLabels(): Promise<void> {
    const files = [runFiles.labels, runFiles.notes].map(name => join(this.folder, name));
    const stamp = (await Promise.all(files.map(stampOf))).join(' ');
    if (stamp === this.labelsStamp) return;
    this.labels = await readLabels(this.folder);
    this.notes = firstLine(await this.text(runFiles.notes).catch(() => ''));
    this.labelsStamp = stamp;
  }

  /**
   * Returns the lease in the folder, stale or not. Null if it belongs to another folder, of which this one is a copy.
   */
  async lease(): Promise<Lease | null | undefined> {
    const { data } = leaseSchema.safeParse(await this.json(runFiles.lease));
    if (!data?.folder) return data;
    try {
      const [path, { ino }] = await Promise.all([realpath(this.folder), stat(this.folder, { bigint: true })]);
      return isLeaseOf(data, { path, inode: String(ino) }) ? data : null;
    } catch {
      return undefined; // the folder is being deleted
    }
  }

  /**
   * Returns the metrics and events so far. The arrays belong to this reader and grow: copy their lengths, do not modify
   * them. For a long run this parses every line (in slices); curves should use columns (metric-columns.ts).
   */
  numbers(): Promise<Readonly<RunNumbers>> {
    return this.inTurn(async () => {
      const metrics = await this.metricsFile.read();
      if (metrics.restarted) {
        this.loaded.epoch++;
        this.loaded.metrics.length = 0;
      }
      for (const line of metrics.lines) this.loaded.metrics.push(line);
      await this.readEvents();
      return this.loaded;
    });
  }

  /** Returns the events so far, without metrics. The array grows as with `numbers`. */
  events(): Promise<Readonly<Pick<RunNumbers, 'epoch' | 'events'>>> {
    return this.inTurn(async () => {
      await this.readEvents();
      return this.loaded;
    });
  }

  private async readEvents(): Promise<void> {
    const events = await this.eventsFile.read();
    if (events.restarted) {
      this.loaded.epoch++;
      this.loaded.events.length = 0;
    }
    for (const event of events.lines) this.loaded.events.push(event);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.reading.then(work);
    this.reading = next.catch(() => undefined);
    return next;
  }

  /** Returns the steps that have episodes, in order, training before validation within a step. */
  async episodeSteps(): Promise<EpisodeStep[]> {
    const steps: EpisodeStep[] = [];
    for (const name of await namesInRun(this.folder, runFiles.episodes)) {
      const match = /^(step|val)-(\d{6,})\.jsonl$/.exec(name);
      if (match) steps.push({ step: Number(match[2]), mode: match[1] === 'step' ? 'train' : 'val' });
    }
    return steps.sort((a, b) => a.step - b.step || (a.mode < b.mode ? -1 : Number(a.mode > b.mode)));
  }

  /** Returns the environment versions that each tag ran, in order. */
  async versions(): Promise<RanVersion[]> {
    await this.refresh();
    return this.manifest ? ranVersions(this.manifest, (await this.events()).events) : [];
  }

  /** Returns the saved sources of a version; undefined if there are none. */
  async keptEnvironment(version: string): Promise<KeptEnvironment | undefined> {
    if (!isVersionName(version)) return undefined;
    return keptEnvironmentSchema.safeParse(await this.json(environmentFile(version, environmentFiles.about))).data;
  }

  /** Returns the effect of a version change of a tag; undefined if one version has no episodes near the change. */
  async effect(before: RanVersion, after: RanVersion): Promise<VersionEffect | undefined> {
    const episodes: ComparedEpisode[] = [];
    for (const step of comparedRange(before, after)) {
      const file = new JsonLines(this.episodesPath({ step, mode: 'train' }), comparedEpisodeSchema, this.folder);
      appendAll(episodes, (await file.read()).lines);
    }
    return versionEffect(episodes, { tag: after.tag, from: before.version, to: after.version });
  }

  /** Returns the rows of one step's episodes, in file order. */
  async episodeRows(at: EpisodeStep): Promise<EpisodeRow[]> {
    return (await this.index(at)).rows;
  }

  /** Returns one complete episode, or null if the step has none with that id. */
  async episode(at: EpisodeStep, id: string): Promise<Episode | null> {
    const span = (await this.index(at)).spans.get(id);
    if (!span) return null;
    const handle = await openRunFile(this.folder, episodesFile(at.mode, at.step));
    try {
      const bytes = await readRange(handle, span.from, span.length);
      return episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8'))).data ?? null;
    } finally {
      await handle.close();
    }
  }

  /** Returns the names of the checkpoints, newest first, such as `step-000100`. */
  async checkpoints(): Promise<string[]> {
    const names = await namesInRun(this.folder, runFiles.checkpoints);
    return names
      .filter(name => /^step-\d{6,}$/.test(name))
      .sort()
      .reverse();
  }

  private episodesPath(at: EpisodeStep): string {
    return join(this.folder, episodesFile(at.mode, at.step));
  }

  private async index(at: EpisodeStep): Promise<EpisodeIndex> {
    const path = this.episodesPath(at);
    const stamp = await stampOf(path);
    const known = this.indexes.get(path);
    if (known?.stamp === stamp) return known;
    const index: EpisodeIndex = { stamp, rows: [], spans: new Map() };
    const handle = stamp === '' ? undefined : await openOrNothing(path, this.folder);
    try {
      const { size } = handle ? await handle.stat() : { size: 0 };
      const slices = handle ? lineSlices(handle, { offset: 0, skipping: false }, size) : [];
      for await (const { bytes, offset } of slices) {
        const begin = offset - bytes.length;
        for (let from = 0, end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
          const { data } = episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8', from, end)));
          if (!data) continue;
          index.rows.push(rowOf(data));
          index.spans.set(data.id, { from: begin + from, length: end - from });
        }
      }
    } finally {
      await handle?.close();
    }
    // Only the newest indexes are kept: a page views few steps at a time, and an index has one row per episode.
    this.indexes.delete(path);
    this.indexes.set(path, index);
    for (const key of [...this.indexes.keys()].slice(0, -8)) this.indexes.delete(key);
    return index;
  }

  private async text(name: string): Promise<string> {
    return (await readRunFile(this.folder, name)).toString('utf8');
  }

  private async json(name: string): Promise<unknown> {
    try {
      return jsonOrNothing(await this.text(name));
    } catch {
      return undefined; // missing or being replaced: retried at the next refresh
    }
  }
}

function rowOf(episode: Episode): EpisodeRow {
  const { id, step, mode, group_id, member, tag, success, score, reward, advantage, kept } = episode;
  let tokens = 0;
  for (const sampled of episode.tokens.mask) tokens += sampled;
  const turns = episode.turns.length;
  return { id, step, mode, group_id, member, tag, success, score, reward, advantage, kept, turns, tokens };
}

/** The status of a run whose trainer has not written one yet. */
function freshStatus(manifest: Manifest): RunStatus {
  return {
    state: 'starting',
    step: 0,
    total_steps: 0,
    success: null,
    reward: null,
    tokens_per_s: null,
    eta_s: null,
    phase: 'idle',
    updated: manifest.created,
  };
}

/** A small JSON file of a run folder, read again only if it changed, even if the last read failed. */
class SmallFile<T> {
  private value: T | undefined;
  private stamp = '';
  /** Why the file cannot be used, in one sentence. */
  trouble: string | undefined;

  constructor(
    private readonly folder: string,
    private readonly name: string,
    private readonly schema: z.ZodType<T>,
  ) {}

  /** Returns the last valid content of the file, or undefined. */
  async read(): Promise<T | undefined> {
    const path = join(this.folder, this.name);
    const stamp = await stampOf(path);
    if (stamp === this.stamp) return this.value;
    this.trouble = undefined;
    try {
      const text = (await readRunFile(this.folder, this.name)).toString('utf8');
      const { data } = this.schema.safeParse(jsonOrNothing(text));
      if (data === undefined) this.trouble = `${path} is damaged: restore it or remove the run`;
      else this.value = data;
    } catch (error) {
      if (isMissing(error)) return this.value; // being replaced: retried at the next refresh
      this.trouble =
        error instanceof RefusedFile
          ? error.message
          : `${path} cannot be read (${(error as Error).message}): check its permissions`;
    }
    this.stamp = stamp;
    return this.value;
  }
}

async function statOrNothing(path: string) {
  try {
    return await lstat(path);
  } catch {
    return undefined;
  }
}

/** Returns a text that changes when the file does; empty if there is no file. */
async function stampOf(path: string): Promise<string> {
  const found = await statOrNothing(path);
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}` : '';
}
