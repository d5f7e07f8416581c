// Checks an environment against its contract by playing it: random play and the solver's plans are replayed,
// interleaved and reset, in the same instance and in new ones. Everything is seeded, so a failure is reproducible. The
// requirements are listed under the same names in docs/environments/writing-your-own.md.
import { maximum } from '../../../common/lists';
import type { Action, EnvironmentDefinition } from '../../../../envs/api/environment';
import { Pcg64 } from '../../../../envs/api/random/pcg64';
import { actionChooser } from './action-chooser';
import { Instance, sameState, type Call, type State, type Step, Violation } from './instance';

export interface ContractOptions {
  /** Number of random episodes, with seeds 1 to `seeds`. */
  seeds: number;
  /** Maximum number of actions per episode. */
  steps: number;
  /** Milliseconds after which no further seed is started. Two seeds always run. */
  budgetMs: number;
  /** Called before each call into environment code. */
  announce(call: Call): void;
}

export interface ContractResult {
  name: string;
  state: 'passed' | 'failed' | 'skipped';
  evidence: string;
  /** Stack of the error that the environment threw, with positions in the bundle. */
  stack?: string;
}

/** An episode of random play; later checks compare with it. */
interface Reference {
  seed: number;
  first: State;
  actions: Action[];
  steps: Step[];
  /** The instance that played the episode, in its last state. */
  instance: Instance;
}

/** Number of leading requirements, up to the replay check, that the others depend on. */
const groundwork = 7;

/** Outcome of an episode played by the solver. */
interface Solved {
  instance: Instance;
  actions: Action[];
  last: Step | undefined;
  /** Whether the solver returned a plan for the first state. */
  planned: boolean;
  success: boolean;
}

/** Maximum number of solver actions per episode. */
const mostSolved = 500;

export async function checkContract(
  definition: EnvironmentDefinition,
  config: Record<string, unknown>,
  options: ContractOptions,
): Promise<ContractResult[]> {
  return new Contract(definition, config, options).check();
}

class Contract {
  private readonly results: ContractResult[] = [];
  private readonly references: Reference[] = [];
  private readonly deadline: number;
  /**
   * By action id, for actions that had a name in some episode: the name, how often it was played, and whether it ever
   * had an effect.
   */
  private readonly coverage = new Map<number, { name: string; times: number; effective: boolean }>();
  private stepsPlayed = 0;
  /** Instances to release. */
  private readonly created: Instance[] = [];

  constructor(
    private readonly definition: EnvironmentDefinition,
    private readonly config: Record<string, unknown>,
    private readonly options: ContractOptions,
  ) {
    this.deadline = performance.now() + options.budgetMs;
  }

  async check(): Promise<ContractResult[]> {
    await this.explore();
    await this.releaseAll();
    await this.run('the same seed and actions give the same episode', () => this.replays());
    await this.run('members of a group start from the same state', () => this.membersBeginAlike());
    await this.run('concurrent episodes do not affect each other', () => this.interleaved());
    await this.run('reset starts a new episode, also after the end', () => this.resetsAnew());
    await this.run('a step after the end is rejected', () => this.refusesAfterEnd());
    await this.run('every action has an effect', async () => this.actionsDoSomething());
    await this.run('render shows the state and does not change it', () => this.rendersPurely());
    await this.run('solve solves the episode and does not change the state', () => this.solves());
    await this.run('close ends an episode at any time', () => this.closes());
    for (const { instance } of this.references) await instance.release();
    return this.results;
  }

  /** Runs one requirement, or skips it if one of the first `groundwork` requirements has failed. */
  private async run(name: string, requirement: () => Promise<string | Skip>): Promise<void> {
    const failed = this.results.slice(0, groundwork).find(({ state }) => state === 'failed');
    if (failed) {
      const evidence = `Skipped because an earlier check failed: ${failed.name}.`;
      return void this.results.push({ name, state: 'skipped', evidence });
    }
    try {
      const outcome = await requirement();
      if (outcome instanceof Skip) this.results.push({ name, state: 'skipped', evidence: outcome.why });
      else this.results.push({ name, state: 'passed', evidence: outcome });
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.results.push({ name, state: 'failed', evidence: error.evidence, stack: error.stackOfCause });
    } finally {
      await this.releaseAll();
    }
  }

  /** Closes the created instances, except those of reference episodes. */
  private async releaseAll(): Promise<void> {
    const kept = new Set(this.references.map(({ instance }) => instance));
    for (const instance of this.created.splice(0)) if (!kept.has(instance)) await instance.release();
  }

  /** Plays random episodes, checks what every call returns, and keeps the episodes as references. */
  private async explore(): Promise<void> {
    const found = new Map<Violation['requirement'], Violation>();
    for (let seed = 1; seed <= this.options.seeds; seed++) {
      if (seed > 2 && performance.now() > this.deadline) break;
      try {
        this.references.push(await this.randomEpisode(seed));
      } catch (error) {
        if (!(error instanceof Violation)) throw error;
        if (!found.has(error.requirement)) found.set(error.requirement, error);
      }
    }
    const played = `${plural(this.references.length, 'seed')}, ${plural(this.stepsPlayed, 'action')} of random play`;
    const rewards = [...new Set(this.references.flatMap(({ steps }) => steps.map(({ reward }) => reward)))];
    rewards.sort((a, b) => a - b);
    const passed: Record<Violation['requirement'], [name: string, evidence: string]> = {
      calls: ['every call returns', `${played}.`],
      observation: ['observations are text, or text with PNG images', `${played}.`],
      reward: [
        'rewards are finite numbers',
        `Seen: ${rewards.slice(0, 8).map(round).join(', ')}${rewards.length > 8 ? ', …' : ''}.`,
      ],
      flags: ['terminated and truncated are true or false', endings(this.references)],
      info: ['info is plain data', `Keys: ${infoKeys(this.references)}.`],
      actions: [
        'actions are named by integer ids',
        this.coverage.size > 0 ? `${this.coverage.size} named.` : 'The environment takes text.',
      ],
    };
    for (const [requirement, [name, evidence]] of Object.entries(passed)) {
      const violation = found.get(requirement as Violation['requirement']);
      this.results.push(
        violation
          ? { name, state: 'failed', evidence: violation.evidence, stack: violation.stackOfCause }
          : { name, state: 'passed', evidence },
      );
    }
  }

  private create(): Instance {
    const instance = new Instance(this.definition, this.config, this.options.announce);
    this.created.push(instance);
    return instance;
  }

  private async randomEpisode(seed: number): Promise<Reference> {
    const instance = this.create();
    const first = await instance.reset(seed);
    // The solver's plan is among the candidate actions. A separate instance computes it.
    const choose = actionChooser(first, this.instruction(), await this.planOf(seed));
    const random = new Pcg64(seed, [0]);
    const reference: Reference = { seed, first, actions: [], steps: [], instance };
    let state: State = first;
    for (let i = 0; i < this.options.steps && !instance.over; i++) {
      const action = choose(random, state);
      const step = await instance.step(action);
      this.cover(action, first, state, step);
      reference.actions.push(action);
      reference.steps.push(step);
      this.stepsPlayed++;
      state = step;
    }
    return reference;
  }

  private cover(action: Action, first: State, before: State, after: Step): void {
    if (typeof action !== 'number' || first.names === undefined) return;
    const entry = this.coverage.get(action) ?? { name: first.names[action], times: 0, effective: false };
    const { action_is_effective: said } = after.info;
    entry.times++;
    entry.effective ||= typeof said === 'boolean' ? said : !sameState(before, after) || after.over;
    this.coverage.set(action, entry);
  }

  private instruction(): string {
    const { instruction } = this.definition;
    return typeof instruction === 'function' ? instruction(this.config) : instruction;
  }

  private async planOf(seed: number): Promise<Action[]> {
    const instance = this.create();
    await instance.reset(seed);
    return (await instance.solve().catch(() => undefined)) ?? []; // the `solve` requirement reports solver faults
  }

  /** Plays a reference's actions in `instance` and compares each state. `between` is called before each action. */
  private async follow(
    instance: Instance,
    { seed, first, actions, steps }: Reference,
    otherwise: string,
    between: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    this.compare(first, await instance.reset(seed), instance, otherwise);
    for (let i = 0; i < actions.length; i++) {
      await between();
      this.compare(steps[i], await instance.step(actions[i]), instance, otherwise);
    }
  }

  private compare(expected: State | Step, found: State | Step, instance: Instance, otherwise: string): void {
    const difference = differenceOf(expected, found);
    if (difference) throw new Violation('calls', `${otherwise} ${instance.position()}: ${difference}.`);
  }

  private async replays(): Promise<string> {
    for (const reference of this.references) await this.follow(this.create(), reference, 'A second instance differs');
    return `${plural(this.references.length, 'seed')}, ${plural(this.stepsPlayed, 'action')} replayed in fresh instances.`;
  }

  private async membersBeginAlike(): Promise<string> {
    for (const { seed, first } of this.references) {
      const instance = this.create();
      this.compare(
        first,
        await instance.reset(seed, 1),
        instance,
        'Member 1 of the group starts from a different state',
      );
    }
    return `Members 0 and 1 at ${plural(this.references.length, 'seed')}.`;
  }

  private async interleaved(): Promise<string> {
    const playing = this.references.map(reference => ({ reference, instance: this.create() }));
    const otherwise = 'An episode differs when other episodes are played between its actions';
    for (const { reference, instance } of playing)
      this.compare(reference.first, await instance.reset(reference.seed), instance, otherwise);
    const longest = maximum(this.references.map(({ actions }) => actions.length));
    for (let i = 0; i < longest; i++)
      for (const { reference, instance } of playing)
        if (i < reference.actions.length)
          this.compare(reference.steps[i], await instance.step(reference.actions[i]), instance, otherwise);
    return `${plural(playing.length, 'episode')} interleaved.`;
  }

  private async resetsAnew(): Promise<string> {
    const ended = this.references.filter(({ instance }) => instance.over);
    for (const reference of this.references) {
      const { instance } = reference;
      const otherwise = instance.over
        ? 'A reset after the end starts a different episode'
        : 'A reset in mid-episode starts a different episode';
      await this.follow(instance, reference, otherwise);
    }
    return `${plural(ended.length, 'episode')} that had ended and ${this.references.length - ended.length} in progress were reset.`;
  }

  /**
   * Checks steps after the end of an episode. A step is refused if it throws, or returns the same observation with
   * reward 0 and the episode still over.
   */
  private async refusesAfterEnd(): Promise<string | Skip> {
    let tried = 0;
    let threw = 0;
    for (const reference of await this.endedEpisodes()) {
      const { instance, last } = reference;
      for (const action of reference.actions.slice(0, 4)) {
        tried++;
        const step = await instance.stepAfterEnd(action);
        if (!step) {
          threw++;
          break;
        }
        const what =
          step.reward !== 0
            ? `gives the reward ${round(step.reward)}`
            : !step.over
              ? 'reports that the episode continues'
              : sameState(last, step)
                ? undefined
                : `changes the observation from ${quoted(last.text)} to ${quoted(step.text)}`;
        if (what)
          throw new Violation(
            'calls',
            `The episode is over ${instance.position()}, and a further step(${instance.nameOf(action)}) ${what}: throw, or give reward 0, the same observation and the same end.`,
          );
      }
    }
    if (tried === 0)
      return new Skip(`No episode ended within ${this.options.steps} actions, at random or by the solver.`);
    return `${plural(tried, 'action')} after the end: ${threw > 0 ? 'it throws' : 'no reward, nothing changes, still over'}.`;
  }

  /** Returns finished episodes of random play and of the solver, with actions to try. */
  private async endedEpisodes(): Promise<{ instance: Instance; last: State; actions: Action[] }[]> {
    const ended = this.references
      .filter(({ instance }) => instance.over)
      .map(({ instance, steps, actions }) => ({ instance, last: steps.at(-1)!, actions: [...actions].reverse() }));
    for (const { seed } of this.references.slice(0, 2)) {
      const solved = await this.solveEpisode(seed).catch(() => undefined);
      if (solved?.instance.over && solved.last && solved.actions.length > 0)
        ended.push({ instance: solved.instance, last: solved.last, actions: [...solved.actions].reverse() });
    }
    return ended;
  }

  private actionsDoSomething(): string | Skip {
    if (this.coverage.size === 0) {
      const said = new Set(this.references.flatMap(({ steps }) => steps.map(({ text }) => text)));
      return new Skip(
        `The environment takes text; random answers led to ${plural(said.size, 'different observation')}.`,
      );
    }
    const listed = [...this.coverage].map(([id, { name, times }]) => `${name} (${id}) ${times}×`);
    const idle = [...this.coverage]
      .filter(([, { effective }]) => !effective)
      .map(([id, { name }]) => `${name} (${id})`);
    if (idle.length > 0)
      throw new Violation(
        'calls',
        `${idle.join(', ')} never changed the state in ${plural(this.stepsPlayed, 'action')} of random play: ${listed.join(', ')}.`,
      );
    return `${listed.join(', ')}.`;
  }

  private async rendersPurely(): Promise<string | Skip> {
    if (!this.create().has('render')) return new Skip('It has no render.');
    let rendered = 0;
    for (const reference of this.references) {
      const instance = this.create();
      const otherwise = 'An episode differs when it is rendered before each action';
      await this.follow(instance, reference, otherwise, async () => {
        const [one, other] = [await instance.render(), await instance.render()];
        rendered++;
        if (!sameState(one, other))
          throw new Violation(
            'observation',
            `The same state renders differently ${instance.position()}: ${quoted(one.text)}, then ${quoted(other.text)}.`,
          );
      });
      const other = this.create();
      await this.follow(other, reference, otherwise);
      const [one, two] = [await instance.render(), await other.render()];
      if (!sameState(one, two))
        throw new Violation(
          'observation',
          `Another instance in the same state renders differently ${instance.position()}: ${quoted(one.text)} and ${quoted(two.text)}.`,
        );
    }
    return `${plural(rendered, 'state')} rendered twice.`;
  }

  private async solves(): Promise<string | Skip> {
    if (!this.create().has('solve')) return new Skip('It has no solver.');
    for (const reference of this.references.slice(0, 2)) {
      const instance = this.create();
      let asked = 0;
      // A solver may be slow far from the start, so it runs only before the first three actions.
      const ask = async () => asked++ < 3 && (await instance.solve());
      await this.follow(instance, reference, 'An episode differs when its solver is asked before its actions', ask);
    }
    let solved = 0;
    let tried = 0;
    let unsolved: string | undefined;
    for (const { seed } of this.references) {
      if (tried > 0 && performance.now() > this.deadline) break;
      const { instance, planned, success } = await this.solveEpisode(seed);
      if (!planned) continue;
      tried++;
      if (success) solved++;
      else
        unsolved ??= `${instance.position()} ${instance.over ? 'the episode ended without success' : 'it has not ended'}`;
    }
    if (tried === 0)
      return new Skip(`The solver returns no plan for any of ${plural(this.references.length, 'seed')}.`);
    // Randomness in the environment may spoil a correct plan, but not in most episodes.
    if (solved * 2 < tried)
      throw new Violation('calls', `The solver solves ${solved} of ${plural(tried, 'seed')}: ${unsolved}.`);
    return `It solves ${solved} of ${plural(tried, 'seed')}${unsolved ? `; ${unsolved}` : ''}.`;
  }

  /**
   * Plays the solver's plan unchanged. If the plan fails, plays again and calls the solver before each action, for
   * environments with random transitions.
   */
  private async solveEpisode(seed: number): Promise<Solved> {
    const asItIs = await this.playPlan(seed, false);
    return asItIs.success || !asItIs.planned ? asItIs : this.playPlan(seed, true);
  }

  private async playPlan(seed: number, anew: boolean): Promise<Solved> {
    const instance = this.create();
    await instance.reset(seed);
    const actions: Action[] = [];
    let last: Step | undefined;
    let plan = (await instance.solve()) ?? [];
    const planned = plan.length > 0;
    while (!instance.over && actions.length < mostSolved && plan.length > 0) {
      const [action] = plan;
      actions.push(action);
      last = await instance.step(action);
      plan = anew && !instance.over ? ((await instance.solve()) ?? []) : plan.slice(1);
    }
    const said = last?.info['success'];
    const success = instance.over && (typeof said === 'boolean' ? said : last!.reward > 0);
    return { instance, actions, last, planned, success };
  }

  private async closes(): Promise<string | Skip> {
    if (!this.create().has('close')) return new Skip('It has no close.');
    await this.create().close(); // before a reset, as when an environment is loaded
    for (const { instance, seed } of this.references) {
      const begun = this.create();
      await begun.reset(seed);
      await begun.close();
      await instance.close();
    }
    return `Before a reset, after one, and at the end of ${plural(this.references.length, 'episode')}.`;
  }
}

/** Returned by a requirement that does not apply, with the reason. */
class Skip {
  constructor(readonly why: string) {}
}

/** Returns the first difference between two states as a predicate, or undefined if they are equal. */
function differenceOf(expected: State | Step, found: State | Step): string | undefined {
  if (expected.text !== found.text) return `the observation is ${quoted(found.text)}, not ${quoted(expected.text)}`;
  if (!sameState(expected, found)) return 'the images differ';
  if (!('reward' in expected) || !('reward' in found)) return undefined;
  if (!Object.is(expected.reward, found.reward)) return `the reward is ${found.reward}, not ${expected.reward}`;
  if (expected.over !== found.over) return found.over ? 'the episode is over' : 'the episode is not over';
  const [one, other] = [JSON.stringify(expected.info), JSON.stringify(found.info)];
  return one === other ? undefined : `the info is ${quoted(other)}, not ${quoted(one)}`;
}

function endings(references: readonly Reference[]): string {
  const ended = references.filter(({ instance }) => instance.over).length;
  return `${ended} of ${plural(references.length, 'episode')} ended by random play.`;
}

function infoKeys(references: readonly Reference[]): string {
  const keys = new Set(references.flatMap(({ steps }) => steps.flatMap(({ info }) => Object.keys(info))));
  return [...keys].join(', ') || 'none';
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
const round = (value: number): string => String(Number(value.toPrecision(6)));
const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 59)}…` : text);
