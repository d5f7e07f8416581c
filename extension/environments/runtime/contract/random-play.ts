// Random play for a contract check. Records the reference episodes, how often each action was played, and the instances
// to close. The checks of later requirements play these episodes again and compare the states with the recorded states.
// Everything is seeded, so failures are reproducible.
import type { Action, EnvironmentDefinition } from '../../../../envs/api/environment';
import type { RewardsDefinition } from '../../../../envs/api/rewards';
import { Pcg64 } from '../../../../envs/api/random/pcg64';
import { declaredComponents, ScoreFunctions } from '../worker/score-functions';
import { actionChooser } from './action-chooser';
import { differenceOf } from './evidence';
import { Instance, sameState, type Call, type State, type Step, Violation } from './environment-instance';

export interface ContractOptions {
  /** Number of random episodes, with seeds 1 to `seeds`. */
  seeds: number;
  /** Maximum number of actions per episode. */
  steps: number;
  /** Milliseconds after which no further episode is started. The first two episodes are always played. */
  budgetMs: number;
  /** Called before each call into the environment. */
  announce(call: Call): void;
  /** Default export of the rewards file; undefined if the environment has none. */
  rewards?: RewardsDefinition;
}

/** An episode of random play. The checks of later requirements play it again and compare the states. */
export interface Reference {
  seed: number;
  first: State;
  actions: Action[];
  steps: Step[];
  /** The instance that played the episode; it is in the episode's last state. */
  instance: Instance;
}

/** The reference episodes and the environment instances of one check of the contract. */
export class RandomPlay {
  readonly references: Reference[] = [];
  /** Value of `performance.now()` after which no new episode is started. */
  readonly deadline: number;
  /**
   * Named actions that were played, by id: the name, how often the action was played, and whether it ever had an
   * effect.
   */
  readonly coverage = new Map<number, { name: string; times: number; effective: boolean }>();
  stepsPlayed = 0;
  /** Instances that were created for the current requirement. */
  private readonly created: Instance[] = [];
  /** The score functions of the environment and of its rewards file. */
  readonly scores: ScoreFunctions;
  /** Default weights of the declared reward components, by name. */
  readonly components: Readonly<Record<string, number>>;

  constructor(
    private readonly definition: EnvironmentDefinition,
    private readonly config: Record<string, unknown>,
    readonly options: ContractOptions,
  ) {
    this.deadline = performance.now() + options.budgetMs;
    this.components = declaredComponents(definition, options.rewards) ?? {};
    this.scores = new ScoreFunctions(this.components, options.rewards);
  }

  /** Plays the reference episodes. Returns the first violation of each requirement on return values. */
  async explore(): Promise<Map<Violation['requirement'], Violation>> {
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
    return found;
  }

  /** Creates an instance. `releaseAll` closes it when the current requirement has been checked. */
  create(): Instance {
    const instance = new Instance(this.definition, this.config, this.options.announce);
    this.created.push(instance);
    return instance;
  }

  /**
   * Resets `instance` and plays the actions of a reference episode in it. Compares each state with the recorded state.
   * @param otherwise start of the sentence that reports a difference
   * @param between called before each action
   * @throws Violation if a state differs
   */
  async follow(
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

  /**
   * @param otherwise start of the sentence that reports a difference
   * @throws Violation if the states differ
   */
  compare(expected: State | Step, found: State | Step, instance: Instance, otherwise: string): void {
    const difference = differenceOf(expected, found);
    if (difference) throw new Violation('calls', `${otherwise} ${instance.position()}: ${difference}.`);
  }

  /** Closes the instances that were created for the current requirement, except those of reference episodes. */
  async releaseAll(): Promise<void> {
    const kept = new Set(this.references.map(({ instance }) => instance));
    for (const instance of this.created.splice(0)) if (!kept.has(instance)) await instance.release();
  }

  /** Closes the instances of the reference episodes. */
  async releaseReferences(): Promise<void> {
    for (const { instance } of this.references) await instance.release();
  }

  private async randomEpisode(seed: number): Promise<Reference> {
    const instance = this.create();
    const first = await instance.reset(seed);
    // The actions to choose from include those of the solver's plan. A separate instance computes this plan.
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
    const names = before.names ?? first.names;
    if (typeof action !== 'number' || names === undefined) return;
    const entry = this.coverage.get(action) ?? { name: names[action], times: 0, effective: false };
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
}
