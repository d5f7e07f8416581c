// Requests to a running trainer: pause, resume, stop, checkpoint. A pause takes effect at the loop's gates (between
// turns and between steps). A stop also interrupts work in progress: between decoding steps, between passes, and while
// waiting for an environment.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunState } from '../../run-data/run-status-file';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { LiveView } from '../live/live-view';
import type { RequestedChange, LiveSettings } from '../live/live-settings';

/** Switches of a run's environments. */
export interface EnvironmentSwitches {
  /** Returns the URLs that a debugger may connect to. */
  debug(on: boolean): Promise<string[]>;
  cover(on: boolean): Promise<void>;
}

type Waiter = { resolve: (folder: string) => void; reject: (error: Error) => void };

export class RunControl {
  private stopping = false;
  private paused = false;
  /** Why the run paused by itself. */
  private waiting: string | undefined;
  /** Receives rollout progress; watchers subscribe to it. */
  readonly live = new LiveView();
  private readonly stopSignal = new AbortController();
  private wake: (() => void)[] = [];
  private checkpoints: Waiter[] = [];

  /** Clients that debug the environments now. */
  private readonly debuggers = new Set<object>();
  private environments: EnvironmentSwitches | undefined;
  private settings: LiveSettings | undefined;

  /** `onChange` receives each state change; `because` says why the run paused by itself. */
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
   * Pauses the run because of `sentence`, until `resumeAfterWait`. Returns after `ms`, or earlier if someone resumes
   * the run; resolves with false if the run is to stop.
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

  /** Ends a pause begun by `wait`. */
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

  /** Requests a checkpoint at the end of the current step; resolves with its folder's name. */
  checkpoint(): Promise<string> {
    return new Promise((resolve, reject) => this.checkpoints.push({ resolve, reject }));
  }

  /** Called when the environments are loaded: they can be debugged and covered from now on. */
  serveEnvironments(environments: EnvironmentSwitches): void {
    this.environments = environments;
  }

  /** Enables debugging for `who`; resolves with the URLs to connect to. Rejects before the environments are loaded. */
  async beginDebugging(who: object): Promise<string[]> {
    const environments = this.servedEnvironments();
    this.debuggers.add(who);
    return environments.debug(true);
  }

  /** Ends debugging for `who`; time limits apply again after the last one. */
  async endDebugging(who: object): Promise<void> {
    if (this.debuggers.delete(who) && this.debuggers.size === 0) await this.environments?.debug(false);
  }

  /** Starts or stops line coverage of environment code. Rejects before the environments are loaded. */
  async cover(on: boolean): Promise<void> {
    await this.servedEnvironments().cover(on);
  }

  private servedEnvironments(): EnvironmentSwitches {
    if (!this.environments) throw new Error('the environments are not loaded yet: try again in a moment');
    return this.environments;
  }

  /** Called before training begins: settings can change from now on. */
  serveSettings(settings: LiveSettings): void {
    this.settings = settings;
  }

  /**
   * Requests setting changes from the next step on; with `checkOnly` only validates them. @throws UserError if they are
   * not allowed
   */
  change(values: Readonly<Record<string, unknown>>, checkOnly: boolean): RequestedChange {
    if (!this.settings) throw new UserError('the run is not training yet: try again in a moment');
    return this.settings.request(values, checkOnly);
  }

  /** Aborts with RunStopped when the run is to stop; for work without gates, such as a download. */
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

  /** Resolves all pending checkpoint requests. */
  checkpointed(folder: string): void {
    for (const { resolve } of this.checkpoints.splice(0)) resolve(folder);
  }

  /** Rejects all pending checkpoint requests when the run ends. */
  end(): void {
    for (const { reject } of this.checkpoints.splice(0)) reject(new Error('the run ended before the checkpoint'));
  }

  /** Waits while paused; resolves with false if the run is to stop. */
  async gate(): Promise<boolean> {
    while (this.paused) await new Promise<void>(resolve => this.wake.push(resolve));
    return !this.stopping;
  }

  private wakeUp(): void {
    for (const resolve of this.wake.splice(0)) resolve();
  }
}
