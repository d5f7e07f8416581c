// One environment instance that is being checked. `announce` is called before each call into the environment. The
// result of each call is checked and copied. A fault becomes a Violation that names the call, the seed and the
// preceding actions.
import type { Action, ActionLookup, Environment, EnvironmentDefinition } from '../../../../envs/api/environment';
import { stateForms, type StateForm } from '../../../../envs/api/state-forms';
import type { AnsweredEpisode, AnsweredTurn, ComponentValues } from '../../../../envs/api/rewards';
import type { NextTurn } from '../../../../envs/api/roles';
import type { RoleDescription, Scores } from '../../../protocol/environment-link';
import { FaultError } from '../threads/fault';
import { declaredTools } from '../tools/declared-tools';
import { declaredRoles } from '../worker/declared-roles';
import { checkedRoleOutcomes, checkedTurn } from '../worker/returned-roles';
import { withTools } from '../tools/tool-environment';
import { declaredForms } from '../worker/definition';
import { checkedState } from '../worker/returned-steps';
import { plainValue, shown } from '../worker/returned-values';
import type { ScoreFunctions } from '../worker/score-functions';

export const calls = ['create', 'reset', 'step', 'render', 'solve', 'state', 'score', 'scoreEpisode', 'close'] as const;
export type Call = (typeof calls)[number];

export interface State {
  text: string;
  images: Uint8Array[];
  /** Names of the legal actions; undefined if actions are texts. */
  names?: ActionLookup;
  /** The role whose turn is next; set in an environment with roles while the episode is not over. */
  role?: string;
}

export interface Step extends State {
  reward: number;
  over: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

/** An environment's violation of its contract. */
export class Violation extends Error {
  constructor(
    readonly requirement: 'calls' | 'observation' | 'reward' | 'flags' | 'info' | 'actions' | 'roles',
    /** What was observed, as one complete sentence. */
    readonly evidence: string,
    readonly stackOfCause?: string,
  ) {
    super(evidence);
  }
}

/** Maximum number of actions listed in a message; earlier actions are only counted. */
const actionsShown = 12;
const png = [0x89, 0x50, 0x4e, 0x47];

export class Instance {
  /** Whether the last step ended the episode. */
  over = false;
  private readonly environment: Environment;
  private seed: number | undefined;
  private actions: Action[] = [];
  private names: ActionLookup | undefined;
  private readonly roles: RoleDescription[] | undefined;

  constructor(
    private readonly definition: EnvironmentDefinition,
    private readonly config: Record<string, unknown>,
    private readonly announce: (call: Call) => void,
  ) {
    announce('create');
    this.environment = this.thrown('create', () => playable(definition.create(config)));
    const { roles } = definition;
    this.roles = this.checked('the definition', () =>
      declaredRoles(typeof roles === 'function' ? roles(config) : roles),
    );
  }

  has(method: 'render' | 'solve' | 'close'): boolean {
    return typeof this.environment[method] === 'function';
  }

  async reset(seed: number, member = 0): Promise<State> {
    this.seed = seed;
    this.actions = [];
    this.over = false;
    const begun: unknown = await this.call('reset', () => this.environment.reset({ seed, member, mode: 'train' }));
    if (begun === null || typeof begun !== 'object')
      throw this.bad('observation', `reset returns ${shown(begun)}`, 'return { observation }');
    const { observation, info, actions, role } = begun as Record<string, unknown>;
    const state = this.state(observation, 'reset');
    if (info !== undefined) this.info(info, 'reset');
    this.names = this.lookup(actions);
    const next = this.turn({ role: role as string }, 'reset');
    return { ...state, ...next, names: this.names };
  }

  async step(action: Action): Promise<Step> {
    const call = `step(${this.nameOf(action)})`;
    const returned: unknown = await this.call('step', () => this.environment.step(action), call);
    if (returned === null || typeof returned !== 'object')
      throw this.bad(
        'flags',
        `${call} returns ${shown(returned)}`,
        'return { observation, reward, terminated, truncated, info }',
      );
    const { observation, reward, terminated, truncated, info } = returned as Record<string, unknown>;
    const state = this.state(observation, call);
    if (typeof reward !== 'number' || !Number.isFinite(reward))
      throw this.bad('reward', `${call} gives the reward ${shown(reward)}`, 'return a finite number');
    for (const [name, flag] of Object.entries({ terminated, truncated }))
      if (typeof flag !== 'boolean')
        throw this.bad('flags', `${call} returns ${name} ${shown(flag)}`, 'return true or false');
    const plain = this.info(info, call);
    this.actions.push(action);
    this.over = terminated === true || truncated === true;
    const next = this.turn(returned, call);
    const roles = this.roles;
    if (roles) this.checked(call, () => checkedRoleOutcomes((returned as { roles?: unknown }).roles, roles));
    const names = this.names && { names: this.names };
    return { ...state, ...names, ...next, reward, over: this.over, truncated: truncated === true, info: plain };
  }

  /**
   * Calls `step` after the end of the episode; `over` stays true. Returns undefined if `step` throws, which the
   * contract allows.
   */
  async stepAfterEnd(action: Action): Promise<Step | undefined> {
    try {
      return await this.step(action);
    } catch (error) {
      if (error instanceof Violation && error.requirement === 'calls') return undefined;
      throw error;
    } finally {
      this.over = true;
    }
  }

  async render(): Promise<State> {
    const rendered: unknown = await this.call('render', () => this.environment.render!('text'));
    return this.state(rendered, 'render("text")');
  }

  async solve(): Promise<Action[] | undefined> {
    if (!this.environment.solve) return undefined;
    const plan: unknown = await this.call('solve', () => this.environment.solve!());
    if (plan === undefined) return undefined;
    const sound = Array.isArray(plan) && plan.every(action => typeof action === 'string' || Number.isFinite(action));
    if (!sound) throw this.bad('calls', `solve returns ${shown(plan)}`, 'return an array of actions, or nothing');
    return plan as Action[];
  }

  /** The forms in which the environment declares to give its true state. */
  stateForms(): StateForm[] {
    const forms = this.thrown('state', () => declaredForms(this.definition, this.environment, this.config));
    return stateForms.filter(form => forms && Object.hasOwn(forms, form));
  }

  /** Returns the true state in a form. */
  async trueState(form: StateForm): Promise<string> {
    return this.call('state', async () => checkedState(await this.environment.state!(form)), `state(${form})`);
  }

  /** Which score functions the environment has together with its rewards file; undefined if it has none. */
  scoreFunctions(scores: ScoreFunctions): Scores | undefined {
    return scores.of(this.environment);
  }

  /** Returns the component values of a turn. */
  async score(scores: ScoreFunctions, turn: AnsweredTurn): Promise<ComponentValues> {
    return this.call('score', () => scores.turn(this.environment, turn, code => code()));
  }

  /** Returns the component values of a complete episode. */
  async scoreEpisode(scores: ScoreFunctions, episode: AnsweredEpisode): Promise<ComponentValues> {
    return this.call('scoreEpisode', () => scores.episode(this.environment, episode, code => code()));
  }

  async close(): Promise<void> {
    if (this.environment.close) await this.call('close', () => this.environment.close!());
  }

  /**
   * Calls `close`, so that the environment can free its resources. Ignores errors, because the `close` requirement
   * reports them.
   */
  async release(): Promise<void> {
    await this.close().catch(() => undefined);
  }

  /** Describes the position in the episode, such as `at seed 3 after [Left, Up]`. */
  position(): string {
    if (this.seed === undefined) return 'before any reset';
    if (this.actions.length === 0) return `at seed ${this.seed} before any action`;
    const hidden = this.actions.length - actionsShown;
    const names = this.actions.slice(-actionsShown).map(action => this.nameOf(action));
    return `at seed ${this.seed} after ${hidden > 0 ? `${hidden} actions and ` : ''}[${names.join(', ')}]`;
  }

  nameOf(action: Action): string {
    return (typeof action === 'number' && this.names?.[action]) || shown(action);
  }

  /** Checks the turn that follows a call, and notes its legal actions. Returns its role. */
  private turn(given: NextTurn, call: string): Pick<State, 'role'> {
    const { roles } = this;
    if (!roles) return {};
    const { role, actions } = this.checked(call, () => checkedTurn(given, roles, this.over));
    if (actions) this.names = actions;
    return role === undefined ? {} : { role };
  }

  /** Runs a check of what code says about roles. @throws Violation instead of the check's fault */
  private checked<T>(call: string, check: () => T): T {
    try {
      return check();
    } catch (error) {
      const fault = FaultError.faultIn(error);
      if (!fault) throw error;
      throw this.bad('roles', `${call} ${fault.what}`, fault.remedy);
    }
  }

  private async call<T>(call: Call, run: () => T | Promise<T>, as: string = call): Promise<T> {
    this.announce(call);
    try {
      return await run();
    } catch (error) {
      throw this.failure(as, error);
    }
  }

  private thrown<T>(call: Call, run: () => T): T {
    try {
      return run();
    } catch (error) {
      throw this.failure(call, error);
    }
  }

  private failure(call: string, error: unknown): Violation {
    const fault = FaultError.faultIn(error);
    if (fault) return this.bad('calls', `The environment ${fault.what}`, fault.remedy);
    const { message, stack } = (error ?? {}) as Partial<Error>;
    const what = shown(typeof message === 'string' ? message : error);
    return new Violation('calls', `${call} throws ${what} ${this.position()}.`, stack);
  }

  private bad(requirement: Violation['requirement'], what: string, remedy: string): Violation {
    return new Violation(requirement, `${what} ${this.position()}: ${remedy}.`);
  }

  private state(observation: unknown, call: string): State {
    const { text, images = [] } = (typeof observation === 'string' ? { text: observation } : (observation ?? {})) as {
      text?: unknown;
      images?: unknown;
    };
    if (typeof text !== 'string')
      throw this.bad(
        'observation',
        `${call} returns the observation ${shown(observation)}`,
        'return a text, or { text, images }',
      );
    const sound =
      Array.isArray(images) &&
      images.every(image => image instanceof Uint8Array && png.every((byte, i) => image[i] === byte));
    if (!sound)
      throw this.bad(
        'observation',
        `${call} returns images that are not PNG data`,
        'return each image as a Uint8Array of a PNG file',
      );
    return { text, images: images.map(image => (image as Uint8Array).slice()) };
  }

  private info(info: unknown, call: string): Record<string, unknown> {
    if (info === null || typeof info !== 'object' || Array.isArray(info))
      throw this.bad(
        'info',
        `${call} returns ${shown(info)} as info`,
        'return an object ({} if there is nothing to report)',
      );
    try {
      return plainValue(info) as Record<string, unknown>;
    } catch (error) {
      throw this.bad(
        'info',
        `${call} returns an invalid info: ${(error as Error).message}`,
        'put only plain data into info',
      );
    }
  }

  /**
   * Returns the action names of this episode: the names that `reset` returned, or else the definition's names. Returns
   * undefined if actions are texts.
   */
  private lookup(own: unknown): ActionLookup | undefined {
    const { actions } = this.definition;
    const names: unknown = own ?? (typeof actions === 'function' ? actions(this.config) : actions);
    if (names === undefined) return undefined;
    const entries = names === null || typeof names !== 'object' ? [] : Object.entries(names);
    if (
      !entries.every(([id, name]) => Number.isInteger(Number(id)) && typeof name === 'string') ||
      entries.length === 0
    )
      throw this.bad('actions', `the actions are ${shown(names)}`, 'use integer ids, such as { 1: "Left" }');
    return Object.fromEntries(entries);
  }
}

/** Returns the environment, which executes tool calls if it has tools. */
function playable(environment: Environment): Environment {
  const tools = declaredTools(environment.tools);
  return tools.size > 0 ? withTools(environment, () => tools) : environment;
}

/** Whether two states have equal texts and equal images. */
export function sameState(one: State, other: State): boolean {
  return (
    one.text === other.text &&
    one.images.length === other.images.length &&
    one.images.every((image, i) => Buffer.compare(image, other.images[i]) === 0)
  );
}
