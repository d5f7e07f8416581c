// Why a family of a diagnosis is missing: in runs of this product, and in runs of other trainers.
import { expect, it } from 'vitest';
import { collapseSettings } from '../../../../extension/run-data/collapse-settings';
import { missingFamily, storedThoughts } from '../../../../extension/run-data/interpretation/missing-family';
import { RunSeries } from '../../../../extension/run-data/interpretation/run-series';

const attached = collapseSettings({ trainer: { name: 'verl', adapter: 'verl', source: '/runs' }, config: {} });
const family = 'collapse_first_turn_sample';

function series(line: Record<string, number>): RunSeries {
  const made = new RunSeries();
  made.append([{ step: 1, ...line }]);
  return made;
}

it('tells by the metrics of texts whether an attached run has thoughts', () => {
  expect(storedThoughts(series({ 'thoughts/distinct_1': 0.5, 'rollout/invalid_answer_rate': 0 }))).toBe(true);
  expect(storedThoughts(series({ 'rollout/invalid_answer_rate': 0 }))).toBe(false);
  expect(storedThoughts(series({ 'actor/entropy': 1 }))).toBe(null);
});

it('offers a diagnosis under a model only if there are thoughts to score', () => {
  expect(missingFamily(attached, family, true)).toMatchObject({
    text: expect.stringContaining('verl does not measure') as string,
    diagnose: true,
  });
  expect(missingFamily(attached, family, false)).toEqual({
    text: 'The stored responses have no thoughts, so there is no reasoning to diagnose.',
  });
  expect(missingFamily(attached, family, null).text).toContain('no texts of training rollouts are stored');
  expect(missingFamily(attached, 'collapse_turn_sample').diagnose).toBeUndefined();
});

it('names the override in runs of this product', () => {
  const own = collapseSettings({ config: {} });
  expect([own.trainer, own.watch, attached.watch]).toEqual([null, false, true]);
  expect(missingFamily(own, family)).toMatchObject({ override: 'collapse_detection.first_turn_enabled=true' });
});
