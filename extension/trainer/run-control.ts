// What a watcher may ask of a running trainer: pause, resume, stop, checkpoint. A pause is obeyed at the loop's gates (between turns and
// between steps). A stop also ends what is in hand: between two steps of decoding, between two passes, while an environment is waited for.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunState } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { RunStopped } from './engine/run-stopped';
import { LiveView } from './live-view';
import type { AskedChange, LiveSettings } from './live-settings';

/** What can be switched on and off at the environments of a run. */
export interface EnvironmentSwitches {
  /** Gives the URLs that a debugger may connect to. */
  debug(on: boolean): Promise<string[]>;
  cover(on: boolean): Promise<void>;
}

type Waiter = { resolve: (folder: string) => void; reject: (error: Error) => void };

export class RunControl {
  private stopping = false;
  private paused = false;
  /** Why the run waits by itself. */
  private waiting: string | undefined;
  /** Told of what is played, and asked by whoever watches it. */
  readonly live = new LiveView();
  private readonly stopSignal = new AbortController();
  private wake: (() => void)[] = [];
  private checkpoints: Waiter[] = [];

  /** Who wants to debug the environments now. */
  private readonly debuggers = new Set<object>();
  private environments: EnvironmentSwitches | undefined;
  private settings: LiveSettings | undefined;

  /** `onChange` hears each change of state, to be shown at once; with a sentence that says why where the run paused by itself. */
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
   * What the run does cannot be done now: it counts as paused, because of `sentence`, until `goOn`. Returns after `ms`, or sooner where
   * somebody resumes it; false when it is to stop.
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

  /** What the run waited for is there. */
  goOn(): void {
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

  /** Asks for a checkpoint at the end of the step in hand; resolves with its folder's name. */
  checkpoint(): Promise<string> {
    return new Promise((resolve, reject) => this.checkpoints.push({ resolve, reject }));
  }

  /** The environments are there: from now on they may be debugged and looked at. */
  serveEnvironments(environments: EnvironmentSwitches): void {
    this.environments = environments;
  }

  /** Lets a debugger to the environments for `who`; resolves with where it may connect. Rejects before there are environments. */
  async beginDebugging(who: object): Promise<string[]> {
    const environments = this.servedEnvironments();
    this.debuggers.add(who);
    return environments.debug(true);
  }

  /** `who` debugs no more; time limits come back with the last. */
  async endDebugging(who: object): Promise<void> {
    if (this.debuggers.delete(who) && this.debuggers.size === 0) await this.environments?.debug(false);
  }

  /** Has the lines of environment code counted that episodes reach, or no more. Rejects before there are environments. */
  async cover(on: boolean): Promise<void> {
    await this.servedEnvironments().cover(on);
  }

  private servedEnvironments(): EnvironmentSwitches {
    if (!this.environments) throw new Error('the environments are not loaded yet: try again in a moment');
    return this.environments;
  }

  /** Training is about to begin: from now on its settings may change. */
  serveSettings(settings: LiveSettings): void {
    this.settings = settings;
  }

  /** Asks for settings to change from the next step on, or whether they could. Throws a UserError where they cannot. */
  change(values: Readonly<Record<string, unknown>>, checkOnly: boolean): AskedChange {
    if (!this.settings) throw new UserError('the run is not training yet: try again in a moment');
    return this.settings.ask(values, checkOnly);
  }

  /** For work that has no gates, such as a download: aborted, with RunStopped, when the run is to stop. */
  get stopped(): AbortSignal {
    return this.stopSignal.signal;
  }

  /** What a run under this control is doing. */
  get state(): RunState {
    return this.stopping ? 'stopping' : this.paused || this.waiting !== undefined ? 'paused' : 'running';
  }

  get checkpointRequested(): boolean {
    return this.checkpoints.length > 0;
  }

  /** Answers everybody who asked for a checkpoint. */
  checkpointed(folder: string): void {
    for (const { resolve } of this.checkpoints.splice(0)) resolve(folder);
  }

  /** The run ends: nobody is left waiting. */
  end(): void {
    for (const { reject } of this.checkpoints.splice(0)) reject(new Error('the run ended before the checkpoint'));
  }

  /** Waits while paused; false when the run is to stop. */
  async gate(): Promise<boolean> {
    while (this.paused) await new Promise<void>(resolve => this.wake.push(resolve));
    return !this.stopping;
  }

  private wakeUp(): void {
    for (const resolve of this.wake.splice(0)) resolve();
  }
}
