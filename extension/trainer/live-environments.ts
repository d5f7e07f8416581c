// The environments of a run, whose code may be edited while it trains. A save is built, checked and loaded beside what runs; episodes
// that start from then on use it, running ones end on the old version. Code that does not build, whose types do not fit or that does
// not load changes nothing: the old version goes on. All of it is told in events. A run without edits is as if nothing watched it.
import { relative, sep } from 'node:path';
import type { z } from 'zod';
import type {
  EnvironmentSpec,
  LoadedEnvironment,
  PreparedEnvironment,
  SourceProblem,
} from '../protocol/environment-link';
import type { environmentRefusedSchema, environmentReloadSchema } from '../protocol/run-folder';
import type { RunConfig } from './config/schema';
import { coverageLines } from './coverage-lines';
import { installation } from './installation';
import type { Journal } from './journal';
import type { EnvironmentProcesses } from './rollout/environment-processes';
import { logNotice, openEnvironments } from './run-environments';
import { SourceWatcher, type SourceChange } from './source-watcher';
import { StoreRefusal } from './store/files';
import type { RunFolder } from './store/run-folder';

/** Milliseconds after its start at which a run readies the type checker by looking at the code as it is. */
const warmUpMs = 2000;
/** Milliseconds until an edit is tried again whose code the disk did not take. */
const retryMs = 5000;

export class LiveEnvironments {
  /** Sources by tag, as far as they are known: the built ones, those that hold types alone, those that do not build now. */
  private readonly files = new Map<string, readonly string[]>();
  /** Problems by tag of the code on disk, as text. */
  private readonly refused = new Map<string, string>();
  private watcher: SourceWatcher | undefined;
  private warmUp: NodeJS.Timeout | undefined;
  private again: NodeJS.Timeout | undefined;
  /** Why what was saved last is not used, as it was told. */
  private unused: string | undefined;
  private waiting: SourceChange | undefined;
  private working: Promise<void> | undefined;
  private toldUnchecked = false;
  private covering = false;
  private stopped = false;

  private constructor(
    /** Answers for the episodes. */
    readonly pool: EnvironmentProcesses,
    private readonly specs: readonly EnvironmentSpec[],
    private loaded: readonly LoadedEnvironment[],
    private readonly settings: Pick<RunConfig['workbench'], 'check_types'>,
    private readonly workspace: string,
    private readonly folder: RunFolder,
    private readonly journal: Journal,
  ) {
    for (const { tag, files } of loaded) this.files.set(tag, files);
  }

  /** As `openEnvironments`; the code is kept in the run's folder. */
  static async open(
    config: Pick<RunConfig, 'custom_envs' | 'workbench'>,
    tags: readonly string[],
    { workspace, folder, journal }: { workspace: string; folder: RunFolder; journal: Journal },
    signal?: AbortSignal,
  ): Promise<LiveEnvironments> {
    const { environments, specs, loaded } = await openEnvironments(config, tags, workspace, logNotice, signal);
    try {
      for (const environment of loaded) await journal.insist(() => folder.keepEnvironment(environment));
    } catch (error) {
      await environments.stop();
      throw error;
    }
    return new LiveEnvironments(environments, specs, loaded, config.workbench, workspace, folder, journal);
  }

  /** What episodes that start now run, one a tag. */
  get current(): readonly LoadedEnvironment[] {
    return this.loaded;
  }

  /** Versions by tag, for checkpoints. */
  get versions(): Record<string, string> {
    return Object.fromEntries(this.loaded.map(({ tag, version }) => [tag, version]));
  }

  /** Tells which environments are no more what the steps before a checkpoint ran. */
  compareWith(versions: Readonly<Record<string, string>>): void {
    for (const { tag, version, source } of this.loaded) {
      const from = versions[tag];
      if (from === undefined || from === version) continue;
      const message = `environment ${tag} (${this.shown(source)}) is not what the checkpoint's steps ran: ${from} then, ${version} now`;
      this.journal.event('environment_version', message, { tag, from, to: version });
    }
  }

  /** Follows the sources that a user edits: those in the workspace, and others that did not come with the extension. */
  watch(): void {
    if (this.watcher || this.watched().length === 0) return;
    this.watcher = new SourceWatcher(change => this.changed(change));
    this.follow();
    // What was saved before the watcher was ready is found then, too.
    this.warmUp = setTimeout(() => this.changed({ files: this.watched(), saved: Date.now() }), warmUpMs);
  }

  /** Lets a debugger halt environment code, or takes that back; gives the URLs that one may connect to, on the loopback alone. */
  async debug(on: boolean): Promise<string[]> {
    const urls = await this.pool.debug(on);
    this.journal.update({ debugging: on || undefined });
    const message = on
      ? `environments: a debugger may halt them (${urls.join(', ')}): training waits where one does, and no step has a time limit`
      : 'environments: the debugger has left: steps have their time limit again';
    this.journal.event('environment_debug', message, { on, urls });
    return urls;
  }

  /** Has the lines counted that episodes reach from their start on, or no more. */
  async cover(on: boolean): Promise<void> {
    if (on === this.covering) return;
    this.covering = on;
    await this.pool.cover(on);
  }

  /** Writes down what the episodes of a step reached, where that is counted. */
  async noteCoverage(step: number): Promise<void> {
    if (!this.covering) return;
    for (const { version, ...line } of coverageLines(step, await this.pool.cover(true), this.loaded))
      await this.journal.insist(() => this.folder.noteCoverage(version, line));
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
    // What a refused file lacks may be a file that nobody knows yet.
    this.watcher?.watch(this.watched(), this.refused.size > 0);
  }

  /** Changes that come while some are worked on are worked on together after them. */
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
        // A full disk, say. Training goes on with the code that it has; where it cannot, it tells so itself.
        const message = `environments: what was saved is not used (${(error as Error).message})`;
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
      for (const { environment } of next) await this.folder.keepEnvironment(environment);
    } catch (error) {
      if (error instanceof StoreRefusal) this.again = setTimeout(() => this.changed(change), retryMs);
      throw error;
    }
    if (this.stopped) return;
    const used = this.pool.use(next); // episodes reset from here on run it, and are told so by `current`
    const before = this.versions;
    const byTag = new Map(next.map(({ environment }) => [environment.tag, environment]));
    this.loaded = this.loaded.map(environment => byTag.get(environment.tag) ?? environment);
    await used;
    const ms = Math.max(0, Math.round(Date.now() - change.saved)); // by the file's own time
    for (const { environment } of next) this.tellReload(environment, before[environment.tag], change.files, ms);
    this.judge(prepared);
  }

  private async prepare(specs: readonly EnvironmentSpec[]): Promise<PreparedEnvironment[]> {
    const prepared = await this.pool.prepare([...specs], this.settings.check_types);
    const { unchecked } = prepared.find(outcome => outcome.unchecked !== undefined) ?? {};
    if (unchecked !== undefined && !this.toldUnchecked) {
      this.toldUnchecked = true;
      this.journal.event('setting', `environments: their types are not checked (${unchecked})`);
    }
    return prepared;
  }

  /** Tells which tags' code on disk is refused, and which is mended. */
  private judge(prepared: readonly PreparedEnvironment[]): void {
    for (const outcome of prepared) {
      const { tag } = outcome;
      const was = this.refused.get(tag);
      if ('problems' in outcome) {
        this.files.set(tag, [...new Set([...(this.files.get(tag) ?? []), ...outcome.files])]);
        const text = JSON.stringify(outcome.problems);
        this.refused.set(tag, text);
        if (text !== was) this.tellRefusal(tag, outcome.problems);
      } else {
        this.files.set(tag, outcome.files);
        this.refused.delete(tag);
        if (was !== undefined)
          this.journal.event('environment_mended', `environment ${tag}: the code on disk is the code that runs`, { tag }); // prettier-ignore
      }
    }
    this.follow();
  }

  private tellReload({ tag, version: to }: LoadedEnvironment, from: string, files: string[], ms: number): void {
    if (from === to) return; // a comment, or a line moved
    const step = this.journal.status.step + 1;
    const data: z.infer<typeof environmentReloadSchema> = { tag, from, to, files, step, ms };
    const saved = files.map(file => this.shown(file)).join(', ');
    const message = `environment ${tag} changed: ${brief(from)} → ${brief(to)}, ${ms} ms after ${saved} was saved`;
    this.journal.event('environment_reload', message, data);
  }

  private tellRefusal(tag: string, problems: SourceProblem[]): void {
    const version = this.versions[tag];
    const data: z.infer<typeof environmentRefusedSchema> = { tag, version, problems };
    const [{ file, line, column, message }] = problems;
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
    const first = message.split('\n', 1)[0];
    this.journal.event(
      'environment_refused',
      `environment ${tag} goes on as ${brief(version)}: ${this.shown(file)}:${line}:${column} ${first}${more}`,
      data,
    );
  }

  private shown(file: string): string {
    return file.startsWith(this.workspace + sep) ? relative(this.workspace, file) : file;
  }
}

/** As much of a version as one reads. */
const brief = (version: string): string => version.slice(0, 8);
