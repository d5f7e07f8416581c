// One run's folder as the host reads it: who it is, how it stands, whether its trainer lives, its numbers and its episodes.
// The folder is the truth; nothing here writes. Everything is read in pieces and again only where a file changed. No `vscode`
// here: the clock is handed in, so that leases can be tested.
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { z } from 'zod';
import { isMissing, RefusedFile } from '../protocol/bounded-file';
import { jsonOrNothing } from '../protocol/json';
import { appendAll } from '../protocol/lists';
import { holderOf, TouchWatch, type LeaseHolder } from '../protocol/lease-judgement';
import type { EpisodeRow, RunSummary } from '../protocol/pages';
import { isAlive, startOf, thisPlace, type Processes } from '../protocol/process-identity';
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
import { firstWords, readLabels } from './run-labels';

/** How long a run may stand at `starting` before a missing lease means that its trainer died. */
const startingGraceMs = 60_000;

/** Clocks and processes that a reader goes by; tests hand in their own. */
export interface ReaderWorld extends Processes {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that is never set. */
  monotonic(): number;
}

/** Elsewhere than on Linux a process's start is only found out by starting a program, which would hold up the host: touches decide there. */
const realWorld: ReaderWorld = {
  now: Date.now,
  monotonic: () => performance.now(),
  place: thisPlace,
  isAlive,
  startOf: pid => (process.platform === 'linux' ? startOf(pid) : undefined),
};

/** All numbers of a run. `epoch` grows when the files were cut back, so that a watcher drops what it had. */
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
  private readonly world: ReaderWorld;
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
    world: Partial<ReaderWorld> = {},
  ) {
    this.world = { ...realWorld, ...world };
    this.manifestFile = new SmallFile(folder, runFiles.manifest, manifestIn(basename(folder)));
    this.statusFile = new SmallFile(folder, runFiles.status, statusSchema);
    this.metricsFile = new JsonLines(join(folder, runFiles.metrics), metricsLineSchema);
    this.eventsFile = new JsonLines(join(folder, runFiles.events), eventSchema);
  }

  /** Reads manifest, status, labels and lease again. Answers false where the folder holds no run (yet). */
  async refresh(): Promise<boolean> {
    const isThere = await hasEntry(this.folder, runFiles.manifest);
    if (!isThere) return false;
    if (!this.manifest) this.manifest = await this.manifestFile.read();
    const status = await this.statusFile.read();
    if (status !== this.statusRead) [this.status, this.statusRead] = [status ?? this.status, status];
    await this.readLabels();
    const { world } = this;
    const touched = (await statOrNothing(join(this.folder, runFiles.lease)))?.mtimeMs;
    const lease = touched === undefined ? null : await this.lease();
    if (touched !== undefined && lease !== null) this.touches.see(touched, world.now(), world.monotonic());
    this.holder = lease === null ? 'none' : holderOf(lease ?? null, world);
    return this.manifest !== undefined;
  }

  /** Why the folder's manifest or status cannot be used, in one sentence; undefined where they can, or are not there. */
  get trouble(): string | undefined {
    return this.manifestFile.trouble ?? this.statusFile.trouble;
  }

  /** A status the trainer sent; kept where it is newer than the file's. */
  tell(status: RunStatus): void {
    if (!this.status || status.updated >= this.status.updated) this.status = status;
  }

  /** The run as pages and tree show it; `undefined` before its manifest was read. */
  get summary(): RunSummary | undefined {
    const { manifest } = this;
    if (!manifest) return undefined;
    const status = this.status ?? freshStatus(manifest);
    const { holder, world } = this;
    const begun = Math.abs(world.now() - Date.parse(status.updated)) < startingGraceMs;
    const starting = status.state === 'starting' && holder !== 'gone' && begun;
    const held = holder === 'held' || (holder === 'unknown' && this.touches.isFresh(world.monotonic()));
    const { id, created, config_name } = manifest;
    const { name = manifest.name, tags = manifest.tags ?? [], archived = false } = this.labels;
    const live = held || starting;
    return {
      ...{ id, name, created, config_name, folder: this.folder, status, live },
      ...(tags.length > 0 && { tags }),
      ...(archived && { archived }),
      ...(this.notes !== '' && { notes: this.notes }),
      ...(this.statusFile.trouble !== undefined && { trouble: this.statusFile.trouble }),
    };
  }

  /** What the run was made with; undefined before it was read. */
  get origin(): Manifest | undefined {
    return this.manifest;
  }

  private async readLabels(): Promise<void> {
    const files = [runFiles.labels, runFiles.notes].map(name => join(this.folder, name));
    const stamp = (await Promise.all(files.map(stampOf))).join(' ');
    if (stamp === this.labelsStamp) return;
    this.labels = await readLabels(this.folder);
    this.notes = firstWords(await this.text(runFiles.notes).catch(() => ''));
    this.labelsStamp = stamp;
  }

  /** The lease as it stands in the folder, stale or not; null where it is that of another folder, which this one is a copy of. */
  async lease(): Promise<Lease | null | undefined> {
    const { data } = leaseSchema.safeParse(await this.json(runFiles.lease));
    if (!data?.folder) return data;
    try {
      const [path, { ino }] = await Promise.all([realpath(this.folder), stat(this.folder, { bigint: true })]);
      return isLeaseOf(data, { path, inode: String(ino) }) ? data : null;
    } catch {
      return undefined; // the folder is going
    }
  }

  /**
   * Metrics and events up to now. The arrays are this reader's own and grow: take lengths, don't write. For a long run this parses every
   * line (in slices): curves are better taken by columns (metric-columns.ts).
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

  /** Events up to now, without the metrics. As with `numbers`, the array grows. */
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

  /** Steps that have episodes, by step, a step's training before its validation. */
  async episodeSteps(): Promise<EpisodeStep[]> {
    const steps: EpisodeStep[] = [];
    for (const name of await namesInRun(this.folder, runFiles.episodes)) {
      const match = /^(step|val)-(\d{6,})\.jsonl$/.exec(name);
      if (match) steps.push({ step: Number(match[2]), mode: match[1] === 'step' ? 'train' : 'val' });
    }
    return steps.sort((a, b) => a.step - b.step || (a.mode < b.mode ? -1 : Number(a.mode > b.mode)));
  }

  /** What each tag's environment ran, in order. */
  async versions(): Promise<RanVersion[]> {
    await this.refresh();
    return this.manifest ? ranVersions(this.manifest, (await this.events()).events) : [];
  }

  /** A version's sources as the run kept them, by their names. Undefined where it keeps none. */
  async keptEnvironment(version: string): Promise<KeptEnvironment | undefined> {
    if (!isVersionName(version)) return undefined;
    return keptEnvironmentSchema.safeParse(await this.json(environmentFile(version, environmentFiles.about))).data;
  }

  /** What came with one version of a tag after another; undefined where one of them played nothing near the change. */
  async effect(before: RanVersion, after: RanVersion): Promise<VersionEffect | undefined> {
    const episodes: ComparedEpisode[] = [];
    for (const step of comparedRange(before, after)) {
      const file = new JsonLines(this.episodesPath({ step, mode: 'train' }), comparedEpisodeSchema, this.folder);
      appendAll(episodes, (await file.read()).lines);
    }
    return versionEffect(episodes, { tag: after.tag, from: before.version, to: after.version });
  }

  /** The rows of one step's episodes, in the file's order. */
  async episodeRows(at: EpisodeStep): Promise<EpisodeRow[]> {
    return (await this.index(at)).rows;
  }

  /** One whole episode, null where the step has none of that id. */
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

  /** Names of the checkpoints, the newest first: `step-000100`. */
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
    // A page looks at few steps at a time: keep the newest few indexes, they hold a row an episode.
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
      return undefined; // not there yet, or being replaced: the next refresh sees it
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

/** The state of a run whose trainer has written no status yet. */
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

/** A small JSON file of a run folder, read again only where it changed, whether or not it could be read before. */
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

  /** What the file held when it was last as it should be; undefined before. */
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
      if (isMissing(error)) return this.value; // being replaced: the next look sees it
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

/** A text that changes when the file does; empty where there is no file. */
async function stampOf(path: string): Promise<string> {
  const found = await statOrNothing(path);
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}` : '';
}
