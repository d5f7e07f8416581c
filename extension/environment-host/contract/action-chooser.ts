// What random play does: where actions have names, one of them; where an environment takes text, texts that mean something to it at all
// (what its instruction shows, what its solver says, pieces of what it showed), right or wrong, and some that mean nothing.
import type { Action } from '../../../envs/api/environment';
import type { Pcg64 } from '../../../envs/api/random/pcg64';
import type { State } from './instance';

const nonsense = ['', ' ', '0', 'none of these', '((', '𝔵 → ü'];

/** Chooses the next action of an episode that began with `first`. `plan` is what its solver says at the beginning. */
export function actionChooser(
  first: State,
  instruction: string,
  plan: readonly Action[],
): (random: Pcg64, state: State) => Action {
  const ids = Object.keys(first.names ?? {}).map(Number);
  if (ids.length > 0) return random => ids[random.integers(0, ids.length)];
  const examples = [...instruction.matchAll(/<answer>([\s\S]*?)<\/answer>/g)].flatMap(([, answer]) =>
    answer.split('||'),
  );
  const known: Action[] = [...examples.map(example => example.trim()), ...plan];
  return (random, state) => {
    const pick = <T>(from: readonly T[]): T => from[random.integers(0, from.length)];
    const pieces = state.text.match(/[\w-]+(?:\[[^\]]*\])?|\[[^\]]*\]/g) ?? [];
    const kind = random.random();
    if (kind < 0.5 && known.length > 0) return pick(known);
    if (kind < 0.85 && pieces.length > 0) return pick(pieces);
    return pick(nonsense);
  };
}
