// The score functions of an environment: those of its own code and those of its rewards file. Checks the declared
// components and every returned value, because environment code is not trusted.
import type { Environment, EnvironmentDefinition, MaybePromise } from '../../../../envs/api/environment';
import type { AnsweredEpisode, AnsweredTurn, RewardsDefinition } from '../../../../envs/api/rewards';
import { longestComponent, mostComponents } from '../../../protocol/environment-message-bounds';
import type { Scores } from '../../../protocol/environment-link';
import { badValue, FaultError } from '../threads/fault';
import { shown } from './returned-values';

const componentName = new RegExp(`^[A-Za-z_][\\w-]{0,${longestComponent - 1}}$`);

const badRewards = (what: string) =>
  new FaultError({
    kind: 'build',
    what,
    remedy: 'end the rewards file with "export default defineRewards({ components, score, scoreEpisode })"',
  });

/**
 * Checks the default export of a rewards file.
 * @throws FaultError if it is no rewards definition
 */
export function checkedRewards(found: unknown): RewardsDefinition {
  if (found === null || typeof found !== 'object') throw badRewards('has a rewards file without a default export');
  const { components, score, scoreEpisode } = found as Partial<RewardsDefinition>;
  if (components === null || typeof components !== 'object')
    throw badRewards(`has a rewards file whose components are ${shown(components)}`);
  for (const [name, method] of Object.entries({ score, scoreEpisode }))
    if (method !== undefined && typeof method !== 'function')
      throw badRewards(`has a rewards file whose ${name} is ${shown(method)}`);
  if (!score && !scoreEpisode) throw badRewards('has a rewards file without score and scoreEpisode');
  return found as RewardsDefinition;
}

/**
 * Returns the default weights of all components that an environment and its rewards file declare; undefined if they
 * declare none.
 * @throws FaultError if a name or a weight is invalid, or if both declare the same component
 */
export function declaredComponents(
  { components: own = {} }: Pick<EnvironmentDefinition, 'components'>,
  rewards?: RewardsDefinition,
): Record<string, number> | undefined {
  const further = rewards?.components ?? {};
  const both = Object.keys(own).find(name => Object.hasOwn(further, name));
  if (both !== undefined)
    throw badValue(
      `declares the reward component ${both}, which its rewards file declares too`,
      'rename one of the two components',
    );
  const entries = [...Object.entries(own), ...Object.entries(further)];
  if (entries.length > mostComponents)
    throw badValue(`declares ${entries.length} reward components`, `declare at most ${mostComponents}`);
  for (const [name, weight] of entries) {
    if (!componentName.test(name))
      throw badValue(
        `declares the reward component ${shown(name)}`,
        `use a name of letters, digits, underscores and hyphens, with at most ${longestComponent} characters`,
      );
    if (typeof weight !== 'number' || !Number.isFinite(weight))
      throw badValue(
        `declares the reward component ${name} with the weight ${shown(weight)}`,
        'set the weight to a finite number (0 only measures the component)',
      );
  }
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

/** Calls a score function of environment code; the caller watches the call's time limit. */
export type ScoreCall = <T>(code: () => MaybePromise<T>) => MaybePromise<T>;

export class ScoreFunctions {
  constructor(
    private readonly known: Readonly<Record<string, number>>,
    private readonly rewards: RewardsDefinition | undefined,
  ) {}

  /** Returns which score functions exist, given an environment of the definition; undefined if none exist. */
  of(environment: Environment): Scores | undefined {
    const has = (name: 'score' | 'scoreEpisode'): boolean =>
      typeof environment[name] === 'function' || typeof this.rewards?.[name] === 'function';
    const scores = { turn: has('score'), episode: has('scoreEpisode') };
    return scores.turn || scores.episode ? scores : undefined;
  }

  /** Returns the component values of a turn. */
  turn(environment: Environment, turn: AnsweredTurn, call: ScoreCall): Promise<Record<string, number>> {
    return this.values('score', call, [
      environment.score && (() => environment.score!(turn)),
      this.rewards?.score && (() => this.rewards!.score!(turn)),
    ]);
  }

  /** Returns the component values of a complete episode. */
  episode(environment: Environment, episode: AnsweredEpisode, call: ScoreCall): Promise<Record<string, number>> {
    return this.values('scoreEpisode', call, [
      environment.scoreEpisode && (() => environment.scoreEpisode!(episode)),
      this.rewards?.scoreEpisode && (() => this.rewards!.scoreEpisode!(episode)),
    ]);
  }

  private async values(
    name: string,
    call: ScoreCall,
    functions: readonly ((() => MaybePromise<unknown>) | undefined)[],
  ): Promise<Record<string, number>> {
    const values: Record<string, number> = {};
    for (const each of functions) if (each) Object.assign(values, this.checked(name, await call(each)));
    return values;
  }

  /** Copies the returned values. Reads each property once, because a getter may return another value each time. */
  private checked(name: string, returned: unknown): Record<string, number> {
    if (returned === null || typeof returned !== 'object' || Array.isArray(returned))
      throw badValue(
        `returned ${shown(returned)} from ${name}`,
        'return an object with the values of components by name',
      );
    const values: Record<string, number> = {};
    for (const key of Object.keys(returned)) {
      const value = (returned as Record<string, unknown>)[key];
      if (value === undefined) continue;
      if (!Object.hasOwn(this.known, key))
        throw badValue(
          `returned the reward component ${shown(key)}, which it does not declare,`,
          `declare it in components, or return one of ${Object.keys(this.known).join(', ') || 'none'}`,
        );
      if (typeof value !== 'number' || !Number.isFinite(value))
        throw badValue(`returned ${shown(value)} as the reward component ${key}`, 'return a finite number');
      values[key] = value;
    }
    return values;
  }
}
