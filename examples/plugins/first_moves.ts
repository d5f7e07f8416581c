// A metric of exploration: the entropy of the first executed actions in a prompt group, in bits, averaged over the groups,
// and the share of groups whose episodes all begin with the same action. The keys are plugins/first_moves/entropy and
// plugins/first_moves/same.
import { defineMetric } from 'ragen-workbench/api/plugins/metric';

export default defineMetric({
  name: 'first_moves',

  measure({ episodes }) {
    const moves = new Map<number, string[]>();
    for (const { group, turns } of episodes) {
      const move = turns.flatMap(({ executed }) => executed).at(0);
      if (move !== undefined) moves.set(group, [...(moves.get(group) ?? []), move]);
    }
    if (moves.size === 0) return {};
    const entropies = [...moves.values()].map(entropy);
    return {
      entropy: entropies.reduce((sum, bits) => sum + bits, 0) / entropies.length,
      same: entropies.filter(bits => bits === 0).length / entropies.length,
    };
  },
});

/** Entropy of the relative frequencies of names, in bits. */
function entropy(names: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const bits = [...counts.values()].map(count => (count / names.length) * Math.log2(names.length / count));
  return bits.reduce((sum, each) => sum + each, 0);
}
