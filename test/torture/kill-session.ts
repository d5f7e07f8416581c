// One session of a run under test: starts the trainer with points.ts preloaded, tracks its phase, and kills the
// trainer, its environment process or both (SIGKILL, from this process) at the moments given by its cards. A timer
// triggers kills during generation, update and swap. Kills during save, log and swap may also be triggered before,
// during or after a file-system call, at which the trainer is paused.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { explainExit } from '../../extension/common/process-exit';
import { runFiles } from '../../extension/run-data/run-file-names';
import { installation } from '../../extension/node/installation';
import { isAlive, statusOf } from '../support/terminal';

export const phases = ['generation', 'update', 'save', 'log', 'swap'] as const;
export type Phase = (typeof phases)[number];
export const targets = ['trainer', 'environment', 'both'] as const;
export type Target = (typeof targets)[number];

/**
 * Phases in which the trainer can be paused at a file-system call, by the file's location: `save` in checkpoints/,
 * `swap` in environments/, `log` elsewhere in the run folder.
 */
export type HeldPhase = 'save' | 'log' | 'swap';

/**
 * A pause at the nth call of a phase, counted from the start of the trainer or of the stage. `during` pauses in the
 * middle of a write, or while another call is in progress.
 */
export interface Hold {
  phase: HeldPhase;
  nth: number;
  how: 'before' | 'during' | 'after';
  ms: number;
}

/** Input of points.ts: the run's folder, and a pause for each stage (null for none). */
export interface Orders {
  folder: string;
  holds: (Hold | null)[];
}

/** Messages from points.ts. */
export type Report =
  | { kind: 'engine'; method: string }
  | { kind: 'environment'; pid: number }
  /** `prepare`: an edit is being prepared. `use`: episodes that start from now on use the edit. */
  | { kind: 'swap'; method: 'prepare' | 'use' }
  | { kind: 'call'; phase: HeldPhase; name: string; file: string }
  | { kind: 'held'; phase: HeldPhase; name: string; file: string; how: Hold['how'] }
  /** Reported at the first checkpoint after the environment process died and was restarted. */
  | { kind: 'stage'; stage: number };

/** A planned kill. */
export interface Card {
  phase: Phase;
  target: Target;
  /** Occurrence of the phase within its stage, from 1; for a swap, the occurrence of the generation. */
  occurrence: number;
  /** Moment of the kill within the phase, from 0 to 1; for a swap, the moment when the edit is saved. */
  share: number;
  /**
   * Moment of the kill within a swap, from 0 to 1. The first half is the preparation of the code; in the second half,
   * episodes of the old code end.
   */
  swapShare: number;
  /** Selects one of the observed durations as the expected duration, from 0 to 1. */
  pick: number;
  hold: Hold | null;
  trainerFirst: boolean;
}

/** A completed kill. */
export interface Struck {
  card: Card;
  /** The trainer's phase at the kill. */
  phase: Phase;
  where: string;
}

/** Milliseconds of each occurrence of a phase; a swap ends when the new code is first used. */
export type Durations = Record<'generation' | 'update' | 'save' | 'swap', number[]>;

export interface KillSessionOptions {
  run: string;
  workspace: string;
  resume: boolean;
  /** Path of the built points.ts. */
  preload: string;
  /** At most one card per stage; all cards except the last kill only the environment process. */
  cards: readonly Card[];
  /** Observed durations of phases in milliseconds. */
  durations: Durations;
  /** Edits the environment's source into a new version with the same behaviour. */
  edit(): void;
}

export interface KillSession {
  end: 'killed' | 'finished';
  struck: Struck[];
  /** Cards whose moment did not occur. */
  unplayed: Card[];
  /** Durations of the phases in milliseconds. */
  durations: Durations;
  calls: Record<HeldPhase, number>;
}

/** The phase that a message to the engine starts. */
const engineMethods: Readonly<Record<string, 'generation' | 'update' | 'save'>> = {
  generate: 'generation',
  ...{ score: 'update', values: 'update', update: 'update', updateCritic: 'update' },
  state: 'save',
};

/** Timeout of a session in milliseconds, many times the duration of these small runs. */
const timeoutMs = 120_000;

/** Maximum seconds until an edit takes effect, even if processes die in between. */
const swapTimeout = 30;

/** Runs one session to its end. @throws if the trainer hangs, or ends neither by a planned kill nor by its last step */
export async function sit(options: KillSessionOptions): Promise<KillSession> {
  const seat = new Seat(options);
  return seat.outcome();
}

class Seat {
  private readonly trainer: ChildProcess;
  private readonly struck: Struck[] = [];
  private readonly durations: Durations = { generation: [], update: [], save: [], swap: [] };
  private readonly calls: Record<HeldPhase, number> = { save: 0, log: 0, swap: 0 };
  private readonly environments = new Set<number>();
  private readonly timers: NodeJS.Timeout[] = [];
  private phase: 'generation' | 'update' | 'save' | undefined;
  private phaseBegan = 0;
  private occurrences: Record<string, number> = {};
  private stage = 0;
  /**
   * The edit of this stage, with the times at which it was saved, prepared and first used, and the generation of that
   * use.
   */
  private edit: { saved: number; prepared?: number; used?: number; usedIn?: number } | undefined;
  private killed = false;

  constructor(private readonly options: KillSessionOptions) {
    const { run, workspace, resume, preload, cards } = options;
    const log = openSync(join(run, runFiles.log), 'a');
    const orders: Orders = { folder: run, holds: cards.map(({ hold }) => hold) };
    this.trainer = spawn(
      process.execPath,
      [
        ...['--require', preload, installation.trainer, '--run', run, '--workspace', workspace],
        ...(resume ? ['--resume'] : []),
      ],
      {
        cwd: workspace,
        stdio: ['ignore', 'ignore', log, 'pipe'],
        env: { ...process.env, ORT_DISABLE_TELEMETRY: '1', RAGEN_TORTURE: JSON.stringify(orders) },
      },
    );
    closeSync(log);
    let text = '';
    (this.trainer.stdio[3] as Readable).setEncoding('utf8').on('data', (part: string) => {
      const lines = (text + part).split('\n');
      text = lines.pop()!;
      for (const line of lines) this.receive(JSON.parse(line) as Report);
    });
  }

  async outcome(): Promise<KillSession> {
    const { run, cards } = this.options;
    const late = setTimeout(() => this.trainer.kill('SIGKILL'), timeoutMs);
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>(resolve =>
      this.trainer.once('close', (...end) => resolve(end)),
    );
    clearTimeout(late);
    for (const timer of this.timers) clearTimeout(timer);
    for (const deadline = Date.now() + 5000; [...this.environments].some(isAlive); await sleep(10))
      if (Date.now() > deadline) throw new Error('an environment process still runs 5 s after its trainer');
    const seconds = this.edit ? (performance.now() - this.edit.saved) / 1000 : 0;
    if (seconds > swapTimeout && this.edit?.used === undefined)
      throw new Error(`an edit saved ${seconds.toFixed(1)} s before the trainer's end never came into effect`);
    const finished = code === 0 && statusOf(run)?.state === 'finished';
    if (this.killed && finished)
      this.struck.pop(); // the process ended before the kill
    else if (this.killed ? signal !== 'SIGKILL' : !finished) throw new Error(this.otherEnd(code, signal));
    return {
      end: finished ? 'finished' : 'killed',
      struck: this.struck,
      unplayed: cards.slice(this.struck.length),
      durations: this.durations,
      calls: this.calls,
    };
  }

  /** Describes how the trainer ended, or the phase in which it hangs. */
  private otherEnd(code: number | null, signal: NodeJS.Signals | null): string {
    const status = statusOf(this.options.run);
    const how = signal === 'SIGKILL' ? `did not end in ${timeoutMs / 1000} s` : explainExit(code, signal);
    const kills = this.struck.map(({ card, where }) => `${card.target} killed ${where}`).join(', ') || 'no kill';
    return `the trainer ${how} in step ${status?.step}, ${status?.phase}, after ${kills}: ${status?.error ?? 'no error reported'}`;
  }

  /** The next card if its stage has been reached, otherwise undefined. */
  private get card(): Card | undefined {
    return this.stage === this.struck.length ? this.options.cards[this.stage] : undefined;
  }

  private receive(report: Report): void {
    switch (report.kind) {
      case 'environment':
        return void this.environments.add(report.pid);
      case 'stage':
        this.stage = report.stage;
        this.occurrences = {};
        this.edit = undefined;
        return;
      case 'call':
        return void this.calls[report.phase]++;
      case 'held':
        return this.strike(`${report.how} ${report.name} of ${report.file}`);
      case 'swap':
        return report.method === 'prepare' ? this.prepares() : this.uses();
      case 'engine': {
        const phase = engineMethods[report.method];
        if (phase && phase !== this.phase) this.enter(phase);
      }
    }
  }

  private enter(phase: 'generation' | 'update' | 'save'): void {
    const now = performance.now();
    if (this.phase) this.durations[this.phase].push(now - this.phaseBegan);
    [this.phase, this.phaseBegan] = [phase, now];
    const occurrence = (this.occurrences[phase] = (this.occurrences[phase] ?? 0) + 1);
    const { card } = this;
    if (!card || occurrence !== card.occurrence) return;
    if (card.phase === 'swap' && phase === 'generation')
      this.after(card.share * this.typical('generation', card.pick), () => {
        this.edit = { saved: performance.now() };
        this.options.edit();
      });
    else if (card.phase === phase && !card.hold)
      this.after(card.share * this.typical(phase, card.pick), () => this.strike(`during ${this.phase}`));
  }

  private prepares(): void {
    const { card, edit } = this;
    if (!edit || edit.prepared !== undefined) return;
    edit.prepared = performance.now();
    if (card?.phase === 'swap' && !card.hold && card.swapShare < 0.5)
      this.after(2 * card.swapShare * this.typical('swap', card.pick), () =>
        this.strike('while an edit is being prepared'),
      );
  }

  private uses(): void {
    const { card, edit } = this;
    if (edit?.prepared === undefined || edit.used !== undefined) return;
    edit.used = performance.now();
    this.durations.swap.push(edit.used - edit.prepared);
    if (this.phase === 'generation') edit.usedIn = this.occurrences.generation;
    if (card?.phase !== 'swap' || card.hold || card.swapShare < 0.5) return;
    const rest = edit.usedIn === undefined ? 0 : this.typical('generation', card.pick);
    this.after((2 * card.swapShare - 1) * rest, () => this.strike('while episodes of the old code end'));
  }

  private after(ms: number, job: () => void): void {
    this.timers.push(setTimeout(job, ms));
  }

  /** One of the observed durations of a phase in milliseconds, selected by `pick` from 0 to 1. */
  private typical(phase: keyof Durations, pick: number): number {
    const seen = this.options.durations[phase];
    return seen[Math.floor(pick * seen.length)];
  }

  private strike(where: string): void {
    const { card } = this;
    if (!card || this.killed) return;
    const environments = [...this.environments].filter(isAlive);
    if (card.target === 'environment' && environments.length === 0) return; // the process is being restarted
    const phase = this.phaseOf(card);
    if (!phase) return;
    this.struck.push({ card, phase, where });
    if (card.target !== 'environment') this.killed = true;
    const doomed =
      card.target === 'environment'
        ? [environments[Math.floor(card.share * environments.length)]]
        : card.target === 'both'
          ? environments
          : [];
    const trainer = card.target === 'environment' ? [] : [this.trainer.pid!];
    for (const pid of card.trainerFirst ? [...trainer, ...doomed] : [...doomed, ...trainer]) end(pid);
  }

  /**
   * The trainer's phase, derived from its reports. A swap lasts until the generation in which the new code was first
   * used ends.
   */
  private phaseOf(card: Card): Phase | undefined {
    if (card.hold) return card.phase;
    const { edit, phase } = this;
    if (edit?.prepared === undefined) return phase;
    if (edit.used === undefined) return 'swap';
    return phase === 'generation' && edit.usedIn === this.occurrences.generation ? 'swap' : phase;
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it ended with the other process
  }
}
