// Whatever an estimator of the workspace returns is either an estimate with the right lengths and finite numbers, or
// refused with one sentence that names the file, the function and a remedy.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PluginError } from '../../../../extension/plugins/client/plugin-runner';
import { checkedEstimate } from '../../../../extension/trainer/plugins/checked-estimate';
import type { EstimatorBatch } from '../../../../envs/api/plugins/estimator';
import { partial } from '../../../support/partial';

const called = { path: 'plugins/own.ts', function: 'estimate' };

/** A batch of samples with one sequence each, given by the number of tokens of each turn. */
const batch = fc
  .array(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 })
  .map(samples =>
    partial<EstimatorBatch>({
      scores: new Float64Array(samples.length),
      sequences: samples.map(turns => {
        let end = -1;
        return { turnEnds: turns.map(length => (end += length)), mask: new Uint8Array(end + 1).fill(1) };
      }),
    }),
  );

const number = fc.oneof(
  { weight: 20, arbitrary: fc.double({ min: -1e3, max: 1e3, noNaN: true }) },
  fc.constantFrom(NaN, Infinity, -Infinity, 1e308, '1', null, undefined, 1n),
);
const row = fc.oneof(
  fc.array(number, { maxLength: 5 }),
  fc.array(fc.float(), { maxLength: 5 }).map(list => Float32Array.from(list)),
  fc.constantFrom(new DataView(new ArrayBuffer(8)), 'ab', null, { length: 2 }),
);
const value = fc.oneof(
  fc.anything(),
  fc.record({ samples: row }),
  fc.record({ turns: fc.oneof(fc.array(row, { maxLength: 4 }), row) }),
  fc.record({ tokens: fc.array(row, { maxLength: 4 }), returns: fc.array(row) }, { requiredKeys: ['tokens'] }),
);

test('an estimate is complete and finite, or refused with one sentence', () => {
  fc.assert(
    fc.property(batch, value, (given, returned) => {
      let estimate;
      try {
        estimate = checkedEstimate(called, returned, given);
      } catch (error) {
        expect(error).toBeInstanceOf(PluginError);
        expect((error as PluginError).message).toMatch(/^plug-in plugins\/own\.ts returned .* in estimate\(\): [a-z]/s);
        expect((error as PluginError).message.length).toBeLessThan(300);
        return;
      }
      const rows = 'samples' in estimate ? [estimate.samples] : 'turns' in estimate ? estimate.turns : estimate.tokens;
      for (const each of rows) expect(Array.from(each).every(Number.isFinite)).toBe(true);
      const lengths = rows.map(each => each.length);
      const { scores, sequences } = given;
      if ('samples' in estimate) expect(lengths).toEqual([scores.length]);
      else if ('turns' in estimate) expect(lengths).toEqual(sequences.map(({ turnEnds }) => turnEnds.length));
      else expect(lengths).toEqual(sequences.map(({ mask }) => mask.length));
    }),
    { numRuns: 1000 },
  );
});

test('the numbers of a valid estimate are those that were returned', () => {
  fc.assert(
    fc.property(batch, fc.infiniteStream(fc.float({ noNaN: true, noDefaultInfinity: true })), (given, numbers) => {
      const take = (length: number) => Array.from({ length }, () => numbers.next().value);
      const tokens = given.sequences.map(({ mask }) => Float32Array.from(take(mask.length)));
      expect(checkedEstimate(called, { tokens }, given)).toEqual({ tokens });
      const samples = take(given.scores.length);
      expect(checkedEstimate(called, { samples }, given)).toEqual({ samples: Float64Array.from(samples) });
    }),
  );
});
