// Runs work items on the episodes of one environment, inside the worker. Nothing an environment returns is believed: each value is
// checked before it leaves, and whatever it throws ends its own episode alone.
import type { Environment, EnvironmentDefinition, Observation } from '../../envs/api/environment';
import { describe, loadDefinition, parseConfig } from './definition';
import { badValue, faultOf } from './fault';
import { plainValue, shown } from './values';
import type { Outcome, WorkerSetup, WorkItem, WorkResult } from './work';

export class Runner {
  private definition!: EnvironmentDefinition;
  private config: Record<string, unknown> = {};
  private readonly episodes = new Map<string, Environment>();
  /** Index of the action in hand, for faults. */
  private action = -1;

  /** `announce(action)` is told before each call into environment code. */
  constructor(
    private readonly setup: WorkerSetup,
    private readonly announce: (action: number) => void,
  ) {}

  /** Does one item; a fault is part of the result, never thrown. */
  async run(item: WorkItem): Promise<WorkResult> {
    this.enter(-1);
    const reached: Partial<WorkResult> = {};
    try {
      await this.perform(item, reached);
      return reached;
    } catch (error) {
      if (item.do !== 'solve' && item.do !== 'load') this.episodes.delete(item.episode);
      return { ...reached, fault: { ...faultOf(error), action: this.action } };
    }
  }

  private enter(action: number): void {
    this.action = action;
    this.announce(action);
  }

  private async perform(item: WorkItem, result: Partial<WorkResult>): Promise<void> {
    if (item.do === 'load') {
      this.definition = loadDefinition(this.setup);
      this.config = parseConfig(this.definition.config, this.setup.config, this.setup.tag);
      result.description = await describe(this.definition, this.config);
    } else if (item.do === 'reset') {
      await this.reset(item, result);
    } else if (item.do === 'replay') {
      const environment = await this.reset(item, {});
      for (let i = 0; i < item.actions.length; i++) {
        this.enter(i);
        await environment.step(item.actions[i]);
      }
    } else if (item.do === 'step') {
      await this.step(this.episode(item.episode), item.actions, result);
    } else if (item.do === 'solve') {
      result.solution = solution(await this.episode(item.episode).solve?.());
    } else {
      const environment = this.episodes.get(item.episode);
      this.episodes.delete(item.episode);
      await environment?.close?.();
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
  ): Promise<Environment> {
    const earlier = this.episodes.get(episode);
    this.episodes.delete(episode);
    await earlier?.close?.();
    const environment = this.definition.create(this.config);
    const begun: unknown = await environment.reset({ seed, member, mode });
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
  ): Promise<void> {
    const outcomes: Outcome[] = [];
    result.outcomes = outcomes;
    for (let i = 0; i < actions.length; i++) {
      this.enter(i);
      const returned = environment.step(actions[i]);
      const step: unknown = isThenable(returned) ? await returned : returned;
      const outcome = checkedOutcome(step, actions[i]);
      const last = outcome.terminated || outcome.truncated || i === actions.length - 1;
      setObservation((step as { observation?: Observation }).observation, result);
      outcomes.push(outcome);
      if (last) return;
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
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
  if (images !== undefined && !(Array.isArray(images) && images.every(image => image instanceof Uint8Array)))
    throw badValue('returned images that are no byte arrays', 'return PNG bytes as Uint8Array in images');
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

function checkedActions(actions: unknown): Record<number, string> {
  const entries = actions === null || typeof actions !== 'object' ? [] : Object.entries(actions);
  if (entries.length === 0 || !entries.every(([id, name]) => Number.isInteger(Number(id)) && typeof name === 'string'))
    throw badValue(
      `returned ${shown(actions)} as actions`,
      'return names by whole numbers, such as { 1: "Left" }, or none',
    );
  return Object.fromEntries(entries) as Record<number, string>;
}

function solution(actions: unknown): (number | string)[] | undefined {
  if (actions === undefined) return undefined;
  const known =
    Array.isArray(actions) && actions.every(action => typeof action === 'string' || Number.isFinite(action));
  if (!known) throw badValue(`returned ${shown(actions)}`, 'return an array of actions, or nothing, from solve');
  return actions as (number | string)[];
}
