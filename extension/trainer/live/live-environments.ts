// The environments of a run. Their code may be edited during training. A saved edit is built, checked and loaded beside
// the running version: new episodes use the new version, and episodes in progress finish on the old version. Code that
// fails to build, type-check or load is rejected, and the old version stays in use. Events report accepted and rejected
// edits. If no file is edited, the run gives the same results with and without live editing. Build and type check are
// in environments/runtime/build.
import { relative, sep } from 'node:path';
import type { z } from 'zod';
import type {
  EnvironmentSpec,
  LoadedEnvironment,
  PreparedEnvironment,
  SourceProblem,
} from '../../protocol/environment-link';
import type {
  environmentRanSchema,
  environmentRefusedSchema,
  environmentReloadSchema,
} from '../../run-data/run-events';
import type { RunConfig } from '../config/schema';
import type { RoleSettings } from '../rewards/role-checks';
import { coverageLines } from '../loop/coverage-lines';
import { installation } from '../../node/installation';
import type { Journal } from '../run/journal';
import type { EnvironmentProcessPool } from '../../environments/client/process-pool';
import { logNotice, openEnvironments } from '../run/run-environments';
import { withComponentCheck } from '../rewards/component-check';
import { SourceWatcher, type SourceChange } from '../../node/source-watcher';
import { StoreRefusal } from '../../node/files';
import type { RunFolder } from '../store/run-folder';
import { keepEnvironment, noteCoverage } from '../store/environment-store';

/**
 * Milliseconds from the start of watching until all code is reloaded once. This reload also warms up the type checker.
 */
const warmUpMs = 2000;
/** Milliseconds after which the trainer tries again to load an edit whose code could not be written to disk. */
const retryMs = 5000;

export class LiveEnvironments {
  /** Returns the first step whose episodes may run code that is loaded now. */
  firstStepOfEdits = (): number => this.journal.status.step + 1;
  /**
   * Watched source files by tag: sources of the loaded version, files from which these sources import only types, and
   * source files of versions that failed to build.
   */
  private readonly files = new Map<string, readonly string[]>();
  /** Versions of edited code that no training episode is known to have run, by tag. */
  private readonly unran = new Map<string, Set<string>>();
  /** Errors of rejected code by tag, as JSON text. */
  private readonly refused = new Map<string, string>();
  private watcher: SourceWatcher | undefined;
  private warmUp: NodeJS.Timeout | undefined;
  private again: NodeJS.Timeout | undefined;
  /**
   * The last warning about an edit that could not be used. It is stored so that the same warning is not shown twice in
   * a row.
   */
  private unused: string | undefined;
  private waiting: SourceChange | undefined;
  private working: Promise<void> | undefined;
  private reportedUnchecked = false;
  private covering = false;
  private stopped = false;

  private constructor(
    /** Runs the environment calls of the episodes. */
    readonly pool: EnvironmentProcessPool,
    private readonly specs: readonly EnvironmentSpec[],
    private loaded: readonly LoadedEnvironment[],
    private readonly config: Pick<RunConfig, 'custom_envs' | 'workbench'> & RoleSettings,
    private readonly workspace: string,
    private readonly folder: RunFolder,
    private readonly journal: Journal,
  ) {
    for (const { tag, files } of loaded) this.files.set(tag, files);
  }

  /** Like `openEnvironments`; also stores the code in the run's folder. */
  static async open(
    config: Pick<RunConfig, 'custom_envs' | 'workbench'> & RoleSettings,
    tags: readonly string[],
    { workspace, folder, journal }: { workspace: string; folder: RunFolder; journal: Journal },
    signal?: AbortSignal,
  ): Promise<LiveEnvironments> {
    const { environments, specs, loaded } = await openEnvironments(config, tags, workspace, logNotice, signal);
    try {
      for (const environment of loaded) await journal.retryUntilWritable(() => keepEnvironment(folder, environment));
    } catch (error) {
      await environments.stop();
      throw error;
    }
    return new LiveEnvironments(environments, specs, loaded, config, workspace, folder, journal);
  }

  /** The loaded environments that new episodes use, one per tag. */
  get current(): readonly LoadedEnvironment[] {
    return this.loaded;
  }

  /** The code version of each environment by tag, for checkpoints. */
  get versions(): Record<string, string> {
    return Object.fromEntries(this.loaded.map(({ tag, version }) => [tag, version]));
  }

  /**
   * Reports each environment whose loaded version differs from its version in `versions`, which a checkpoint stored.
   */
  compareWith(versions: Readonly<Record<string, string>>): void {
    for (const { tag, version, source } of this.loaded) {
      const from = versions[tag];
      if (from === undefined || from === version) continue;
      const message = `environment ${tag} (${this.shown(source)}) has changed since the checkpoint: finished steps used version ${from}, and further steps use version ${version}`;
      this.journal.event('environment_version', message, { tag, from, to: version });
    }
  }

  /**
   * Starts to watch the sources that a user may edit. These are files in the workspace, and other files outside the
   * extension's installation.
   */
  watch(): void {
    if (this.watcher || this.watched().length === 0) return;
    this.watcher = new SourceWatcher(change => this.changed(change));
    this.follow();
    // Reloads once after the start, because edits saved before the watcher was ready cause no notification.
    this.warmUp = setTimeout(() => this.changed({ files: this.watched(), saved: Date.now() }), warmUpMs);
  }

  /**
   * Enables or disables the debugging of environment code. Returns the URLs to which a debugger can connect, on the
   * loopback interface only.
   */
  async debug(on: boolean): Promise<string[]> {
    const urls = await this.pool.debug(on);
    this.journal.update({ debugging: on || undefined });
    const message = on
      ? `environments: debugging is on (${urls.join(', ')}): training waits at breakpoints, and steps have no time limit`
      : 'environments: debugging is off, so steps have their time limit again';
    this.journal.event('environment_debug', message, { on, urls });
    return urls;
  }

  /** Starts or stops line coverage of environment code. */
  async cover(on: boolean): Promise<void> {
    if (on === this.covering) return;
    this.covering = on;
    await this.pool.cover(on);
  }

  /**
   * Reports each edit whose code the training episodes of step `step` ran first. Called when the rollout of the step
   * has finished.
   */
  noteRan(step: number, episodes: readonly { tag: string; environment: { version: string } }[]): void {
    for (const [tag, versions] of this.unran) {
      for (const version of versions) {
        if (!episodes.some(each => each.tag === tag && each.environment.version === version)) continue;
        const data: z.infer<typeof environmentRanSchema> = { tag, version, step };
        this.journal.event('environment_ran', `step ${step} ran version ${brief(version)} of environment ${tag}`, data);
        versions.delete(version);
      }
    }
  }

  /** Writes the coverage of a step's episodes, if coverage is on. */
  async noteCoverage(step: number): Promise<void> {
    if (!this.covering) return;
    for (const { version, ...line } of coverageLines(step, await this.pool.cover(true), this.loaded))
      await this.journal.retryUntilWritable(() => noteCoverage(this.folder, version, line));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.warmUp);
    clearTimeout(this.again);
    await this.watcher?.close();
    await this.pool.stop();
    await this.working;
  }

  private watchedOf(tag: string): string[] {
    const inside = (folder: string, file: string) => file.startsWith(folder + sep);
    return (this.files.get(tag) ?? []).filter(
      file =>
        !file.split(sep).includes('node_modules') && (inside(this.workspace, file) || !inside(installation.root, file)),
    );
  }

  private watched(): string[] {
    return this.specs.flatMap(({ tag }) => this.watchedOf(tag));
  }

  private follow(): void {
    // Rejected code may import a file that does not exist yet. All source files in the watched folders are therefore
    // watched.
    this.watcher?.watch(this.watched(), this.refused.size > 0);
  }

  /** Queues a reload. Changes that arrive before the reload begins are merged into one. */
  private changed({ files, saved }: SourceChange): void {
    const before = this.waiting;
    this.waiting = { files: [...new Set([...(before?.files ?? []), ...files])], saved: before?.saved ?? saved };
    if (!before) void this.inTurn(() => this.reload());
  }

  private inTurn(job: () => Promise<void>): Promise<void> {
    this.working = (this.working ?? Promise.resolve()).then(async () => {
      if (this.stopped) return;
      try {
        await job();
        this.unused = undefined;
      } catch (error) {
        // The new code could not be stored or loaded, for example because the disk is full. Training continues with the
        // loaded code. If the full disk also stops training, the journal reports the full disk.
        const message = `environments: the saved edit is not used (${(error as Error).message})`;
        if (!this.stopped && message !== this.unused) this.journal.event('warning', message);
        this.unused = message;
      }
    });
    return this.working;
  }

  private async reload(): Promise<void> {
    const change = this.waiting!;
    this.waiting = undefined;
    const concerned = this.specs.filter(
      ({ tag }) => this.refused.has(tag) || change.files.some(file => this.files.get(tag)?.includes(file)),
    );
    const prepared = await this.prepare(concerned);
    const next = prepared.flatMap(outcome => {
      const spec = concerned.find(({ tag }) => tag === outcome.tag)!;
      return 'environment' in outcome ? [{ spec, environment: outcome.environment }] : [];
    });
    try {
      for (const { environment } of next) await keepEnvironment(this.folder, environment);
    } catch (error) {
      if (error instanceof StoreRefusal) this.again = setTimeout(() => this.changed(change), retryMs);
      throw error;
    }
    if (this.stopped) return;
    const used = this.pool.use(next); // episodes that are reset from now on use the new versions
    const before = this.versions;
    const byTag = new Map(next.map(({ environment }) => [environment.tag, environment]));
    this.loaded = this.loaded.map(environment => byTag.get(environment.tag) ?? environment);
    await used;
    const ms = Math.max(0, Math.round(Date.now() - change.saved)); // measured from the file's modification time
    for (const { environment } of next) this.reportReload(environment, before[environment.tag], change.files, ms);
    this.judge(prepared);
  }

  private async prepare(specs: readonly EnvironmentSpec[]): Promise<PreparedEnvironment[]> {
    const prepared = await this.pool.prepare([...specs], this.config.workbench.check_types);
    const { unchecked } = prepared.find(outcome => outcome.unchecked !== undefined) ?? {};
    if (unchecked !== undefined && !this.reportedUnchecked) {
      this.reportedUnchecked = true;
      this.journal.event('setting', `environments: the types in environment code are not checked (${unchecked})`);
    }
    return prepared.map(outcome => withComponentCheck(outcome, this.config));
  }

  /**
   * Records for each tag whether the code on disk was rejected or accepted. Reports a rejection with new errors, and an
   * acceptance after a rejection.
   */
  private judge(prepared: readonly PreparedEnvironment[]): void {
    for (const outcome of prepared) {
      const { tag } = outcome;
      const was = this.refused.get(tag);
      if ('problems' in outcome) {
        this.files.set(tag, [...new Set([...(this.files.get(tag) ?? []), ...outcome.files])]);
        const text = JSON.stringify(outcome.problems);
        this.refused.set(tag, text);
        if (text !== was) this.reportRefusal(tag, outcome.problems);
      } else {
        this.files.set(tag, outcome.files);
        this.refused.delete(tag);
        if (was !== undefined)
          this.journal.event('environment_mended', `environment ${tag}: the code on disk is valid again and in use`, {
            tag,
          });
      }
    }
    this.follow();
  }

  private reportReload({ tag, version: to }: LoadedEnvironment, from: string, files: string[], ms: number): void {
    if (from === to) return; // only a comment or formatting changed
    const step = this.firstStepOfEdits();
    const data: z.infer<typeof environmentReloadSchema> = { tag, from, to, files, step, ms };
    const saved = files.map(file => this.shown(file)).join(', ');
    const message = `environment ${tag} changed: ${brief(from)} → ${brief(to)}, ${ms} ms after ${saved} was saved`;
    this.journal.event('environment_reload', message, data);
    this.unran.set(tag, (this.unran.get(tag) ?? new Set()).add(to));
  }

  private reportRefusal(tag: string, problems: SourceProblem[]): void {
    const version = this.versions[tag];
    const data: z.infer<typeof environmentRefusedSchema> = { tag, version, problems };
    const [{ file, line, column, message }] = problems;
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
    const first = message.split('\n', 1)[0];
    this.journal.event(
      'environment_refused',
      `environment ${tag} keeps version ${brief(version)}, because the saved code has an error: ${this.shown(file)}:${line}:${column} ${first}${more}`,
      data,
    );
  }

  private shown(file: string): string {
    return file.startsWith(this.workspace + sep) ? relative(this.workspace, file) : file;
  }
}

/** Shortens the hash of a code version for messages. */
const brief = (version: string): string => version.slice(0, 8);
