// What a watcher may ask of a running trainer: pause, resume, stop, checkpoint. The loop reads it at its gates (between turns, before
// an update, between steps), so a request is answered at once and obeyed at the next gate, never in the middle of an update.
import type { RunState } from '../protocol/run-folder';

type Waiter = { resolve: (folder: string) => void; reject: (error: Error) => void };

export class RunControl {
  private stopping = false;
  private paused = false;
  private readonly stopSignal = new AbortController();
  private wake: (() => void)[] = [];
  private checkpoints: Waiter[] = [];

  /** `onChange` hears each change of state, to be shown at once. */
  constructor(private readonly onChange: (state: RunState) => void) {}

  pause(): void {
    if (this.stopping || this.paused) return;
    this.paused = true;
    this.onChange('paused');
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.onChange('running');
    this.wakeUp();
  }

  stop(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.paused = false;
    this.onChange('stopping');
    this.stopSignal.abort();
    this.wakeUp();
  }

  /** Asks for a checkpoint at the end of the step in hand; resolves with its folder's name. */
  checkpoint(): Promise<string> {
    return new Promise((resolve, reject) => this.checkpoints.push({ resolve, reject }));
  }

  /** For work that has no gates, such as a download: aborted when the run is to stop. */
  get stopped(): AbortSignal {
    return this.stopSignal.signal;
  }

  /** What a run under this control is doing. */
  get state(): RunState {
    return this.stopping ? 'stopping' : this.paused ? 'paused' : 'running';
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

/** Thrown out of a rollout in hand when the run is asked to stop; the rollout leaves no trace. */
export class RunStopped extends Error {
  override readonly name = 'RunStopped';
}
