// Whatever filters, metrics, alarms and losses of the workspace return is either a valid value or refused with one sentence.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { covarianceOf, gateOf } from '../../../../extension/algorithms/policy-loss-options';
import { PluginError } from '../../../../extension/plugins/client/plugin-runner';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { boundWith } from '../../../../extension/trainer/plugins/checked-alarm';
import { filterWith } from '../../../../extension/trainer/plugins/plugin-filter';
import { lossWith } from '../../../../extension/trainer/plugins/plugin-loss';
import { weighWith } from '../../../../extension/trainer/plugins/plugin-mask';
import { measureWith } from '../../../../extension/trainer/plugins/plugin-metrics';
import type { PromptGroup } from '../../../../envs/api/plugins/filter';

/** A plug-in whose functions return the given values. */
const returning = (values: Record<string, unknown>): CallablePlugin => ({
  path: 'plugins/own.ts',
  description: { kind: 'metric', name: 'own', functions: Object.keys(values), properties: {} },
  call: name => Promise.resolve(values[name]),
});

const number = fc.oneof(
  { weight: 8, arbitrary: fc.double({ min: -1e3, max: 1e3, noNaN: true }) },
  fc.constantFrom<unknown>(NaN, Infinity, -Infinity, 1e300, '1', null, undefined, 1n, {}),
);

/** The value of a call, or null if it was refused with one sentence. */
async function valueOrRefusal<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    expect(error).toBeInstanceOf(PluginError);
    expect((error as Error).message).toMatch(/^plug-in plugins\/own\.ts returned .* in \w+\(\): [a-z]/s);
    expect((error as Error).message.length).toBeLessThan(400);
    return null;
  }
}

test('filters give finite scores and distinct indices, or are refused', () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.oneof(fc.array(number, { maxLength: 5 }), fc.anything()),
      fc.option(fc.oneof(fc.array(fc.oneof(fc.integer({ min: -1, max: 4 }), number), { maxLength: 4 }), fc.anything())),
      async (count, score, select) => {
        const groups: PromptGroup[] = Array.from({ length: count }, (_, group) => ({
          ...{ group, tag: 'T', seed: group, draw: group, episodes: [] },
        }));
        const plugin = returning({ score, ...(select !== null && { select }) });
        const found = await valueOrRefusal(filterWith(plugin, groups, { step: 1, seed: 1 }));
        if (!found) return;
        expect(found.scores).toHaveLength(count);
        expect(found.scores.every(Number.isFinite)).toBe(true);
        const { selected = [] } = found;
        expect(selected.every(index => Number.isInteger(index) && index >= 0 && index < count)).toBe(true);
        expect(new Set(selected).size).toBe(selected.length);
      },
    ),
    { numRuns: 500, examples: [[3, [1e300, 0, 0], null]] }, // beyond float32's range
  ));

test('weights of masks are finite, not negative and one per token, or are refused', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }), { maxLength: 3 }),
      fc.option(fc.anything()),
      fc.infiniteStream(number),
      async (lengths, other, numbers) => {
        const samples = lengths.map(turns => ({
          turns: turns.map(length => ({ logprobs: new Float32Array(length), texts: Array<string>(length).fill('a') })),
        }));
        const weights = lengths.map(turns => turns.map(length => [...numbers.take(length)]));
        const found = await valueOrRefusal(
          weighWith(returning({ weigh: other === null ? weights : other }), samples, { step: 1 }),
        );
        expect(found === null || found.length === samples.length).toBe(true);
        found?.forEach((turns, sample) => {
          expect(turns.map(({ length }) => length)).toEqual(lengths[sample]);
          expect(turns.every(row => row.every(weight => Number.isFinite(weight) && weight >= 0))).toBe(true);
        });
      },
    ),
    { numRuns: 500 },
  ));

test('metrics are finite numbers under keys of the plug-in, or are refused', () =>
  fc.assert(
    fc.asyncProperty(
      fc.oneof(number, fc.dictionary(fc.oneof(fc.constantFrom('a', 'b.c', 'd/e'), fc.string()), number), fc.anything()),
      async value => {
        const step = { step: 1, episodes: [], played: [], metrics: {} };
        const found = await valueOrRefusal(measureWith(returning({ measure: value }), step));
        for (const [key, each] of Object.entries(found ?? {})) {
          expect(key).toMatch(/^plugins\/own(\/[\w.-]+)?$/);
          expect(Number.isFinite(each)).toBe(true);
        }
      },
    ),
    { numRuns: 500 },
  ));

test('bounds of alarms are finite and have a label, or are refused', () =>
  fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.record({ bound: number, label: fc.oneof(fc.string(), number) }), fc.anything()),
      async value => {
        const found = await valueOrRefusal(boundWith(returning({ bound: value }), [1, 2, 3]));
        if (found) expect([Number.isFinite(found.bound), typeof found.label]).toEqual([true, 'string']);
      },
    ),
    { numRuns: 500 },
  ));

test('losses have a finite loss and slope per token, or are refused', () => {
  const row = fc.oneof(fc.array(number, { minLength: 1, maxLength: 3 }), fc.anything());
  const marks = fc.oneof(fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 3 }), row);
  const fields = { loss: row, slope: row, clipped: marks, clippedLower: marks };
  const each = fc.oneof(fc.record(fields, { requiredKeys: ['loss', 'slope'] }), fc.anything());
  return fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
      fc.array(each),
      async (lengths, loss) => {
        const sequences = lengths.map(length => ({
          ...{ logprobs: new Float32Array(length), old: new Float32Array(length) },
          ...{ advantages: new Float32Array(length), mask: new Uint8Array(length) },
        }));
        const clip = { clip_ratio_low: 0.2, clip_ratio_high: 0.2, clip_ratio_c: 3 };
        const settings = { ...clip, ...gateOf({}), ...covarianceOf({}), step: 1, seed: 1 };
        const found = await valueOrRefusal(lossWith(returning({ loss }), sequences, settings));
        if (!found) return;
        expect(found.map(({ slope }) => slope.length)).toEqual(lengths);
        for (const { loss, slope, clipped, clippedLower } of found) {
          expect([...loss, ...slope].every(Number.isFinite)).toBe(true);
          expect([...clipped, ...clippedLower].every(mark => mark === 0 || mark === 1)).toBe(true);
        }
      },
    ),
    { numRuns: 500 },
  );
});
