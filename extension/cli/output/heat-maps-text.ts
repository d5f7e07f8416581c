// The heat maps of an episode's pictures as text: one grid of numbers for each picture.
import { maximum } from '../../common/lists';
import { formatNumber } from '../../common/numbers';
import type { HeatMap, HeatMaps, TurnHeat } from '../../protocol/heat-maps';

/** Returns the maps as text; numbers are in nats. */
export function heatMapsText({ checkpoint, part, turns }: HeatMaps): string {
  const head = `Log-prob of the ${part} by picture cell, under ${checkpoint}: norm of gradient × feature, in nats`;
  return [head, ...turns.map(turn => turnText(turn, part))].join('\n\n');
}

function turnText({ turn, tokens, logprob, pictures, earlier }: TurnHeat, part: string): string {
  if (tokens === 0) return `Turn ${turn}: no ${part}, or no picture`;
  const facts = [
    `Turn ${turn}: ${tokens} tokens`,
    `log-prob ${logprob.toFixed(3)}`,
    ...(earlier > 0 ? [`${(100 * earlier).toFixed(0)} % on pictures of earlier turns`] : []),
  ];
  return [facts.join(', '), ...pictures.map(gridText)].join('\n\n');
}

function gridText({ rows, columns, values }: HeatMap): string {
  const cells = values.map(formatNumber);
  const width = maximum(cells.map(({ length }) => length));
  return Array.from({ length: rows }, (_, row) =>
    cells
      .slice(row * columns, (row + 1) * columns)
      .map(cell => cell.padStart(width))
      .join('  '),
  ).join('\n');
}
