// Handles requests to a running trainer: pause, resume, stop, checkpoint. A pause takes effect between turns and
// between steps. A stop takes effect earlier: between decoding steps, between passes, or during an environment call.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunState } from '../../run-data/run-status-file';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { LiveView } from '../live/live-view';
import type { RequestedChange, PendingSettings } from '../live/pending-settings';

/** Debugging and coverage of a run's environments. */
export interface EnvironmentSwitches {
  /** Enables or disables debugging; returns the URLs to which a debugger can connect. */
  debug(on: boolean): Promise<string[]>;
  cover(on: boolean): Promise<void>;
}

type Waiter = { resolve: (folder: string) => void; reject: (error: Error) => void };

export class RunControl {
  private stopping = false;
  private paused = false;
  /** Reason for the current pause if `wait` began it; otherwise undefined. */
  private waiting: string | undefined;
  /** Receives the rollout's progress and sends it to watchers. */
  readonly live = new LiveView();
  private readonly stopSignal = new AbortController();
  private wake: (() => void)[] = [];
  private checkpoints: Waiter[] = [];

  /** Clients that have enabled debugging. */
  private readonly debuggers = new Set<object>();
  private environments: EnvironmentSwitches | undefined;
  private settings: PendingSettings | undefined;

  /** @param onChange receives each state change; `because` gives the reason if `wait` began a pause */
  constructor(private readonly onChange: (state: RunState, because?: string) => void) {}

  pause(): void {
    if (this.stopping || this.paused) return;
    this.paused = true;
    if (this.waiting === undefined) this.onChange('paused');
  }

  resume(): void {
    if (!this.paused && this.waiting === undefined) return;
    const changes = this.paused && this.waiting === undefined;
    this.paused = false;
    if (changes) this.onChange('running');
    this.wakeUp();
  }

  /**
   * Pauses the run and shows `sentence` as the reason. The run stays paused until `resumeAfterWait` is called, but the
   * returned promise already resolves after `ms` milliseconds, or earlier if the user resumes or stops the run. The
   * promise resolves with false if the run is to stop.
   */
  async wait(sentence: string, ms: number): Promise<boolean> {
    if (this.stopping) return false;
    if (this.waiting === undefined) this.onChange('paused', sentence);
    this.waiting = sentence;
    const over = new AbortController();
    const timer = sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([timer, new Promise<void>(resolve => this.wake.push(resolve))]);
    over.abort();
    return !this.stopping;
  }

  /** Ends a pause that `wait` began. */
  resumeAfterWait(): void {
    if (this.waiting === undefined) return;
    this.waiting = undefined;
    this.onChange(this.state);
  }

  stop(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.paused = false;
    this.waiting = undefined;
    this.onChange('stopping');
    this.stopSignal.abort(new RunStopped());
    this.wakeUp();
  }

  /** Requests a checkpoint at the end of the current step. Resolves with the name of the checkpoint's folder. */
  checkpoint(): Promise<string> {
    return new Promise((resolve, reject) => this.checkpoints.push({ resolve, reject }));
  }

  /** From now on, accepts requests for debugging and coverage. Called after the environments are loaded. */
  serveEnvironments(environments: EnvironmentSwitches): void {
    this.environments = environments;
  }

  /**
   * Enables debugging for the client `who`. Resolves with the URLs to connect to; rejects if the environments are not
   * loaded.
   */
  async beginDebugging(who: object): Promise<string[]> {
    const environments = this.servedEnvironments();
    this.debuggers.add(who);
    return environments.debug(true);
  }

  /**
   * Ends debugging for the client `who`. Once no client has debugging enabled, environment calls have time limits
   * again.
   */
  async endDebugging(who: object): Promise<void> {
    if (this.debuggers.delete(who) && this.debuggers.size === 0) await this.environments?.debug(false);
  }

  /** Starts or stops line coverage of environment code. Rejects if the environments are not loaded. */
  async cover(on: boolean): Promise<void> {
    await this.servedEnvironments().cover(on);
  }

  private servedEnvironments(): EnvironmentSwitches {
    if (!this.environments) throw new Error('the environments are not loaded yet: try again in a moment');
    return this.environments;
  }

  /** From now on, accepts changes of settings. Called before training begins. */
  serveSettings(settings: PendingSettings): void {
    this.settings = settings;
  }

  /**
   * Requests changes of settings, which apply from the next step on. With `checkOnly`, the changes are only validated.
   * @throws UserError if a change is not allowed
   */
  change(values: Readonly<Record<string, unknown>>, checkOnly: boolean): RequestedChange {
    if (!this.settings) throw new UserError('the run is not training yet: try again in a moment');
    return this.settings.request(values, checkOnly);
  }

  /**
   * Signal that aborts with RunStopped when the run is to stop; for work that does not call `gate`, such as a download.
   */
  get stopped(): AbortSignal {
    return this.stopSignal.signal;
  }

  /** The run's state as shown to the user. */
  get state(): RunState {
    return this.stopping ? 'stopping' : this.paused || this.waiting !== undefined ? 'paused' : 'running';
  }

  get checkpointRequested(): boolean {
    return this.checkpoints.length > 0;
  }

  /** Resolves all pending checkpoint requests with the folder's name. */
  checkpointed(folder: string): void {
    for (const { resolve } of this.checkpoints.splice(0)) resolve(folder);
  }

  /** Rejects all pending checkpoint requests; called when the run ends. */
  end(): void {
    for (const { reject } of this.checkpoints.splice(0))
      reject(new Error('the run ended before the requested checkpoint was written'));
  }

  /** Blocks while the run is paused. Resolves with false if the run is to stop. */
  async gate(): Promise<boolean> {
    while (this.paused) await new Promise<void>(resolve => this.wake.push(resolve));
    return !this.stopping;
  }

  private wakeUp(): void {
    for (const resolve of this.wake.splice(0)) resolve();
  }
}
