// Rooms, oracle solutions and step transcripts equal RAGEN's own (test/golden/make/envs_sokoban.py), seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/sokoban.json';
import { checkSeeds, Trace } from '../../../golden/envs/trace';
import { nextSeed } from '../../../../envs/sokoban/generator';
import sokoban from '../../../../envs/sokoban/index';
import { createSync, type SyncEnvironment } from '../../../support/sync-environment';
import { partial } from '../../../support/partial';

/** Undefined when the seed alone gives no room. */
type Text = string | undefined;
type Row = [seed: number, room: Text, solution: Text, solved: Text, moves: Text, log: Text, trace: Text];

/** Symbols that equal the cell codes. */
const grid_lookup = { 0: '0', 1: '1', 2: '2', 3: '3', 4: '4', 5: '5', 6: '6' };
const codes = (environment: SyncEnvironment) => String(environment.render!('grid')).replaceAll('\n', '/');

/** Log of the moves up to the episode's end. */
function play(environment: SyncEnvironment, moves: string): string {
  const log: string[] = [];
  for (const move of moves) {
    const { reward, info, terminated } = environment.step(Number(move));
    log.push((info.action_is_effective ? '!' : '.') + (reward === -0.1 ? '' : String(reward)));
    if (terminated) break;
  }
  return log.join(' ');
}

describe.each(golden)('$dim, $boxes boxes, search_depth $depth', ({ dim, boxes, depth, rows }) => {
  const room = { dim_room: dim, num_boxes: boxes, search_depth: depth, grid_lookup };
  const config = sokoban.config.parse({ ...room, max_steps: 1000 });
  const seeds = new Set(rows.map(([seed]) => seed as number));

  test('each seed equals the golden data', () =>
    checkSeeds(partial<Row[]>(rows), (seed, start, solution, solved, moves, log, digest) => {
      const environment = createSync(sokoban, config);
      environment.reset({ seed });
      if (start === undefined) {
        // RAGEN continues with a salted hash here, this code with a fixed one: the room must be that of the next seed.
        const next = createSync(sokoban, config);
        next.reset({ seed: nextSeed(seed) });
        expect(codes(environment)).toBe(codes(next));
        expect(seeds.has(nextSeed(seed))).toBe(false);
        return;
      }
      expect(codes(environment)).toBe(start);
      expect((environment.solve!() as number[]).join('')).toBe(solution);
      expect(play(environment, solution!)).toBe(solved);
      environment.reset({ seed });
      expect(play(environment, moves!)).toBe(log);

      const limited = createSync(sokoban, sokoban.config.parse({ ...room, max_steps: 15 }));
      limited.reset({ seed });
      const trace = new Trace(codes(limited));
      for (const move of moves!) {
        const step = limited.step(Number(move));
        trace.step(codes(limited), step);
        if (step.terminated || step.truncated) break;
      }
      expect(trace.digest).toBe(digest);
    }));
});
