// Runs work items on the episodes of one environment, inside the worker. Nothing an environment returns is believed: each value is
// checked before it leaves, and whatever it throws ends its own episode alone.
import type { Environment, EnvironmentDefinition, MaybePromise, Observation } from '../../envs/api/environment';
import { largest, largestImages } from '../protocol/environment-bounds';
import { checkedActions, checkedEnvironment, describe, loadDefinition, parseConfig } from './definition';
import { badValue, faultOf } from './fault';
import { plainValue, shown } from './values';
import type { Outcome, WorkerSetup, WorkItem, WorkResult } from './work';

/** Watches over an item's calls into environment code. */
export interface CallWatch {
  /** A call begins; index of its action, −1 in other calls. */
  enters(action: number): void;
  /** A call returned a promise: ends as it does, or with a fault after the time limit. */
  waits<T>(promise: PromiseLike<T>): Promise<T>;
}

/** An item being done. */
interface InHand {
  watch: CallWatch;
  /** Index of the action in hand, for faults. */
  action: number;
}

export class Runner {
  private definition!: EnvironmentDefinition;
  private config: Record<string, unknown> = {};
  private readonly episodes = new Map<string, Environment>();

  constructor(private readonly setup: WorkerSetup) {}

  /** Does one item; a fault is part of the result, never thrown. Items of different episodes may overlap. */
  async run(item: WorkItem, watch: CallWatch): Promise<WorkResult> {
    const hand = { watch, action: -1 };
    const reached: Partial<WorkResult> = {};
    try {
      await this.perform(item, reached, hand);
      return reached;
    } catch (error) {
      if (item.do !== 'solve' && item.do !== 'load') this.episodes.delete(item.episode);
      const fault = { ...faultOf(error), action: hand.action };
      return fault.kind === 'timed_out' ? { fault } : { ...reached, fault }; // as where the worker had to be ended
    }
  }

  /** A call into environment code: what it returned, or a promise of that where it is one. */
  private call<T>(hand: InHand, action: number, code: () => MaybePromise<T>): MaybePromise<T> {
    hand.action = action;
    hand.watch.enters(action);
    const returned = code();
    return isThenable(returned) ? hand.watch.waits(returned) : returned;
  }

  private async perform(item: WorkItem, result: Partial<WorkResult>, hand: InHand): Promise<void> {
    if (item.do === 'load') {
      hand.watch.enters(-1);
      this.definition = loadDefinition(this.setup);
      this.config = parseConfig(this.definition.config, this.setup.config, this.setup.tag);
      result.description = await this.call(hand, -1, () => describe(this.definition, this.config));
    } else if (item.do === 'reset') {
      await this.reset(item, result, hand);
    } else if (item.do === 'replay') {
      const environment = await this.reset(item, {}, hand);
      for (let i = 0; i < item.actions.length; i++) await this.call(hand, i, () => environment.step(item.actions[i]));
    } else if (item.do === 'step') {
      await this.step(this.episode(item.episode), item.actions, result, hand);
    } else if (item.do === 'solve') {
      const environment = this.episode(item.episode);
      result.solution = solution(await this.call(hand, -1, () => environment.solve?.()));
    } else {
      const environment = this.episodes.get(item.episode);
      this.episodes.delete(item.episode);
      await this.call(hand, -1, () => environment?.close?.());
    }
  }

  private episode(id: string): Environment {
    const environment = this.episodes.get(id);
    if (!environment) throw badValue(`has no episode ${id}`, 'reset it first');
    return environment;
  }

  private async reset(
    { episode, seed, member, mode }: { episode: string; seed: number; member: number; mode: 'train' | 'val' },
    result: Partial<WorkResult>,
    hand: InHand,
  ): Promise<Environment> {
    const earlier = this.episodes.get(episode);
    this.episodes.delete(episode);
    if (earlier) await this.call(hand, -1, () => earlier.close?.());
    hand.watch.enters(-1);
    const environment = checkedEnvironment(this.definition.create(this.config));
    const begun: unknown = await this.call(hand, -1, () => environment.reset({ seed, member, mode }));
    if (begun === null || typeof begun !== 'object')
      throw badValue(`returned ${shown(begun)}`, 'return { observation } from reset');
    const { observation, info, actions } = begun as { observation?: Observation; info?: unknown; actions?: unknown };
    setObservation(observation, result);
    if (info !== undefined) result.info = checkedInfo(info);
    if (actions !== undefined) result.actions = checkedActions(actions);
    this.episodes.set(episode, environment);
    return environment;
  }

  private async step(
    environment: Environment,
    actions: (number | string)[],
    result: Partial<WorkResult>,
    hand: InHand,
  ): Promise<void> {
    const outcomes: Outcome[] = [];
    result.outcomes = outcomes;
    for (let i = 0; i < actions.length; i++) {
      const returned = this.call(hand, i, () => environment.step(actions[i]));
      const step: unknown = isThenable(returned) ? await returned : returned;
      const outcome = checkedOutcome(step, actions[i]);
      const last = outcome.terminated || outcome.truncated || i === actions.length - 1;
      setObservation((step as { observation?: Observation }).observation, result);
      outcomes.push(outcome);
      if (last) return;
    }
  }
}

function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

function checkedOutcome(step: unknown, action: number | string): Outcome {
  const shape = 'return { observation, reward, terminated, truncated, info } from step';
  if (step === null || typeof step !== 'object') throw badValue(`returned ${shown(step)}`, shape);
  const { reward, terminated, truncated, info } = step as Record<string, unknown>;
  if (typeof reward !== 'number' || !Number.isFinite(reward))
    throw badValue(`returned the reward ${shown(reward)}`, 'return a finite number as the reward');
  if (typeof terminated !== 'boolean') throw badValue(`returned ${shown(terminated)} as terminated`, shape);
  if (typeof truncated !== 'boolean') throw badValue(`returned ${shown(truncated)} as truncated`, shape);
  return { action, reward, terminated, truncated, info: checkedInfo(info) };
}

function setObservation(observation: unknown, result: Partial<WorkResult>): void {
  const { text, images } = (typeof observation === 'string' ? { text: observation } : (observation ?? {})) as {
    text?: unknown;
    images?: unknown;
  };
  if (typeof text !== 'string')
    throw badValue(
      `returned the observation ${shown(observation)}`,
      'return a text, or { text, images }, as the observation',
    );
  if (text.length > largest)
    throw badValue(`returned an observation of ${text.length} characters`, `return at most ${largest}`);
  if (images !== undefined && !(Array.isArray(images) && images.every(image => image instanceof Uint8Array)))
    throw badValue('returned images that are no byte arrays', 'return PNG bytes as Uint8Array in images');
  const bytes = ((images ?? []) as Uint8Array[]).reduce((sum, { length }) => sum + length, 0);
  if (bytes > largestImages) throw badValue(`returned ${bytes} bytes of images`, `return at most ${largestImages}`);
  result.observation = text;
  if (images !== undefined) result.images = (images as Uint8Array[]).map(image => image.slice());
}

function checkedInfo(info: unknown): Record<string, unknown> {
  if (info === null || typeof info !== 'object' || Array.isArray(info))
    throw badValue(`returned ${shown(info)} as info`, 'return an object as info, empty if need be');
  try {
    return plainValue(info) as Record<string, unknown>;
  } catch (error) {
    throw badValue(`returned an info in which ${(error as Error).message}`, 'put plain data into info');
  }
}

function solution(actions: unknown): (number | string)[] | undefined {
  if (actions === undefined) return undefined;
  const known =
    Array.isArray(actions) && actions.every(action => typeof action === 'string' || Number.isFinite(action));
  if (!known) throw badValue(`returned ${shown(actions)}`, 'return an array of actions, or nothing, from solve');
  return actions as (number | string)[];
}
