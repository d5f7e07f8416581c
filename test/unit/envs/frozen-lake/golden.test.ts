// Maps and walks equal RAGEN's maps on Gymnasium's dynamics (test/golden/make/envs_frozen_lake.py), seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/frozen-lake.json';
import { checkSeeds, Trace } from '../../../golden/envs/trace';
import frozenLake from '../../../../envs/frozen-lake/index';
import { createSync } from '../../../support/sync-environment';

type Row = [seed: number, map: string, moves: string, cells: number[], trace: string];

describe.each(golden)(
  'size $size, p $p, slippery $slippery, success_rate $rate',
  ({ size, p, slippery, rate, rows }) => {
    const config = frozenLake.config.parse({ size, p, is_slippery: slippery, success_rate: rate });

    test('each seed equals the golden data', () =>
      checkSeeds(rows as Row[], (seed, map, moves, cells, digest) => {
        const environment = createSync(frozenLake, config);
        environment.reset({ seed: seed });
        /** The map with the player on it, as in the grid observation. */
        const shown = (cell: number) =>
          [...map.replaceAll('/', '')]
            .map((tile, at) =>
              at === cell ? { S: 'P', F: 'P', H: 'X', G: '√' }[tile] : { S: '_', F: '_', H: 'O', G: 'G' }[tile],
            )
            .join('')
            .replace(new RegExp(`.{${size}}(?=.)`, 'g'), '$&\n');
        expect(environment.render!('grid')).toBe(shown(cells[0]));
        const trace = new Trace(cells[0]);
        cells.slice(1).forEach((cell, i) => {
          const step = environment.step(Number(moves[i]) + 1);
          expect(step.observation).toBe(shown(cell));
          expect(step.info.action_is_effective).toBe(cell !== cells[i]);
          trace.step(cell, step);
        });
        expect(trace.digest).toBe(digest);
      }));
  },
);
