// Curriculum: the number of groups of a step stays the same, no tag is lost, and pools depend only on the rates.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { afterEpisodes, mixedGroups, nothingPlayed, type Pool } from '../../../extension/algorithms/curriculum';

const rate = fc.double({ min: 0, max: 1, noNaN: true });
const weight = fc.double({ min: 0, max: 4, noNaN: true });
const options = fc
  .record({
    limits: fc.tuple(rate, rate),
    hysteresis: rate,
    decay: fc.double({ min: 0, max: 0.99, noNaN: true }),
    easy_weight: weight,
    hard_weight: weight,
  })
  .filter(({ limits: [a, b] }) => a !== b)
  .map(({ limits, ...rest }) => ({ ...rest, hard_below: Math.min(...limits), easy_above: Math.max(...limits) }));
const pool = fc.constantFrom<Pool>('easy', 'normal', 'hard');
const tagged = fc.array(fc.record({ count: fc.nat(64), pool, success: rate }), { minLength: 1, maxLength: 8 });

it('the groups keep their sum, each configured tag keeps one, and no share differs by more than the minimum demands', () => {
  fc.assert(
    fc.property(tagged, options, (tags, chosen) => {
      const names = tags.map((_, i) => `T${i}`);
      const state = Object.fromEntries(tags.map(({ pool, success }, i) => [names[i], { pool, success }]));
      const counts = tags.map(({ count }) => count);
      const groups = mixedGroups(names, counts, state, chosen);
      const total = counts.reduce((sum, n) => sum + n, 0);
      expect(groups.reduce((sum, n) => sum + n, 0)).toBe(total);
      groups.forEach((n, i) => {
        expect(Number.isInteger(n)).toBe(true);
        if (counts[i] === 0) expect(n).toBe(0);
        else expect(n).toBeGreaterThanOrEqual(1);
      });
      const weights = { normal: 1, easy: chosen.easy_weight, hard: chosen.hard_weight };
      const shares = tags.map(({ count, pool }) => count * weights[pool]);
      const all = shares.reduce((sum, n) => sum + n, 0);
      if (all === 0) expect(groups).toEqual(counts);
      else groups.forEach((n, i) => expect(n).toBeLessThan(Math.max(1, (shares[i] / all) * total) + 1));
    }),
  );
});

it('a tag is easy or hard beyond the limits, and leaves a pool only past the hysteresis', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 12 }),
      options,
      (steps, chosen) => {
        let state = nothingPlayed;
        let before: Pool = 'normal';
        for (const successes of steps) {
          const { state: next, moves } = afterEpisodes(
            state,
            successes.map(success => ({ tag: 'A', success })),
            chosen,
          );
          const { success, pool: now } = next.A;
          expect(success).toBeGreaterThanOrEqual(0);
          expect(success).toBeLessThanOrEqual(1);
          if (success >= chosen.easy_above) expect(now).toBe('easy');
          else if (success <= chosen.hard_below) expect(now).toBe('hard');
          else if (now === 'easy')
            expect([before, success >= chosen.easy_above - chosen.hysteresis - 1e-8]).toEqual(['easy', true]);
          else if (now === 'hard')
            expect([before, success <= chosen.hard_below + chosen.hysteresis + 1e-8]).toEqual(['hard', true]);
          expect(moves).toEqual(now === before ? [] : [{ tag: 'A', from: before, to: now, success }]);
          [state, before] = [next, now];
        }
      },
    ),
  );
});
