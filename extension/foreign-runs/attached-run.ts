// The run folder of an attached run: created once per source, and updated from the trainer's files. Nothing outside of
// this folder is written. One process at a time follows a run; it holds the run's lease.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '../run-data/run-manifest';
import type { RunStatus } from '../run-data/run-status-file';
import { isRecord } from '../common/json';
import { modelScoringFile } from '../run-data/model-scoring';
import { secrets } from '../node/secrets';
import { configHash } from '../trainer/config/config-hash';
import { RunFolder } from '../trainer/store/run-folder';
import type { ForeignRun } from './adapter';
import { AttachedEpisodes } from './attached-episodes';
import { AttachedMetrics, derivedRows, modelScoringOf } from './attached-metrics';
import { leftOutOf, problemOf } from './left-out';
import type { MetricTable } from './metric-table';
import type { SourceFolder } from './source-folder';

/** Maximum number of sentences in the status about what is not shown; the events have all. */
const mostSentences = 20;
/** Milliseconds between two writes while a large file of metrics is read. */
const writeMs = 1000;

/** Returns the runs of a workspace that are attached from this source; the newest first. */
export const attachedFrom = (workspace: string, path: string): RunFolder[] =>
  RunFolder.list(workspace).filter(({ manifest }) => manifest.trainer?.source === path);

/** `reading` while files wait to be read, then `following`. */
export type FollowPhase = 'reading' | 'following';

export class AttachedRun {
  private readonly metrics: AttachedMetrics;
  readonly episodes: AttachedEpisodes;
  private shown = '';
  /** Whether the rows of the trainer's files were read once. */
  private isRead = false;
  /** Whether a source was truncated, also before this process began, and no row of it was read since. */
  private hasRestarted = true;
  private warned = new Set<string>();
  /** Files of metrics and of rollouts that could not be read, each with the reason. */
  private readonly problems = new Map<string, string>();
  /** Versions of the episodes and of the diagnosis under a model from which the table's derived values were computed. */
  private derivedFrom = '';
  /** Names of the derived metrics. */
  private derivedNames: readonly string[] = [];
  /** Model of the diagnosis. */
  private model: string | undefined;

  private constructor(
    readonly folder: RunFolder,
    private readonly source: SourceFolder,
    private readonly run: ForeignRun,
    episodeBytes: number,
  ) {
    this.metrics = new AttachedMetrics(folder, run.stepSeconds);
    this.episodes = new AttachedEpisodes(folder, source, episodeBytes);
  }

  get table(): MetricTable {
    return this.metrics.table;
  }

  /**
   * Creates the run folder, with a status. `adapter` is the adapter's id; `name` replaces the name that the adapter
   * proposes.
   */
  static async create(
    workspace: string,
    source: SourceFolder,
    run: ForeignRun,
    { adapter, name }: { adapter: string; name?: string },
  ): Promise<RunFolder> {
    const config = withoutSecrets(secrets.value(run.config)) as Record<string, unknown>;
    const { trainer } = run;
    const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
      name: name ?? (run.name === '' ? trainer.name : run.name),
      config_name: trainer.name,
      overrides: [],
      config,
      config_hash: configHash(config),
      seeds: {},
      versions: trainer.version === undefined ? {} : { [trainer.name]: trainer.version },
      hardware: {},
      model: { path: '', sha256: '', parameters: 0 },
      environments: [],
      trainer: { ...trainer, adapter, source: source.path },
    };
    const folder = await RunFolder.create(workspace, about, new Date());
    // The run is shown at once; the process that follows the files replaces this status.
    await folder.writeStatus({
      ...{ state: 'running', step: 0, total_steps: run.totalSteps, success: null, success_of: 'train', reward: null },
      ...{ tokens_per_s: null, eta_s: null, phase: 'reading' satisfies FollowPhase },
      updated: new Date().toISOString(),
    });
    return folder;
  }

  /** Opens the writers of a run folder. The caller holds the run's lease. */
  static open(folder: RunFolder, source: SourceFolder, run: ForeignRun, episodeBytes: number): AttachedRun {
    return new AttachedRun(folder, source, run, episodeBytes);
  }

  /** What is not shown, in sentences. */
  get leftOut(): string[] {
    const { run, table, episodes, source, problems } = this;
    const inMetrics = run.metrics.flatMap(each => each.problems?.() ?? []);
    return [...problems.values(), ...inMetrics, ...table.limits, ...leftOutOf(source, episodes, run.rolloutFields)];
  }

  /**
   * Reads new metrics and writes them, those of a large file in parts. Returns whether there were any. Throws the reason
   * of `signal` if it is aborted meanwhile; the rows that were read are then written, and this object cannot read further.
   */
  async updateMetrics(signal?: AbortSignal): Promise<boolean> {
    let last = -1;
    const { run, table, metrics } = this;
    let [written, has] = [performance.now(), false];
    for (const source of run.metrics) {
      const seen = this.isRead ? Date.now() : (this.source.stat(source.name)?.mtimeMs ?? Date.now());
      const rename = run.rename ?? ((name: string) => name);
      const reading = source.read(row => {
        signal?.throwIfAborted();
        last = Math.max(last, row.step);
        const values: Record<string, number> = {};
        for (const [name, value] of Object.entries(row.values)) values[rename(name)] = value;
        table.merge({ ...row, values }, seen);
        if (performance.now() - written < writeMs) return;
        has = metrics.write() || has;
        written = performance.now();
      });
      this.problems.delete(source.name);
      const again = await reading.catch((error: unknown) => {
        signal?.throwIfAborted();
        this.problems.set(source.name, problemOf(error, join(this.source.root, source.name), this.folder.path));
        return false;
      });
      this.hasRestarted ||= again;
    }
    // A trainer that went back to a checkpoint repeats its steps; the later rows of its first attempt are void.
    if (this.hasRestarted && last >= 0) {
      table.cutAfter(last);
      this.hasRestarted = false;
    }
    this.isRead = true;
    return metrics.write() || has;
  }

  /**
   * Writes the metrics that are derived from the converted rollouts, and those of a diagnosis under a model. Returns
   * whether any has changed.
   */
  async updateDerived(): Promise<boolean> {
    const { episodes, metrics, folder } = this;
    const stamp = `${episodes.version} ${this.table.keys.length} ${statSync(folder.file(modelScoringFile), { throwIfNoEntry: false })?.mtimeMs}`;
    if (stamp !== this.derivedFrom) {
      const scoring = modelScoringOf(folder);
      this.model = scoring?.model;
      const { diagnoses, validations } = episodes;
      this.table.derive(derivedRows({ diagnoses, validations, scoring, logged: this.table.keys }));
      this.derivedNames = this.table.derivedNames;
    }
    this.derivedFrom = stamp;
    return metrics.writeDerived(this.model);
  }

  /** Writes the alarms, and warnings for what is not shown; called while no rollouts wait to be converted. */
  updateEvents(): void {
    this.metrics.writeAlarms();
    for (const sentence of this.leftOut) this.warn(sentence);
  }

  /** Writes the status if it has changed. `activity` says what is read, or since when there is nothing new. */
  async updateStatus(state: RunStatus['state'], phase: FollowPhase = 'following', activity?: string): Promise<void> {
    const { table, run, leftOut } = this;
    const keys = [...table.keys, ...this.derivedNames];
    const success = table.newest(keys.filter(key => /^val-env\/[^/]+\/success$/.test(key)));
    const training = table.newest(keys.filter(key => /^train\/[^/]+\/success$/.test(key)));
    const step = table.steps.at(-1) ?? 0;
    const seconds = run.stepSeconds && table.newest(run.stepSeconds);
    const left = run.totalSteps > step ? run.totalSteps - step : 0;
    const done = this.episodes.validations.reduce((sum, { episodes }) => sum + episodes, 0);
    const status: Omit<RunStatus, 'updated'> = {
      state,
      step,
      total_steps: run.totalSteps,
      ...(run.evaluation && { episodes: { done, of: Math.max(done, run.evaluation.episodes) } }),
      success: share(success ?? training),
      success_of: success === undefined ? 'train' : 'val',
      reward: table.newest(['critic/score/mean', 'val-env/charts/avg_episode_return']) ?? null,
      tokens_per_s: null, // verl's throughput is per GPU, and other trainers log none
      eta_s: state === 'running' && seconds !== undefined && left > 0 ? Math.round(left * seconds) : null,
      phase,
      ...(activity !== undefined && { activity }),
      ...(leftOut.length > 0 && { left_out: leftOut.slice(0, mostSentences) }),
    };
    const text = JSON.stringify(status);
    if (text === this.shown) return;
    this.shown = text;
    await this.folder.writeStatus({ ...status, updated: new Date().toISOString() });
  }

  /** Appends a warning to the run's events; once for texts that differ only in numbers. */
  warn(message: string): void {
    const kind = message.replace(/\d+/g, '0');
    if (this.warned.has(kind)) return;
    this.warned.add(kind);
    this.metrics.events.append({
      time: new Date().toISOString(),
      step: this.table.steps.at(-1) ?? 0,
      kind: 'warning',
      message,
    });
  }

  async close(): Promise<void> {
    await this.episodes.save();
    this.episodes.close();
    this.metrics.close();
  }
}

const share = (value: number | undefined): number | null =>
  value === undefined || value < 0 || value > 1 ? null : value;

/** A copy of a configuration in which the values of keys such as `api_key` are replaced by `***`. */
function withoutSecrets(value: unknown, depth = 0): unknown {
  if (depth > 50) return null;
  if (Array.isArray(value)) return value.map(each => withoutSecrets(each, depth + 1));
  if (!isRecord(value)) return value;
  const isSecret = (key: string): boolean => /(?:api_?key|token|secret|password)$/i.test(key);
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      isSecret(key) && typeof each === 'string' ? '***' : withoutSecrets(each, depth + 1),
    ]),
  );
}
