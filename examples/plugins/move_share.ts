// A chart: which share of the executed moves of a step went in each direction. A policy that has collapsed to one
// direction shows here before its success falls.
import { defineChart } from 'ragen-workbench/api/plugins/chart';

export default defineChart({
  name: 'move_share',

  lines({ episodes }) {
    const moves = episodes.flatMap(({ turns }) => turns.flatMap(({ executed }) => executed));
    const counts = new Map<string, number>();
    for (const move of moves) counts.set(String(move), (counts.get(String(move)) ?? 0) + 1);
    return Object.fromEntries([...counts].map(([move, count]) => [move, count / moves.length]));
  },
});
