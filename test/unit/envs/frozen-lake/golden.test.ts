// Maps and walks equal RAGEN's maps on Gymnasium's own dynamics (test/golden/make/envs_frozen_lake.py), seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/frozen-lake.json';
import type { StepResult } from '../../../../envs/api/environment';
import frozenLake from '../../../../envs/frozen-lake/index';

describe.each(golden)(
  'size $size, p $p, slippery $slippery, success_rate $rate',
  ({ size, p, slippery, rate, rows }) => {
    const config = frozenLake.config.parse({ size, p, is_slippery: slippery, success_rate: rate });

    test.each(rows)('seed $seed', row => {
      const environment = frozenLake.create(config);
      environment.reset({ seed: row.seed });
      /** The map with the player marked on it, as the grid observation shows it. */
      const shown = (cell: number) =>
        [...row.map.replaceAll('/', '')]
          .map((tile, at) =>
            at === cell ? { S: 'P', F: 'P', H: 'X', G: '√' }[tile] : { S: '_', F: '_', H: 'O', G: 'G' }[tile],
          )
          .join('')
          .replace(new RegExp(`.{${size}}(?=.)`, 'g'), '$&\n');
      expect(environment.render!('grid')).toBe(shown(row.cells[0]));
      let last: StepResult | undefined;
      row.cells.slice(1).forEach((cell, i) => {
        last = environment.step(Number(row.moves[i]) + 1) as StepResult;
        expect(last.observation).toBe(shown(cell));
        expect(last.info.action_is_effective).toBe(cell !== row.cells[i]);
      });
      expect(last?.reward).toBe(row.reward);
      expect(last?.terminated).toBe(row.cells.length < 17 || 'HG'.includes(row.map.replaceAll('/', '')[row.cells[16]]));
    });
  },
);
