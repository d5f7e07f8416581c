// Requirements on single calls: a step after the end, an action's effect, `render` and `close`.
import type { Action } from '../../../../envs/api/environment';
import { plural, quoted, round, Skip } from './evidence';
import { sameState, Violation, type Instance, type State } from './environment-instance';
import type { RandomPlay } from './random-play';
import { solveEpisode } from './solver-requirement';

/**
 * Checks that a step after the end of an episode is rejected. Such a step must either throw, or return reward 0 with
 * the last observation and report that the episode is over. Returns a sentence that describes what was observed.
 */
export async function refusesAfterEnd(play: RandomPlay): Promise<string | Skip> {
  let tried = 0;
  let threw = 0;
  for (const reference of await endedEpisodes(play)) {
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
          `The episode is over ${instance.position()}, but a further step(${instance.nameOf(action)}) ${what}: after the end, step must either throw, or return the last observation again, marked as the end, with reward 0.`,
        );
    }
  }
  if (tried === 0)
    return new Skip(
      `No episode ended within ${play.options.steps} actions, neither in random play nor with the solver.`,
    );
  return `${plural(tried, 'action')} tried after the end: ${threw > 0 ? 'step throws' : 'reward 0, same observation, still over'}.`;
}

/** Returns the episodes that random play or the solver has ended, each with actions to try after the end. */
async function endedEpisodes(play: RandomPlay): Promise<{ instance: Instance; last: State; actions: Action[] }[]> {
  const ended = play.references
    .filter(({ instance }) => instance.over)
    .map(({ instance, steps, actions }) => ({ instance, last: steps.at(-1)!, actions: [...actions].reverse() }));
  for (const { seed } of play.references.slice(0, 2)) {
    const solved = await solveEpisode(play, seed).catch(() => undefined);
    if (solved?.instance.over && solved.last && solved.actions.length > 0)
      ended.push({ instance: solved.instance, last: solved.last, actions: [...solved.actions].reverse() });
  }
  return ended;
}

/**
 * Checks that each action had an effect at least once in random play. Returns a sentence that describes what was
 * observed.
 */
export function actionsDoSomething(play: RandomPlay): string | Skip {
  if (play.coverage.size === 0) {
    const said = new Set(play.references.flatMap(({ steps }) => steps.map(({ text }) => text)));
    return new Skip(`The environment takes text; random answers led to ${plural(said.size, 'different observation')}.`);
  }
  const listed = [...play.coverage].map(([id, { name, times }]) => `${name} (${id}) ${times}×`);
  const idle = [...play.coverage].filter(([, { effective }]) => !effective).map(([id, { name }]) => `${name} (${id})`);
  if (idle.length > 0)
    throw new Violation(
      'calls',
      `${idle.join(', ')} never changed the state in ${plural(play.stepsPlayed, 'action')} of random play: ${listed.join(', ')}.`,
    );
  return `${listed.join(', ')}.`;
}

/** Checks that `render` shows the state and does not change it. Returns a sentence that describes what was observed. */
export async function rendersPurely(play: RandomPlay): Promise<string | Skip> {
  if (!play.create().has('render')) return new Skip('The environment has no render.');
  let rendered = 0;
  for (const reference of play.references) {
    const instance = play.create();
    const otherwise = 'An episode differs when it is rendered before each action';
    await play.follow(instance, reference, otherwise, async () => {
      const [one, other] = [await instance.render(), await instance.render()];
      rendered++;
      if (!sameState(one, other))
        throw new Violation(
          'observation',
          `The same state renders differently ${instance.position()}: ${quoted(one.text)}, then ${quoted(other.text)}.`,
        );
    });
    const other = play.create();
    await play.follow(other, reference, otherwise);
    const [one, two] = [await instance.render(), await other.render()];
    if (!sameState(one, two))
      throw new Violation(
        'observation',
        `Another instance in the same state renders differently ${instance.position()}: ${quoted(one.text)} and ${quoted(two.text)}.`,
      );
  }
  return `${plural(rendered, 'state')} rendered twice.`;
}

/** Checks that `close` can end an episode at any time. Returns a sentence that describes what was observed. */
export async function closes(play: RandomPlay): Promise<string | Skip> {
  if (!play.create().has('close')) return new Skip('The environment has no close.');
  await play.create().close(); // the worker also closes without a reset when it loads an environment
  for (const { instance, seed } of play.references) {
    const begun = play.create();
    await begun.reset(seed);
    await begun.close();
    await instance.close();
  }
  return `close was called before a reset, after a reset, and at the end of ${plural(play.references.length, 'episode')}.`;
}
