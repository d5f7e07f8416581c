// The requirement on an environment's solver: `solve` returns plans that solve at least half of the episodes, and a
// call of `solve` does not change the state.
import type { Action } from '../../../../envs/api/environment';
import { plural, reportsSuccess, Skip } from './evidence';
import { Violation, type Instance, type Step } from './environment-instance';
import type { RandomPlay } from './random-play';

/** Result of an episode played by the solver. */
interface Solved {
  instance: Instance;
  actions: Action[];
  last: Step | undefined;
  /** Whether `solve` returned a plan with at least one action for the first state. */
  planned: boolean;
  success: boolean;
}

/** Maximum number of solver actions per episode. */
const mostSolved = 500;

/**
 * Checks that the solver solves at least half of the episodes for which it returns a plan, and that a call of the
 * solver does not change the state. Returns a sentence that describes what was observed.
 */
export async function solves(play: RandomPlay): Promise<string | Skip> {
  if (!play.create().has('solve')) return new Skip('The environment has no solver.');
  for (const reference of play.references.slice(0, 2)) {
    const instance = play.create();
    let asked = 0;
    // The solver is called only before the first three actions, because it may be slow.
    const ask = async () => asked++ < 3 && (await instance.solve());
    await play.follow(instance, reference, 'An episode differs when its solver is called before its actions', ask);
  }
  let solved = 0;
  let tried = 0;
  let unsolved: string | undefined;
  for (const { seed } of play.references) {
    if (tried > 0 && performance.now() > play.deadline) break;
    const { instance, planned, success } = await solveEpisode(play, seed);
    if (!planned) continue;
    tried++;
    if (success) solved++;
    else
      unsolved ??= `${instance.position()} ${instance.over ? 'the episode ended without success' : 'the episode has not ended'}`;
  }
  if (tried === 0) return new Skip(`The solver returns no plan for any of ${plural(play.references.length, 'seed')}.`);
  // Random transitions may make correct plans fail, but rarely in more than half of the episodes.
  if (solved * 2 < tried)
    throw new Violation('calls', `The solver solves ${solved} of ${plural(tried, 'seed')}: ${unsolved}.`);
  return `The solver solves ${solved} of ${plural(tried, 'seed')}${unsolved ? `; ${unsolved}` : ''}.`;
}

/**
 * Plays the solver's plan unchanged. If the plan fails, plays the episode again and calls the solver before each
 * action, because the environment may have random transitions.
 */
export async function solveEpisode(play: RandomPlay, seed: number): Promise<Solved> {
  const asItIs = await playPlan(play, seed, false);
  return asItIs.success || !asItIs.planned ? asItIs : playPlan(play, seed, true);
}

async function playPlan(play: RandomPlay, seed: number, anew: boolean): Promise<Solved> {
  const instance = play.create();
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
  const success = instance.over && reportsSuccess(last!);
  return { instance, actions, last, planned, success };
}
