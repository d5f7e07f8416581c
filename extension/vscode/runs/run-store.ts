// All runs of the workspace, kept up to date. Runs are found under `.ragen/runs` of each workspace folder by file
// watching and by polling. Polling is needed because watchers miss changes on network drives and in containers. The
// store creates the runs' readers and the connections to trainers, and disposes of them. Views subscribe to the store's
// events. Runs that a terminal or another window starts appear as well.
import { lstat, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/page-state';
import { runNames } from '../../node/read-run-file';
import { isQueuedStatus } from '../../run-data/job-record';
import { runFiles, runsFolder } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { RunReader } from '../run-files/run-reader';
import { isActive, runPhase, type RunPhase } from './run-format';
import { TrainerClient } from '../processes/trainer-client';

/**
 * Milliseconds between polls of active runs. Polling detects that a trainer has stopped renewing its lease, which
 * causes no file event. Other runs are checked only in every fifth poll.
 */
const pollMs = 1000;
const slowEvery = 5;
/**
 * Milliseconds for which changes are batched. Ten active runs send 100 status updates per second, and each change event
 * redraws all views.
 */
const batchMs = 200;

/** One run: its state, and access to its data and its trainer. */
export interface Run {
  readonly folder: string;
  readonly reader: RunReader;
  readonly summary: RunSummary;
  /** Set while the trainer is alive and the workspace is trusted. */
  readonly trainer: TrainerClient | undefined;
}

/** Workspace folder of a run: `<workspace>/.ragen/runs/<id>`. */
export const workspaceOf = (run: Run): string => dirname(dirname(dirname(run.folder)));

interface Entry {
  reader: RunReader;
  summary?: RunSummary;
  shown: string;
  /** The last reported problem of the run's manifest or status. */
  problem?: string;
  trainer?: TrainerClient;
  refreshing?: Promise<void>;
}

export interface RunPhaseChange {
  run: Run;
  from: RunPhase;
  to: RunPhase;
}

export class RunStore implements vscode.Disposable {
  private readonly entries = new Map<string, Entry>();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly touched = new vscode.EventEmitter<string>();
  private readonly moved = new vscode.EventEmitter<RunPhaseChange>();
  private readonly deleted = new vscode.EventEmitter<string>();
  private ticks = 0;
  private notifying: NodeJS.Timeout | undefined;
  private watchers: vscode.Disposable[] = [];

  /** Fires when the list of runs or the summary of a run changed. */
  readonly onDidChange = this.changed.event;
  /** Fires with the path of a run folder whose files may have grown. */
  readonly onDidTouch = this.touched.event;
  /** Fires when a run's phase changed while this window was open. */
  readonly onDidMove = this.moved.event;
  /** Fires with the path of a run folder that was deleted, by this window or by another program. */
  readonly onDidDelete = this.deleted.event;

  /**
   * Resolves after the first scan of the workspace folders. A command that activates the extension can run before the
   * first scan.
   */
  get scanned(): Promise<void> {
    return this.scanning;
  }
  private scanning: Promise<void> = Promise.resolve();

  constructor(private readonly log: vscode.LogOutputChannel) {
    const timer = setInterval(() => void this.tick(), pollMs);
    this.disposables.push(this.changed, this.touched, this.moved, this.deleted, {
      dispose: () => clearInterval(timer),
    });
    this.disposables.push(vscode.workspace.onDidChangeWorkspaceFolders(() => this.watch()));
    this.disposables.push(vscode.workspace.onDidGrantWorkspaceTrust(() => void this.scan()));
    this.watch();
  }

  /** All runs, newest first. */
  get runs(): Run[] {
    const runs: Run[] = [];
    for (const [folder, { reader, summary, trainer }] of this.entries)
      if (summary) runs.push({ folder, reader, summary, trainer });
    return runs.sort((a, b) =>
      a.summary.created < b.summary.created ? 1 : a.summary.created > b.summary.created ? -1 : 0,
    );
  }

  /** Run folders with an unusable manifest, each with the reason, sorted by path. */
  get damaged(): { folder: string; reason: string }[] {
    return [...this.entries]
      .flatMap(([folder, { summary, problem }]) =>
        !summary && problem !== undefined ? { folder, reason: problem } : [],
      )
      .sort((a, b) => (a.folder < b.folder ? 1 : -1));
  }

  get(folder: string): Run | undefined {
    const entry = this.entries.get(folder);
    return entry?.summary && { folder, reader: entry.reader, summary: entry.summary, trainer: entry.trainer };
  }

  /**
   * Reads the run in a folder immediately instead of at the next poll. Used for runs that were just started or changed
   * and for runs that the store has not found yet. Returns undefined if the folder contains no run.
   */
  async find(folder: string): Promise<Run | undefined> {
    if (!this.roots().some(root => isInside(root, folder)) || (await isLink(folder))) return undefined;
    await this.refresh(folder);
    return this.get(folder);
  }

  /**
   * Returns the connection to a run's trainer. Throws a UserError if no trainer is alive or the workspace is untrusted.
   */
  trainer(run: Run): TrainerClient {
    if (run.summary.trainer)
      throw new UserError(
        `run ${run.summary.name} belongs to ${run.summary.trainer.name}, which RAGEN Workbench cannot control: control it with ${run.summary.trainer.name}`,
      );
    if (isQueuedStatus(run.summary.status) && run.summary.job)
      throw new UserError(
        `run ${run.summary.name} is queued on ${run.summary.job.address} and has no trainer yet: wait for its job, or stop the run`,
      );
    const trainer = this.entries.get(run.folder)?.trainer;
    if (trainer) return trainer;
    throw new UserError(
      vscode.workspace.isTrusted
        ? `run ${run.summary.name} has no running trainer: resume the run`
        : `run ${run.summary.name} cannot be controlled, because the workspace is not trusted: trust the workspace first`,
    );
  }

  dispose(): void {
    clearTimeout(this.notifying);
    for (const { trainer } of this.entries.values()) trainer?.dispose();
    for (const disposable of [...this.watchers, ...this.disposables]) disposable.dispose();
  }

  private notify(): void {
    this.notifying ??= setTimeout(() => {
      this.notifying = undefined;
      this.changed.fire();
    }, batchMs);
  }

  private roots(): string[] {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return folders.filter(folder => folder.uri.scheme === 'file').map(folder => join(folder.uri.fsPath, runsFolder));
  }

  private watch(): void {
    for (const watcher of this.watchers) watcher.dispose();
    const { manifest, status, metrics, events, labels, notes } = runFiles;
    const names = [manifest, status, metrics, events, labels, notes].join(',');
    this.watchers = (vscode.workspace.workspaceFolders ?? []).map(folder => {
      const watcher = vscode.workspace.createFileSystemWatcher(
        new vscode.RelativePattern(folder, `${runsFolder}/*/{${names}}`),
      );
      const see = (uri: vscode.Uri) => void this.refresh(join(uri.fsPath, '..'));
      watcher.onDidCreate(see);
      watcher.onDidChange(see);
      watcher.onDidDelete(see);
      return watcher;
    });
    this.scanning = this.scan().catch(() => undefined); // the next poll tries again
  }

  private async tick(): Promise<void> {
    if (this.ticks++ % slowEvery === 0) return this.scan();
    const active = [...this.entries].filter(([, { summary }]) => summary && isActive(summary));
    await Promise.all(active.map(([folder]) => this.refresh(folder)));
  }

  private async scan(): Promise<void> {
    const found = await Promise.all(
      this.roots().map(async root => (await runNames(root)).map(name => join(root, name))),
    );
    const folders = new Set(found.flat());
    for (const folder of this.entries.keys()) if (!folders.has(folder)) this.drop(folder);
    await Promise.all([...folders].map(folder => this.refresh(folder)));
  }

  /** Reads a run's state again. Concurrent calls share one read. */
  private async refresh(folder: string): Promise<void> {
    const entry: Entry = this.entries.get(folder) ?? { reader: new RunReader(folder), shown: '' };
    this.entries.set(folder, entry);
    entry.refreshing ??= this.read(folder, entry).finally(() => (entry.refreshing = undefined));
    await entry.refreshing;
  }

  private async read(folder: string, entry: Entry): Promise<void> {
    const isRun = await entry.reader.refresh();
    if (!isRun && entry.reader.problem === undefined) return this.drop(folder);
    if (entry.problem !== entry.reader.problem) {
      entry.problem = entry.reader.problem;
      this.notify();
    }
    if (!isRun) return;
    this.publish(folder, entry);
    this.touched.fire(folder);
  }

  private publish(folder: string, entry: Entry): void {
    const summary = entry.reader.summary;
    if (!summary || this.entries.get(folder) !== entry) return;
    const [before, shown] = [entry.summary, JSON.stringify(summary)];
    entry.summary = summary;
    if (summary.live && !summary.trainer && vscode.workspace.isTrusted)
      entry.trainer ??= this.connect(folder, entry, summary.name);
    else if (entry.trainer) entry.trainer = void entry.trainer.dispose();
    if (shown === entry.shown) return;
    entry.shown = shown;
    this.notify();
    const run = { folder, reader: entry.reader, summary, trainer: entry.trainer };
    if (before && runPhase(before) !== runPhase(summary))
      this.moved.fire({ run, from: runPhase(before), to: runPhase(summary) });
  }

  private connect(folder: string, entry: Entry, name: string): TrainerClient {
    return new TrainerClient(name, folder, () => entry.reader.lease(), {
      status: status => {
        entry.reader.report(status);
        this.publish(folder, entry);
      },
      appended: () => this.touched.fire(folder),
      event: () => this.touched.fire(folder),
      problem: message => this.log.debug(`${basename(folder)}: connection to the trainer: ${message}`),
    });
  }

  private drop(folder: string): void {
    const entry = this.entries.get(folder);
    this.entries.delete(folder);
    entry?.trainer?.dispose();
    if (entry?.problem !== undefined) this.notify();
    if (!entry?.summary) return;
    this.notify();
    void isGone(folder).then(gone => gone && this.deleted.fire(folder));
  }
}

/**
 * Returns whether a run folder is gone or disappears within a few seconds. Returns false if the parent folder is gone
 * as well: the drive was then disconnected, and the run was not deleted.
 */
async function isGone(folder: string): Promise<boolean> {
  const there = (path: string): Promise<boolean> =>
    stat(path).then(
      () => true,
      () => false,
    );
  for (let look = 0; look < 5; look++) {
    if (!(await there(folder))) return there(dirname(folder));
    await sleep(pollMs); // a deletion in progress may remove the manifest before the folder
  }
  return false;
}

/** Whether a run folder is a link. The list of runs excludes links too. */
const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isSymbolicLink(),
    () => false,
  );

function isInside(root: string, folder: string): boolean {
  const path = relative(root, folder);
  return path !== '' && !path.startsWith('..') && !/[\\/]/.test(path);
}
