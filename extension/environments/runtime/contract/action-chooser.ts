// Chooses actions for random play. If actions are named, draws the id of an action. If actions are texts, draws a
// plausible text or a meaningless text. Plausible texts come from the examples in the instruction, the solver's plan or
// the words of the observation.
import type { Action } from '../../../../envs/api/environment';
import type { Pcg64 } from '../../../../envs/api/random/pcg64';
import type { State } from './environment-instance';

const nonsense = ['', ' ', '0', 'none of these', '((', '𝔵 → ü'];

/**
 * Returns a function that draws the next action of an episode.
 * @param first state after the reset
 * @param plan the solver's plan for this state
 */
export function actionChooser(
  first: State,
  instruction: string,
  plan: readonly Action[],
): (random: Pcg64, state: State) => Action {
  if (Object.keys(first.names ?? {}).length > 0)
    return (random, { names = first.names }) => {
      const ids = Object.keys(names!).map(Number);
      return ids[random.integers(0, ids.length)];
    };
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
