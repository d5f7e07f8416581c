// Reads one run folder for the host: manifest, status, metrics, episodes, and whether the run's trainer is alive.
// Writes nothing. Files are read in slices; an unchanged file is not read again. Must not import `vscode`. Tests inject
// a clock, because leases expire.
import { realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { jsonOrNothing } from '../../common/json';
import { appendAll } from '../../common/lists';
import { holderOf, pidScopeOf, trainerLife, TouchWatch, type LeaseHolder } from '../../node/lease-liveness';
import type { EpisodeRow } from '../../run-data/episode-table';
import type { RunSummary } from '../../protocol/page-state';
import {
  currentPidScope,
  isAlive,
  isSamePidScope,
  readStart,
  startOf,
  type Processes,
} from '../../node/process-identity';
import {
  environmentFile,
  environmentFiles,
  episodesFile,
  isVersionName,
  runFiles,
} from '../../run-data/run-file-names';
import { eventSchema, type RunEvent } from '../../run-data/run-events';
import { isQueuedStatus, jobRecordSchema, type JobRecord } from '../../run-data/job-record';
import { isLeaseOf, leaseSchema, type Lease } from '../../run-data/lease-file';
import { keptEnvironmentSchema, type KeptEnvironment } from '../../run-data/environment-snapshot';
import { manifestIn, type Labels, type Manifest } from '../../run-data/run-manifest';
import { metricsLineSchema, type MetricsLine } from '../../run-data/step-lines';
import { statusSchema, type RunStatus } from '../../run-data/run-status-file';
import { type Episode } from '../../run-data/episode';
import { hasEntry, namesInRun, readRunFile } from '../../node/read-run-file';
import { isUnended } from '../../run-data/run-progress';
import { isElsewhere } from '../../node/run-requests';
import {
  comparedEpisodeSchema,
  comparedRange,
  ranVersions,
  versionEffect,
  type ComparedEpisode,
  type RanVersion,
  type VersionEffect,
} from '../../run-data/version-effect';
import { JsonLines } from '../../node/json-lines';
import { StepEpisodes, type EpisodeStep } from './episodes/step-episodes';
import { firstLine, readLabels } from './run-labels';
import { SmallFile, stampOf, statOrNothing } from './small-file';

/** Milliseconds after which a run in state `starting` without a lease is treated as having no trainer. */
const startingTimeoutMs = 60_000;

/** Milliseconds between checks of a silent trainer's start time that need a program. */
const checkMs = 10_000;

/** Clocks and process queries; tests can replace them. */
export interface ReaderDependencies extends Processes {
  /** Returns the milliseconds since 1970. */
  now(): number;
  /** Returns the milliseconds of a monotonic clock. */
  monotonic(): number;
  /** Returns the start time of a process whose start time `startOf` does not return. May run a program. */
  readStart(pid: number): Promise<string | undefined>;
}

/**
 * Default dependencies. On systems other than Linux, start times of processes can be read only by running a program.
 * They are therefore read only for trainers that do not touch their leases.
 */
const defaultDependencies: ReaderDependencies = {
  now: Date.now,
  monotonic: () => performance.now(),
  pidScope: currentPidScope,
  isAlive,
  startOf: pid => (process.platform === 'linux' ? startOf(pid) : undefined),
  readStart,
};

/**
 * All metrics and events of a run. `epoch` is incremented when the files were truncated; clients then discard data of
 * earlier epochs.
 */
export interface RunNumbers {
  epoch: number;
  metrics: MetricsLine[];
  events: RunEvent[];
}

export class RunReader {
  private readManifest: Manifest | undefined;
  private status: RunStatus | undefined;
  private statusRead: RunStatus | undefined;
  private readonly manifestFile: SmallFile<Manifest>;
  private readonly statusFile: SmallFile<RunStatus>;
  private readonly jobFile: SmallFile<JobRecord>;
  private job: JobRecord | undefined;
  private holder: LeaseHolder | 'none' = 'none';
  /** Host of the trainer, if it is another machine or container. */
  private otherHost: string | undefined;
  private readonly touches = new TouchWatch();
  /** The lease that was read last. It is used if the file cannot be read for a moment. */
  private lastLease: Lease | undefined;
  /** Result of the last check that needed a program. */
  private checked: { token: string; at: number; holder: LeaseHolder } | undefined;
  private readonly dependencies: ReaderDependencies;
  private labels: Labels = { schema: 1 };
  private notes = '';
  private labelsStamp = '';
  private readonly metricsFile: JsonLines<MetricsLine>;
  private readonly eventsFile: JsonLines<RunEvent>;
  private readonly loaded: RunNumbers = { epoch: 0, metrics: [], events: [] };
  private reading: Promise<unknown> = Promise.resolve();
  private readonly episodesByStep: StepEpisodes;

  constructor(
    readonly folder: string,
    dependencies: Partial<ReaderDependencies> = {},
  ) {
    this.dependencies = { ...defaultDependencies, ...dependencies };
    this.manifestFile = new SmallFile(folder, runFiles.manifest, manifestIn(basename(folder)));
    this.statusFile = new SmallFile(folder, runFiles.status, statusSchema);
    this.jobFile = new SmallFile(folder, runFiles.job, jobRecordSchema);
    this.episodesByStep = new StepEpisodes(folder);
    this.metricsFile = new JsonLines(join(folder, runFiles.metrics), metricsLineSchema);
    this.eventsFile = new JsonLines(join(folder, runFiles.events), eventSchema);
  }

  /** Reads manifest, status, labels and lease again. Returns false if the folder does not contain a run. */
  async refresh(): Promise<boolean> {
    const isThere = await hasEntry(this.folder, runFiles.manifest);
    if (!isThere) return false;
    if (!this.readManifest) this.readManifest = await this.manifestFile.read();
    const status = await this.statusFile.read();
    if (status !== this.statusRead) [this.status, this.statusRead] = [status ?? this.status, status];
    this.job = (await hasEntry(this.folder, runFiles.job)) ? await this.jobFile.read() : undefined;
    await this.readLabels();
    const { dependencies } = this;
    const touched = (await statOrNothing(join(this.folder, runFiles.lease)))?.mtimeMs;
    const read = touched === undefined ? null : await this.lease();
    this.lastLease = read ?? (read === undefined ? this.lastLease : undefined);
    const lease = read === undefined ? this.lastLease : read;
    if (touched !== undefined && lease !== null)
      this.touches.see(touched, dependencies.now(), dependencies.monotonic());
    this.holder = lease === null ? 'none' : await this.holderOf(lease ?? null);
    this.otherHost = lease && isElsewhere(lease, dependencies.pidScope) ? lease.host : undefined;
    return this.readManifest !== undefined;
  }

  /** Like `holderOf`; if the lease is stale and the start time of its process is unknown, reads the start time. */
  private async holderOf(lease: Lease | null): Promise<LeaseHolder> {
    const { dependencies } = this;
    const holder = holderOf(lease, dependencies);
    const scope = lease && pidScopeOf(lease);
    const monotonic = dependencies.monotonic();
    if (holder !== 'unknown' || !scope || !isSamePidScope(scope, dependencies.pidScope)) return holder;
    if (lease.process_start === undefined || this.touches.isFresh(monotonic)) return holder;
    if (this.checked?.token !== lease.token || monotonic - this.checked.at >= checkMs) {
      const start = await dependencies.readStart(lease.pid);
      const found = start === undefined ? 'unknown' : start === lease.process_start ? 'held' : 'gone';
      this.checked = { token: lease.token, at: monotonic, holder: found };
    }
    return this.checked.holder;
  }

  /** The reason why the manifest or status cannot be used, in one sentence; undefined if both are valid or missing. */
  get problem(): string | undefined {
    return this.manifestFile.problem ?? this.statusFile.problem;
  }

  /** Records a status that the trainer sent, if it is not older than the status in the file. */
  report(status: RunStatus): void {
    if (!this.status || status.updated >= this.status.updated) this.status = status;
  }

  /** The run's summary for pages and the tree; undefined until the manifest was read. */
  get summary(): RunSummary | undefined {
    const { manifest } = this;
    if (!manifest) return undefined;
    const status = this.status ?? freshStatus(manifest);
    const { holder, dependencies } = this;
    const begun = Math.abs(dependencies.now() - Date.parse(status.updated)) < startingTimeoutMs;
    const starting = status.state === 'starting' && holder !== 'gone' && begun;
    const silentMs = this.touches.silentMs(dependencies.monotonic());
    const life = holder === 'none' ? 'gone' : trainerLife(holder, silentMs);
    const held = life !== 'gone';
    const { id, created, config_name, parent, trainer } = manifest;
    const { name = manifest.name, tags = manifest.tags ?? [], archived = false, colour } = this.labels;
    const { job } = this;
    const queued = job !== undefined && holder === 'none' && isQueuedStatus(status);
    const live = held || starting || queued;
    return {
      id,
      name,
      created,
      config_name,
      folder: this.folder,
      // A process that was killed could not record that it no longer follows the run.
      status: trainer && !live && isUnended(status.state) ? { ...status, state: 'stopped' } : status,
      live,
      ...(life === 'silent' && { silent_s: Math.floor(silentMs / 1000) }),
      ...(tags.length > 0 && { tags }),
      ...(archived && { archived }),
      ...(colour && { colour }),
      ...(parent && { parent }),
      ...(trainer && { trainer }),
      ...(this.notes !== '' && { notes: this.notes }),
      ...(job && { job: { address: job.address, id: job.id, ...(job.host !== undefined && { host: job.host }) } }),
      ...(live && this.otherHost !== undefined && { otherHost: this.otherHost }),
      ...(this.statusFile.problem !== undefined && { problem: this.statusFile.problem }),
    };
  }

  /** Whether the process that followed a run of another trainer has ended without recording it. */
  get lostFollower(): boolean {
    const { readManifest, status, summary } = this;
    return Boolean(readManifest?.trainer && status && isUnended(status.state) && summary?.live === false);
  }

  /** The manifest; undefined until `refresh` has read it. */
  get manifest(): Manifest | undefined {
    return this.readManifest;
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
   * Returns the lease in the run folder, live or stale. Returns null if the lease was written for another folder, of
   * which this run folder is a copy.
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
   * Returns the current metrics and events. The reader appends to the returned arrays later. Callers must therefore not
   * modify them, and must remember how many entries they have processed. Parses every line, which is slow for long
   * runs; curves should use metric-columns.ts.
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

  /** Returns the current events, without metrics. As with `numbers`, the reader appends to the returned array later. */
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

  /** Returns the environment versions that each tag ran, in order. */
  async versions(): Promise<RanVersion[]> {
    await this.refresh();
    return this.manifest ? ranVersions(this.manifest, (await this.events()).events) : [];
  }

  /** Returns the saved sources of a version; undefined if the run folder does not contain them. */
  async keptEnvironment(version: string): Promise<KeptEnvironment | undefined> {
    if (!isVersionName(version)) return undefined;
    return keptEnvironmentSchema.safeParse(await this.json(environmentFile(version, environmentFiles.about))).data;
  }

  /**
   * Returns how results changed when a tag switched from version `before` to version `after`. Returns undefined if
   * either version has no episodes near the switch.
   */
  async effect(before: RanVersion, after: RanVersion): Promise<VersionEffect | undefined> {
    const episodes: ComparedEpisode[] = [];
    for (const step of comparedRange(before, after)) {
      const file = new JsonLines(join(this.folder, episodesFile('train', step)), comparedEpisodeSchema, this.folder);
      appendAll(episodes, (await file.read()).lines);
    }
    return versionEffect(episodes, { tag: after.tag, from: before.version, to: after.version });
  }

  /**
   * Returns the steps that have episodes, in ascending order. For a step with both modes, training precedes validation.
   */
  episodeSteps(): Promise<EpisodeStep[]> {
    return this.episodesByStep.steps();
  }

  /** Returns the rows of one step's episodes, in file order. */
  episodeRows(at: EpisodeStep): Promise<EpisodeRow[]> {
    return this.episodesByStep.rows(at);
  }

  /** Returns one complete episode, or null if the step has no episode with this id. */
  episode(at: EpisodeStep, id: string): Promise<Episode | null> {
    return this.episodesByStep.episode(at, id);
  }

  /** Returns the names of the checkpoints, newest first, such as `step-000100`. */
  async checkpoints(): Promise<string[]> {
    const names = await namesInRun(this.folder, runFiles.checkpoints);
    return names
      .filter(name => /^step-\d{6,}$/.test(name))
      .sort()
      .reverse();
  }

  private async text(name: string): Promise<string> {
    return (await readRunFile(this.folder, name)).toString('utf8');
  }

  private async json(name: string): Promise<unknown> {
    try {
      return jsonOrNothing(await this.text(name));
    } catch {
      return undefined; // the file is missing or being replaced; the next refresh reads it again
    }
  }
}

/** Returns the initial status of a run whose trainer has not written `status.json`. */
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
