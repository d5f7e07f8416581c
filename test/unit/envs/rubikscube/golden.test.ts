// Scrambles and turns equal RAGEN's procedure on numpy's generator (test/golden/make/envs_rubikscube.py), seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/rubikscube.json';
import { checkSeeds, Trace } from '../../../golden/envs/trace';
import rubikscube from '../../../../envs/rubikscube/index';
import { createSync } from '../../../support/sync-environment';

type Row = [seed: number, start: string, moves: string, after: string, solved: boolean, trace: string];

/** The stickers in the observation's six face lines. */
const stickers = (observation: unknown) =>
  [...String(observation).matchAll(/^\w+ \(\w\): +\[(\w), (\w)\] \[(\w), (\w)\]$/gm)]
    .map(found => found.slice(1).join(''))
    .join('');

describe.each(golden)('scramble_depth $depth', ({ depth, count, rows }) => {
  const config = rubikscube.config.parse({ scramble_depth: depth, max_steps: count });

  test('each seed equals the golden data', () =>
    checkSeeds(rows as Row[], (seed, start, moves, after, solved, digest) => {
      const environment = createSync(rubikscube, config);
      expect(stickers((environment.reset({ seed }) as { observation: string }).observation)).toBe(start);
      const steps = [...moves].map(move => environment.step(move.charCodeAt(0) - 96));
      const seen = steps.map(({ observation }) => stickers(observation));
      expect(after.includes(' ') ? seen.join(' ') : seen.at(-1)).toBe(after);
      expect(steps.map(({ terminated }) => terminated)).toEqual(steps.map((_, i) => solved && i === steps.length - 1));
      const trace = new Trace(start);
      steps.forEach((step, i) => trace.step(seen[i], step));
      expect(trace.digest).toBe(digest);
      expect(steps.at(-1)!.reward).toBe(solved ? 1 : 0);
    }));
});
