// Kills the processes of a training run (SIGKILL), distributed evenly over phases (generation, update, checkpoint,
// journal, swap of an edited environment) and targets (trainer, environment process or both). After each kill,
// kill-checks.ts inspects the folder and the run is resumed until it finishes. The finished run must equal an
// uninterrupted run bit for bit. If only the environment process is killed, the trainer must continue without a resume.
import { buildSync } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { deriveSeed } from '../../extension/trainer/rollout/seeds';
import { makeRun } from '../../extension/cli/run-lifecycle/make-run';
import { makeWorkspace, root, wordsEnvironment } from '../support/workspace';
import type { Workspace } from '../support/workspace';
import { courseOf, inspectFinished, inspectKilled, nothingCommitted } from './kill-checks';
import type { Course } from './kill-checks';
import { phases, sit, targets } from './kill-session';
import type { Card, Durations, HeldPhase, Phase, KillSession, Struck, Target } from './kill-session';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Kinds of runs, which differ in the content of a checkpoint and in the work done in parallel to the update. */
export const killedRuns: Readonly<Record<string, readonly string[]>> = {
  'GRPO, a checkpoint at every step': ['trainer.save_freq=1', 'trainer.test_freq=4'],
  'PPO with critic, reference and adaptive KL, a checkpoint at every second step': [
    ...['algorithm.adv_estimator=gae', 'critic.optim.lr=1e-2', 'actor_rollout_ref.actor.use_ref=true'],
    ...[
      'algorithm.use_kl_in_reward=true',
      'algorithm.kl_ctrl.type=adaptive',
      'trainer.save_freq=2',
      'trainer.test_freq=3',
    ],
  ],
  'LoRA, two environment processes': [
    ...['lora.rank=4', 'lora.alpha=8', 'lora.target_modules=[q_proj,v_proj,down_proj]', 'trainer.save_freq=1'],
    ...['+custom_envs.Words.parallel_friendly=true', '+custom_envs.Words.max_workers=2'],
  ],
};

export interface KillOptions {
  kills: number;
  seed: number;
  steps: number;
  /** Names in `killedRuns`. */
  runs: readonly string[];
  /** Number of runs tested in parallel. */
  lanes: number;
  say(line: string): void;
}

export interface KillReport {
  struck: Struck[];
  runs: number;
  resumes: number;
}

/** A kind of run with its uninterrupted reference run. */
interface Kind {
  overrides: readonly string[];
  course: Course;
  durations: Durations;
  /** Number of calls on the run's files in the reference run, by phase. */
  calls: Record<HeldPhase, number>;
}

/** The part `kills` of `npm run torture`. @throws with the run, its seed, and the lost or different data */
export async function kills(scale: TortureScale): Promise<void> {
  const { seed, say } = scale;
  const options = { kills: scaled(300, scale), seed, steps: 12, runs: Object.keys(killedRuns), lanes: 2, say };
  const { struck, runs, resumes } = await killRuns(options);
  const count = (phase: Phase, target: Target) =>
    struck.filter(each => each.phase === phase && each.card.target === target).length;
  const rows = phases.map(phase => [
    phase,
    ...targets.map(target => count(phase, target)),
    struck.filter(each => each.phase === phase).length,
  ]);
  const sums = targets.map(target => struck.filter(each => each.card.target === target).length);
  console.log(table(['killed during', ...targets, 'all'], [...rows, ['all', ...sums, struck.length]]));
  console.log(
    `${runs} runs, ${resumes} resumes; no committed step lost, no line or checkpoint incomplete; every run equals an uninterrupted run bit for bit`,
  );
}

/** Performs the requested number of kills and resumes every run until it finishes. @throws as `kills` */
export async function killRuns(options: KillOptions): Promise<KillReport> {
  const report: KillReport = { struck: [], runs: 0, resumes: 0 };
  const tools = mkdtempSync(join(tmpdir(), 'ragen-kills-'));
  const workspaces: Workspace[] = Array.from({ length: options.lanes }, makeWorkspace);
  for (const workspace of workspaces) workspace.write('environments/words.ts', environment(0));
  const preload = join(tools, 'points.cjs');
  buildSync({ entryPoints: [join(root, 'test/torture/points.ts')], outfile: preload, bundle: true, platform: 'node' });
  try {
    const kinds = new Map<string, Kind>();
    for (const name of options.runs) {
      kinds.set(name, await uninterrupted(workspaces[0], preload, [...killedRuns[name], ...common(options.steps)]));
      options.say(`uninterrupted: ${name}`);
    }
    const share = (lane: number) => Math.floor((options.kills + lane) / options.lanes);
    await Promise.all(
      workspaces.map((workspace, lane) =>
        new Lane(workspace, preload, [...kinds], share(lane), options, lane, report).work(),
      ),
    );
    for (const workspace of workspaces) workspace.remove();
    return report;
  } finally {
    rmSync(tools, { recursive: true, force: true });
  }
}

/** Overrides: three turns per episode, and no type checks, which take longer than many steps and write no files. */
const common = (steps: number): string[] => [
  ...[`trainer.total_training_steps=${steps}`, 'workbench.check_types=false'],
  ...['agent_proxy.max_turn=3', 'custom_envs.Words.max_actions_per_traj=9'],
];

/**
 * Source of a slow environment, so that kills and edits occur while episodes run. Each `version` has different code and
 * equal behaviour.
 */
const environment = (version: number): string =>
  wordsEnvironment(
    `await new Promise(done => setTimeout(done, 40)); if (seed < -${version}) throw new Error('no such seed');`,
  );

const newRun = async (workspace: Workspace, overrides: readonly string[]): Promise<string> =>
  (await makeRun({ configName: 'words', overrides, workspace: workspace.folder })).folder.path;

async function uninterrupted(workspace: Workspace, preload: string, overrides: readonly string[]): Promise<Kind> {
  const run = await newRun(workspace, [...overrides, 'workbench.keep_checkpoints=1000']);
  const none: Durations = { generation: [], update: [], save: [], swap: [] };
  const options = { run, workspace: workspace.folder, resume: false, preload, cards: [], durations: none };
  const { durations, calls } = await sit({ ...options, edit: () => undefined });
  const course = await courseOf(run);
  durations.swap.push(firstSwapMs);
  return { overrides, course, durations, calls };
}

/** Assumed duration of a swap in milliseconds until a swap has been observed. */
const firstSwapMs = 150;

/** Maximum number of consecutive runs without a kill; a longer series indicates wrong timing. */
const mostVain = 5;

/** The runs of one workspace, executed one after the other, with kills distributed evenly. */
class Lane {
  private readonly random: RandomStream;
  /** Remaining kills, by phase and target. */
  private readonly cells: { phase: Phase; target: Target }[];
  private edits = 0;

  constructor(
    private readonly workspace: Workspace,
    private readonly preload: string,
    private readonly kinds: readonly (readonly [string, Kind])[],
    kills: number,
    private readonly options: KillOptions,
    private readonly lane: number,
    private readonly report: KillReport,
  ) {
    this.random = new RandomStream(deriveSeed('kills', options.seed, lane));
    const all = targets.flatMap(target => phases.map(phase => ({ phase, target })));
    this.cells = Array.from({ length: kills }, (_, i) => all[(i * options.lanes + lane) % all.length]);
  }

  async work(): Promise<void> {
    for (let run = 0, vain = 0; this.cells.length > 0; run++) {
      const [name, kind] = this.kinds[(run + this.lane) % this.kinds.length];
      vain = (await this.killRun(name, kind)) > 0 ? 0 : vain + 1;
      if (vain === mostVain)
        throw new Error(
          `kills: ${mostVain} runs ended without reaching a planned kill of ${JSON.stringify(this.cells)}`,
        );
      this.report.runs++;
    }
  }

  /** Kills and resumes one run until it finishes; resolves to the number of kills. */
  private async killRun(name: string, kind: Kind): Promise<number> {
    const run = await newRun(this.workspace, kind.overrides);
    const history: string[] = [];
    try {
      let known = nothingCommitted;
      for (let sessions = 0; ; sessions++) {
        const cards = this.deal(kind);
        const session = await this.session(run, kind, sessions > 0, cards);
        this.settle(session, kind);
        history.push(...session.struck.map(({ card, where }) => `${card.target} ${where}`));
        if (sessions > 0) this.report.resumes++;
        if (session.end === 'finished') {
          await inspectFinished(run, kind.course, known);
          break;
        }
        known = await inspectKilled(run, kind.course, known);
      }
      this.options.say(
        `${history.length} kills, bitwise equal: ${name} (${this.report.struck.length} of ${this.options.kills})`,
      );
      rmSync(run, { recursive: true, force: true });
      return history.length;
    } catch (error) {
      const { seed } = this.options;
      throw new Error(
        `kills, seed ${seed}, lane ${this.lane}, ${name}: ${(error as Error).message}\nkilled so far: ${history.join('; ') || 'nothing'}\nthe run's folder is ${run} (${basename(run)})`,
        { cause: error },
      );
    }
  }

  private session(run: string, { durations }: Kind, resume: boolean, cards: Card[]): Promise<KillSession> {
    const { folder } = this.workspace;
    return sit({ run, workspace: folder, resume, preload: this.preload, cards, durations, edit: () => this.edit() });
  }

  private edit(): void {
    this.workspace.write('environments/words.ts', environment(++this.edits));
  }

  /** Cards for one session: any number of kills of the environment process, then one that includes the trainer. */
  private deal(kind: Kind): Card[] {
    const cards: Card[] = [];
    while (this.cells.length > 0 && !cards.some(({ target }) => target !== 'environment')) {
      const [cell] = this.cells.splice(this.random.integer(this.cells.length), 1);
      cards.push(this.card(cell, kind));
    }
    return cards;
  }

  private card({ phase, target }: { phase: Phase; target: Target }, { calls, course }: Kind): Card {
    const { random } = this;
    const held = (): boolean => phase === 'log' || ((phase === 'save' || phase === 'swap') && random.uniform() < 0.5);
    const within = (kind: HeldPhase) =>
      Math.max(1, Math.ceil(kind === 'swap' ? calls[kind] : (2 * calls[kind]) / course.steps));
    const how = (['before', 'during', 'after'] as const)[random.integer(3)];
    const hold = held()
      ? {
          phase: phase as HeldPhase,
          nth: 1 + random.integer(within(phase as HeldPhase)),
          how,
          ms: target === 'environment' ? 60 : 5000,
        }
      : null;
    const first = phase === 'swap' ? 2 : 1; // the sources are watched by then
    return {
      ...{ phase, target, hold, occurrence: first + random.integer(2), trainerFirst: random.uniform() < 0.5 },
      ...{ share: random.uniform(), swapShare: random.uniform(), pick: random.uniform() },
    };
  }

  /** Removes completed kills from the schedule; kills that did not happen are scheduled again. */
  private settle({ struck, unplayed, durations }: KillSession, kind: Kind): void {
    kind.durations.swap.push(...durations.swap);
    this.report.struck.push(...struck);
    this.cells.push(...unplayed);
    // A kill that happened in another phase counts for that phase, and the planned kill is scheduled again.
    for (const { card, phase } of struck) {
      if (phase === card.phase) continue;
      const made = this.cells.findIndex(cell => cell.phase === phase && cell.target === card.target);
      if (made >= 0) this.cells.splice(made, 1);
      this.cells.push({ phase: card.phase, target: card.target });
    }
  }
}
