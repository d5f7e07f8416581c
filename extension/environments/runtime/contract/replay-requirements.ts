// Requirements on whole episodes. They are checked by playing the reference episodes again: in new instances,
// interleaved, and in the same instance after a reset.
import { maximum } from '../../../common/lists';
import { plural } from './evidence';
import type { RandomPlay } from './random-play';

/** Checks that the same seed and actions give the same episode. Returns a sentence that describes what was observed. */
export async function replays(play: RandomPlay): Promise<string> {
  for (const reference of play.references) await play.follow(play.create(), reference, 'A second instance differs');
  return `${plural(play.references.length, 'seed')}, ${plural(play.stepsPlayed, 'action')} replayed in new instances.`;
}

/**
 * Checks that the members of a group start from the same state. Returns a sentence that describes what was observed.
 */
export async function membersBeginAlike(play: RandomPlay): Promise<string> {
  for (const { seed, first } of play.references) {
    const instance = play.create();
    play.compare(first, await instance.reset(seed, 1), instance, 'Member 1 of the group starts from a different state');
  }
  return `Members 0 and 1 were compared at ${plural(play.references.length, 'seed')}.`;
}

/** Checks that concurrent episodes do not affect each other. Returns a sentence that describes what was observed. */
export async function interleaved(play: RandomPlay): Promise<string> {
  const playing = play.references.map(reference => ({ reference, instance: play.create() }));
  const otherwise = 'An episode differs when other episodes are played between its actions';
  for (const { reference, instance } of playing)
    play.compare(reference.first, await instance.reset(reference.seed), instance, otherwise);
  const longest = maximum(play.references.map(({ actions }) => actions.length));
  for (let i = 0; i < longest; i++)
    for (const { reference, instance } of playing)
      if (i < reference.actions.length)
        play.compare(reference.steps[i], await instance.step(reference.actions[i]), instance, otherwise);
  return `${plural(playing.length, 'episode')} interleaved.`;
}

/**
 * Checks that `reset` starts a new episode, both during an episode and after its end. Returns a sentence that describes
 * what was observed.
 */
export async function resetsAnew(play: RandomPlay): Promise<string> {
  const ended = play.references.filter(({ instance }) => instance.over);
  for (const reference of play.references) {
    const { instance } = reference;
    const otherwise = instance.over
      ? 'A reset after the end starts a different episode'
      : 'A reset in mid-episode starts a different episode';
    await play.follow(instance, reference, otherwise);
  }
  return `${plural(ended.length, 'episode')} that had ended and ${play.references.length - ended.length} in progress were reset.`;
}
