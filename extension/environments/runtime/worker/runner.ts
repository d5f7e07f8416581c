// Runs items, such as resets and steps, on the episodes of one environment, inside the worker. Does not trust
// environment code: each returned value is checked before it is sent. If a call into environment code throws, only the
// episode of this call ends.
import { types } from 'node:util';
import type { Environment, MaybePromise, Observation, ResetOptions } from '../../../../envs/api/environment';
import type { StateForm } from '../../../../envs/api/state-forms';
import type { RoleDescription, ScoreRequest } from '../../../protocol/environment-link';
import type { ToolDescription } from '../../../protocol/tool-link';
import { mergedInfo } from '../../../run-data/turn-info';
import {
  checkedActions,
  checkedEnvironment,
  describe,
  loadDefinition,
  parseConfig,
  type LoadedCode,
} from './definition';
import { lockBuiltIns } from '../build/frozen-built-ins';
import { badValue, FaultError, faultOf } from '../threads/fault';
import { Owner, runFor } from './unhandled-errors';
import { ScoreFunctions } from './score-functions';
import { declaredTools } from '../tools/declared-tools';
import type { ToolServers } from '../tools/tool-servers';
import { defaultToolSettings, withTools } from '../tools/tool-environment';
import { checkedTurn } from './returned-roles';
import { checkedInfo, checkedState, checkedStep, setObservation, solution } from './returned-steps';
import { shown } from './returned-values';
import type { Outcome, WorkerSetup, WorkItem, WorkResult } from '../threads/worker-messages';

/** Callbacks for an item's calls into environment code. */
export interface CallWatch {
  /** Called when a call starts. `action` is the index of the current action, −1 for calls without an action. */
  enters(action: number): void;
  /**
   * Called when a call returns a promise. The result settles like this promise, or rejects with a fault when the time
   * limit is reached or the owner is interrupted.
   */
  waits<T>(promise: PromiseLike<T>, owner: Owner): Promise<T>;
}

/** The item that is being run. */
interface CurrentItem {
  watch: CallWatch;
  owner: Owner;
  /** Index of the current action; it is part of each fault. */
  action: number;
}

/** The result of an item that has finished. */
export interface Finished {
  result: WorkResult;
  owner: Owner;
}

interface Episode {
  environment: Environment;
  /** Action names by id; undefined if actions are texts. */
  names?: Record<number, string>;
  owner: Owner;
  /** Ends the tool servers that were started for the episode. */
  closeServers?: (() => Promise<void>) | undefined;
}

export class Runner {
  private loaded!: LoadedCode;
  private scores!: ScoreFunctions;
  /** Action names that the definition declares. */
  private names: Record<number, string> | undefined;
  private config: Record<string, unknown> = {};
  private hasTools = false;
  private roles: readonly RoleDescription[] | undefined;
  private servers: ToolServers | undefined;
  private readonly episodes = new Map<string, Episode>();

  constructor(private readonly setup: WorkerSetup) {}

  /**
   * Runs one item. A fault is returned in the result and never thrown. Items of different episodes may overlap. If a
   * stray error (unhandled-errors.ts) of the item's owner occurs before `sent` is called, the result contains this
   * error.
   */
  run(item: WorkItem, watch: CallWatch): MaybePromise<Finished> {
    const owner = this.ownerOf(item);
    const current: CurrentItem = { watch, owner, action: -1 };
    const reached: Partial<WorkResult> = {};
    owner.working++;
    try {
      refuseFaulty(owner);
      const pending = runFor(owner, () => this.perform(item, reached, current));
      if (pending)
        return pending.then(
          () => this.finished(item, current, reached),
          (error: unknown) => this.finished(item, current, reached, { error }),
        );
    } catch (error) {
      return this.finished(item, current, reached, { error });
    }
    return this.finished(item, current, reached);
  }

  private finished(
    item: WorkItem,
    { owner, action }: CurrentItem,
    reached: WorkResult,
    thrown?: { error: unknown },
  ): Finished {
    let result = reached;
    if (thrown || owner.fault) {
      const fault = { ...(owner.fault ?? faultOf(thrown?.error)), action };
      // After a stray error or a timeout, the result contains only the fault. This result is the same as if the worker
      // had been ended.
      const asEnded = owner.fault !== undefined || fault.kind === 'timed_out';
      result = asEnded ? { fault } : { ...reached, fault };
      owner.fault = undefined;
      if (item.do !== 'solve') this.forget(item, owner);
    }
    owner.working--;
    if (item.do === 'close' || item.do === 'load') owner.over = item.do === 'close' || result.fault !== undefined;
    owner.unsent = result;
    return { result, owner };
  }

  /**
   * Must be called when a result has been sent. A later stray error of the item's owner then fails the owner's next
   * item.
   */
  sent(item: WorkItem, { result, owner }: Finished): void {
    if (owner.unsent !== result) return;
    owner.unsent = undefined;
    if (item.do === 'load') owner.over = true;
    if (result.fault && item.do !== 'solve') this.forget(item, owner);
  }

  private forget(item: WorkItem, owner: Owner): void {
    owner.over = true;
    if (item.do !== 'load' && this.episodes.get(item.episode)?.owner === owner) this.drop(item.episode);
  }

  private ownerOf(item: WorkItem): Owner {
    if (item.do === 'load') return new Owner(`environment ${this.setup.tag} at load`);
    const { episode } = item;
    const held = item.do === 'reset' || item.do === 'replay' ? undefined : this.episodes.get(episode);
    const member = item.do === 'reset' || item.do === 'replay' ? `, seed ${item.seed}, member ${item.member},` : '';
    return held?.owner ?? new Owner(`environment ${this.setup.tag} in episode ${episode}${member}`);
  }

  /**
   * Calls environment code. Returns its value. If the value is a promise, returns the result of `waits` for this
   * promise.
   */
  private call<T>(current: CurrentItem, action: number, code: () => MaybePromise<T>): MaybePromise<T> {
    current.action = action;
    current.watch.enters(action);
    const returned = code();
    return isThenable(returned) ? current.watch.waits(returned, current.owner) : returned;
  }

  /** Runs an item. For a step, returns a promise only if the environment returns a promise. */
  private perform(item: WorkItem, result: Partial<WorkResult>, current: CurrentItem): MaybePromise<void> {
    if (item.do !== 'step') return this.performOther(item, result, current);
    const outcomes: Outcome[] = [];
    result.outcomes = outcomes;
    const episode = this.episode(item.episode);
    const acting = this.step(episode.environment, item.actions, 0, result, outcomes, current);
    const { score, state_form } = item;
    const describe = async (): Promise<void> => {
      if (state_form) await this.describeState(episode.environment, state_form, result, current);
      if (score) await this.score(episode, score, result, current);
      this.renameActions(episode, result); // the score names the actions of the turn before
    };
    if (!score && !state_form && !this.roles) return acting;
    return acting ? acting.then(describe) : describe();
  }

  /** Asks the environment for its true state. */
  private async describeState(
    environment: Environment,
    form: StateForm,
    result: Partial<WorkResult>,
    current: CurrentItem,
  ): Promise<void> {
    result.true_state = checkedState(await this.call(current, -1, () => environment.state?.(form)));
    refuseFaulty(current.owner);
  }

  /** Calls the score functions after the actions of a step. */
  private async score(
    { environment, names }: Episode,
    request: ScoreRequest,
    result: Partial<WorkResult>,
    current: CurrentItem,
  ): Promise<void> {
    const call = <T>(code: () => MaybePromise<T>): MaybePromise<T> => this.call(current, -1, code);
    const outcomes = result.outcomes ?? [];
    if ('episode' in request) result.components = await this.scores.episode(environment, request.episode, call);
    else {
      const executed = outcomes.map(({ action }) => names?.[Number(action)] ?? String(action));
      const info = structuredClone(mergedInfo(outcomes.map(({ info }) => info))); // a score function may change it
      const reward = outcomes.reduce((sum, outcome) => sum + outcome.reward, 0);
      const calls = structuredClone(outcomes.at(-1)?.calls);
      const turn = { ...request.turn, executed, reward, info, ...(calls && { calls }) };
      result.components = await this.scores.turn(environment, turn, call);
    }
    refuseFaulty(current.owner);
  }

  private async performOther(
    item: Exclude<WorkItem, { do: 'step' }>,
    result: Partial<WorkResult>,
    current: CurrentItem,
  ): Promise<void> {
    if (item.do === 'load') {
      current.watch.enters(-1);
      this.loaded = loadDefinition(this.setup);
      const { definition, rewards } = this.loaded;
      this.config = parseConfig(definition.config, this.setup.config, this.setup.tag);
      const description = await this.call(current, -1, () =>
        describe(this.loaded, this.config, this.setup.tools, own => this.servedTools(own)),
      );
      this.scores = new ScoreFunctions(description.components ?? {}, rewards);
      this.names = description.actions;
      this.hasTools = description.tools !== undefined;
      this.roles = description.roles;
      result.description = description;
      lockBuiltIns();
    } else if (item.do === 'reset') {
      const environment = await this.reset(item, result, current);
      if (item.state_form) await this.describeState(environment, item.state_form, result, current);
    } else if (item.do === 'replay') {
      const environment = await this.reset(item, {}, current);
      for (let i = 0; i < item.actions.length; i++) {
        const step = await this.call(current, i, () => environment.step(item.actions[i]));
        if (!this.roles) continue;
        const { next } = checkedStep(step, item.actions[i], this.roles);
        this.renameActions(this.episode(item.episode), next ?? {});
      }
    } else if (item.do === 'solve') {
      const { environment } = this.episode(item.episode);
      result.solution = solution(await this.call(current, -1, () => environment.solve?.()));
    } else {
      const held = this.drop(item.episode);
      await this.call(current, -1, () => held?.environment.close?.());
    }
  }

  /** In an environment with roles, notes the legal actions of the turn that follows a step. */
  private renameActions(episode: Episode, { actions }: Pick<WorkResult, 'actions'>): void {
    if (this.roles && actions) episode.names = actions;
  }

  private episode(id: string): Episode {
    const held = this.episodes.get(id);
    if (!held) throw badValue(`has no episode ${id}`, 'reset it first');
    return held;
  }

  /** Starts the tool servers of the configuration and returns their tools. */
  private async servedTools(own: readonly string[]): Promise<ToolDescription[]> {
    const { tag, tools } = this.setup;
    if (!tools || Object.keys(tools.servers).length === 0) return [];
    const { ToolServers } = await import('../tools/tool-servers'); // large, and seldom needed
    this.servers ??= new ToolServers(tag, tools);
    return this.servers.describe(own);
  }

  /** Creates an environment that executes tool calls. */
  private async withTools(environment: Environment): Promise<Omit<Episode, 'owner'>> {
    const tools = declaredTools(environment.tools);
    const served = await this.servers?.open();
    for (const tool of served?.tools ?? []) tools.set(tool.description.name, tool);
    const settings = this.setup.tools ?? defaultToolSettings;
    return { environment: withTools(environment, () => tools, settings), closeServers: served?.close };
  }

  /** Removes an episode and ends its tool servers. Returns the episode. */
  private drop(episode: string): Episode | undefined {
    const held = this.episodes.get(episode);
    this.episodes.delete(episode);
    void held?.closeServers?.();
    return held;
  }

  private async reset(
    { episode, seed, member, mode }: { episode: string; seed: number; member: number; mode: 'train' | 'val' },
    result: Partial<WorkResult>,
    current: CurrentItem,
  ): Promise<Environment> {
    const earlier = this.drop(episode);
    if (earlier) {
      earlier.owner.over = true;
      await runFor(earlier.owner, () => this.call(current, -1, () => earlier.environment.close?.()));
    }
    current.watch.enters(-1);
    const created = checkedEnvironment(this.loaded.definition.create(this.config));
    const played = this.hasTools
      ? await this.call(current, -1, () => this.withTools(created))
      : { environment: created, closeServers: undefined };
    try {
      await this.begin(played.environment, { seed, member, mode }, result, current);
    } catch (error) {
      void played.closeServers?.();
      throw error;
    }
    const names = result.actions ?? this.names;
    this.episodes.set(episode, { ...played, ...(names && { names }), owner: current.owner });
    return played.environment;
  }

  private async begin(
    environment: Environment,
    options: ResetOptions,
    result: Partial<WorkResult>,
    current: CurrentItem,
  ): Promise<void> {
    const begun: unknown = await this.call(current, -1, () => environment.reset(options));
    if (begun === null || typeof begun !== 'object')
      throw badValue(`returned ${shown(begun)}`, 'return { observation } from reset');
    const { observation, info, actions, role } = begun as Record<string, unknown> & { observation?: Observation };
    setObservation(observation, result);
    if (info !== undefined) result.info = checkedInfo(info);
    if (actions !== undefined) result.actions = checkedActions(actions);
    if (this.roles) Object.assign(result, checkedTurn({ role: role as string }, this.roles, false));
  }

  /**
   * Executes the actions from index `from` to the end. Returns a promise only if a call into the environment returns a
   * promise.
   */
  private step(
    environment: Environment,
    actions: (number | string)[],
    from: number,
    result: Partial<WorkResult>,
    outcomes: Outcome[],
    current: CurrentItem,
  ): MaybePromise<void> {
    const settle = (step: unknown, i: number): boolean => {
      const { observation, next, ...outcome } = checkedStep(step, actions[i], this.roles);
      setObservation(observation, result);
      outcomes.push(outcome);
      delete result.role; // the next turn after an earlier action of the same step
      Object.assign(result, next);
      refuseFaulty(current.owner);
      return outcome.terminated || outcome.truncated || i === actions.length - 1;
    };
    for (let i = from; i < actions.length; i++) {
      const returned = this.call(current, i, () => environment.step(actions[i]));
      if (isPending(returned))
        return returned.then(step =>
          settle(step, i) ? undefined : this.step(environment, actions, i + 1, result, outcomes, current),
        );
      if (settle(returned, i)) return;
    }
  }
}

/** @throws FaultError if the owner has a stray error */
function refuseFaulty({ fault }: Owner): void {
  if (fault) throw new FaultError(fault);
}

function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

/**
 * Whether `call` returned a promise. Checking for native promises is enough, because `call` returns only promises that
 * `waits` has created.
 */
const isPending = <T>(value: MaybePromise<T>): value is Promise<T> => types.isPromise(value);
