// Games and rewards equal RAGEN's procedure on numpy's generator (test/golden/make/envs_game_2048.py), seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/game-2048.json';
import type { StepResult } from '../../../../envs/api/environment';
import { checkSeeds, Trace } from '../../../golden/envs/trace';
import game2048 from '../../../../envs/game-2048/index';
import { createSync } from '../../../support/sync-environment';

type Row = [seed: number, start: string, moves: string, log: string, end: string, over: boolean, trace: string];

/** A grid in the golden data's format: one character per cell, the exponent of two in base 36. */
const code = (grid: unknown) =>
  (grid as number[][])
    .flat()
    .map(tile => (tile === 0 ? '0' : Math.log2(tile).toString(36)))
    .join('');

describe.each(golden.sets)('size $size, two_prob $two_prob', ({ size, two_prob, rows }) => {
  const config = game2048.config.parse({ size, two_prob, use_log_reward: false });

  test('each seed equals the golden data', () =>
    checkSeeds(rows as Row[], (seed, start, moves, log, end, over, digest) => {
      const environment = createSync(game2048, config);
      const begun = environment.reset({ seed }) as { info: Record<string, unknown> };
      expect(code(begun.info.grid)).toBe(start);
      const trace = new Trace(start);
      const gained: string[] = [];
      let last: StepResult | undefined;
      let score = 0;
      for (const move of moves) {
        last = environment.step(Number(move));
        const { reward, info } = last;
        trace.step(code(info.grid), last);
        expect(info.raw_reward).toBe(reward);
        gained.push(info.action_is_valid ? String(reward) : 'x');
        if (info.action_is_valid) score += reward;
        else expect(reward).toBe(-0.1);
        expect(info.score).toBe(score);
      }
      expect(gained.join(' ')).toBe(log);
      expect(code(last!.info.grid)).toBe(end);
      expect(last!.terminated).toBe(over);
      expect(trace.digest).toBe(digest);
      expect(last!.info.max_tile).toBe(Math.max(...(last!.info.grid as number[][]).flat()));
    }));
});

test('the log reward equals the golden data for every sum of merged tiles', () => {
  for (const [raw, reward] of golden.rewards) expect(raw > 0 ? Math.log2(raw + 1) * 0.1 : 0).toBeCloseTo(reward, 14);
});
