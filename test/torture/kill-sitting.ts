// One sitting of a run under the axe: starts the trainer with points.ts before it, follows where it is, and kills it, its environment process or
// both (SIGKILL, from this process) at the moments that its cards name. Generation, update and swap are hit at any time of their course,
// by a timer; save, log and swap also at one file-system call, before it, in its middle or after it, while the trainer is held there.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { explainExit } from '../../extension/protocol/process-exit';
import { runFiles } from '../../extension/protocol/run-folder';
import { installation } from '../../extension/trainer/installation';
import { isAlive, statusOf } from '../unit/trainer/terminal';

export const phases = ['generation', 'update', 'save', 'log', 'swap'] as const;
export type Phase = (typeof phases)[number];
export const targets = ['trainer', 'environment', 'both'] as const;
export type Target = (typeof targets)[number];

/** Phases that can be held at a call on a file of the run: of checkpoints/, of environments/, any other. */
export type HeldPhase = 'save' | 'log' | 'swap';

/** The nth call of its phase, from the trainer's start or the stage's on; `during` is half of a write, or a call that is under way. */
export interface Hold {
  phase: HeldPhase;
  nth: number;
  how: 'before' | 'during' | 'after';
  ms: number;
}

/** What points.ts is told: the run's folder, and a hold for each stage (null for none). */
export interface Orders {
  folder: string;
  holds: (Hold | null)[];
}

/** What points.ts tells. */
export type Told =
  | { kind: 'engine'; method: string }
  | { kind: 'environment'; pid: number }
  /** An edit is made ready; the episodes that begin from now on run it. */
  | { kind: 'swap'; method: 'prepare' | 'use' }
  | { kind: 'call'; phase: HeldPhase; name: string; file: string }
  | { kind: 'held'; phase: HeldPhase; name: string; file: string; how: Hold['how'] }
  /** A checkpoint begins after the environment process died and came back. */
  | { kind: 'stage'; stage: number };

/** A kill to come. */
export interface Card {
  phase: Phase;
  target: Target;
  /** The phase's (for a swap, the generation's) occurrence in its stage, from 1. */
  occurrence: number;
  /** Where in it, 0…1; for a swap, when its edit is saved. */
  share: number;
  /** Where in a swap, 0…1: in the first half while the code is made ready, in the second while episodes of the old code end. */
  swapShare: number;
  /** Which of the durations seen so far it is taken to last, 0…1. */
  pick: number;
  hold: Hold | null;
  trainerFirst: boolean;
}

/** A kill that was. */
export interface Struck {
  card: Card;
  /** The phase it fell into. */
  phase: Phase;
  where: string;
}

/** Milliseconds that each phase took, time after time; a swap until its code is used. */
export type Durations = Record<'generation' | 'update' | 'save' | 'swap', number[]>;

export interface SittingOptions {
  run: string;
  workspace: string;
  resume: boolean;
  /** Built points.ts. */
  preload: string;
  /** At most one a stage; but for the last each kills the environment process alone. */
  cards: readonly Card[];
  /** Milliseconds that phases took before. */
  durations: Durations;
  /** Edits the environment's source: its version changes, what it does does not. */
  edit(): void;
}

export interface Sitting {
  end: 'killed' | 'finished';
  struck: Struck[];
  /** Cards whose moment did not come. */
  unplayed: Card[];
  /** Milliseconds of the phases. */
  durations: Durations;
  calls: Record<HeldPhase, number>;
}

/** What a message to the engine begins. */
const engineMethods: Readonly<Record<string, 'generation' | 'update' | 'save'>> = {
  generate: 'generation',
  ...{ score: 'update', values: 'update', update: 'update', updateCritic: 'update' },
  state: 'save',
};

/** No sitting of these small runs takes so long. */
const patienceMs = 120_000;

/** Seconds within which an edit comes into effect, whatever dies meanwhile. */
const swapPatience = 30;

/** Runs one sitting to its end. @throws where the trainer ends otherwise than by its kill or its last step, or does not end at all */
export async function sit(options: SittingOptions): Promise<Sitting> {
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
  /** When an edit was saved in this stage, its code was first made ready, and used; and in which generation. */
  private edit: { saved: number; prepared?: number; used?: number; usedIn?: number } | undefined;
  private killed = false;

  constructor(private readonly options: SittingOptions) {
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
      for (const line of lines) this.hear(JSON.parse(line) as Told);
    });
  }

  async outcome(): Promise<Sitting> {
    const { run, cards } = this.options;
    const late = setTimeout(() => this.trainer.kill('SIGKILL'), patienceMs);
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>(resolve =>
      this.trainer.once('close', (...end) => resolve(end)),
    );
    clearTimeout(late);
    for (const timer of this.timers) clearTimeout(timer);
    for (const deadline = Date.now() + 5000; [...this.environments].some(isAlive); await sleep(10))
      if (Date.now() > deadline) throw new Error('an environment process outlives its trainer by 5 s');
    const seconds = this.edit ? (performance.now() - this.edit.saved) / 1000 : 0;
    if (seconds > swapPatience && this.edit?.used === undefined)
      throw new Error(`an edit saved ${seconds.toFixed(1)} s before the trainer's end never came into effect`);
    const finished = code === 0 && statusOf(run)?.state === 'finished';
    if (this.killed && finished)
      this.struck.pop(); // it ended before the kill came
    else if (this.killed ? signal !== 'SIGKILL' : !finished) throw new Error(this.otherEnd(code, signal));
    return {
      end: finished ? 'finished' : 'killed',
      struck: this.struck,
      unplayed: cards.slice(this.struck.length),
      durations: this.durations,
      calls: this.calls,
    };
  }

  /** Why the trainer is gone, or how it hangs. */
  private otherEnd(code: number | null, signal: NodeJS.Signals | null): string {
    const status = statusOf(this.options.run);
    const how = signal === 'SIGKILL' ? `did not end in ${patienceMs / 1000} s` : explainExit(code, signal);
    const kills = this.struck.map(({ card, where }) => `${card.target} killed ${where}`).join(', ') || 'no kill';
    return `the trainer ${how} in step ${status?.step}, ${status?.phase}, after ${kills}: ${status?.error ?? 'no error told'}`;
  }

  /** The card whose moment may come now. */
  private get card(): Card | undefined {
    return this.stage === this.struck.length ? this.options.cards[this.stage] : undefined;
  }

  private hear(told: Told): void {
    switch (told.kind) {
      case 'environment':
        return void this.environments.add(told.pid);
      case 'stage':
        this.stage = told.stage;
        this.occurrences = {};
        this.edit = undefined;
        return;
      case 'call':
        return void this.calls[told.phase]++;
      case 'held':
        return this.strike(`${told.how} ${told.name} of ${told.file}`);
      case 'swap':
        return told.method === 'prepare' ? this.prepares() : this.uses();
      case 'engine': {
        const phase = engineMethods[told.method];
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
        this.strike('while an edit is made ready'),
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

  /** One of the durations that a phase has had. */
  private typical(phase: keyof Durations, pick: number): number {
    const seen = this.options.durations[phase];
    return seen[Math.floor(pick * seen.length)];
  }

  private strike(where: string): void {
    const { card } = this;
    if (!card || this.killed) return;
    const environments = [...this.environments].filter(isAlive);
    if (card.target === 'environment' && environments.length === 0) return; // it is just being started anew
    const phase = this.phaseOf(card);
    if (!phase) return;
    this.struck.push({ card, phase, where });
    if (card.target !== 'environment') this.killed = true;
    const doomed = card.target === 'environment' ? [environments[Math.floor(card.share * environments.length)]] : card.target === 'both' ? environments : []; // prettier-ignore
    const trainer = card.target === 'environment' ? [] : [this.trainer.pid!];
    for (const pid of card.trainerFirst ? [...trainer, ...doomed] : [...doomed, ...trainer]) end(pid);
  }

  /** What the trainer is at, as far as this process has heard: a swap lasts until no episode of the old code is left. */
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
    // it went with the other
  }
}
