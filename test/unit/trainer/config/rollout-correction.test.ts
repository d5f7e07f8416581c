// The rollout correction of a run whose sampler has an 8-bit base or older weights, and the notes shown for it.
import { describe, expect, test } from 'vitest';
import { rolloutCorrection } from '../../../../extension/trainer/config/rollout-correction-options';
import { overrideConfig } from '../../../../extension/trainer/config/load-config';
import { load } from './presets';

const key = 'algorithm.rollout_correction.rollout_is';
const rollouts = ['lora.rank=8', 'workbench.rollout_quantization=int8'];
const base = ['lora.rank=8', 'workbench.base_quantization=int8'];
const corrects = [
  `config: ${key} is auto, which weights each token's loss by its importance ratio (at most 2) to correct for the 8-bit base: set this key to null to turn the correction off`,
];
const leaves = [
  `config: ${key} is null, so nothing corrects for the errors of the 8-bit base: set this key to auto to weight token losses by importance ratios`,
];
const stale = [
  ...['lora.rank=8', 'workbench.engine=tinker', 'workbench.engine_url=http://localhost:8000', 'model_path=/models/one'],
  ...['workbench.max_staleness=1', 'algorithm.adv_estimator=grpo'],
];
const correctsAge = corrects.map(note =>
  note.replace('the 8-bit base', 'rollouts by older weights (workbench.max_staleness)'),
);
const leavesAge = leaves.map(note =>
  note.replace('errors of the 8-bit base', 'older weights that sample the rollouts (workbench.max_staleness)'),
);

describe('a configuration with', () => {
  test.each<[string, string[], string | null, string[]]>([
    ['all in floats', [], null, []],
    ['adapters over floats', ['lora.rank=8'], null, []],
    ['8-bit rollouts', rollouts, 'token', corrects],
    ['an 8-bit base', base, 'token', corrects],
    ['8-bit rollouts and null', [...rollouts, `${key}=null`], null, leaves],
    ['8-bit rollouts and sequence', [...rollouts, `${key}=sequence`], 'sequence', []],
    ['8-bit rollouts of a validation alone', [...rollouts, 'trainer.val_only=true'], 'token', []],
    [
      "the sampler's own log-probs over an 8-bit base",
      [...base, 'algorithm.rollout_correction.bypass_mode=true'],
      null,
      [],
    ],
    ['older weights', stale, 'token', correctsAge],
    ['older weights and null', [...stale, `${key}=null`], null, leavesAge],
    [
      'older weights, corrected by the policy loss',
      [...stale, 'algorithm.rollout_correction.bypass_mode=true'],
      null,
      [],
    ],
    ['floats and token', [`${key}=token`], 'token', []],
  ])('%s gets the correction that its formats require', (_, overrides, rollout_is, notes) => {
    const loaded = load('base', ...overrides);
    expect(rolloutCorrection(loaded.config)).toEqual({ rollout_is, rollout_is_threshold: 2 });
    expect(loaded.notes).toEqual(notes);
  });
});

test('a stored configuration with null keeps it, and one with auto follows later overrides', () => {
  const stored = (...overrides: string[]) => load('base', 'lora.rank=8', ...overrides).config;
  const changed = (config: object) => overrideConfig({ ...config }, ['workbench.rollout_quantization=int8']).config;
  expect(rolloutCorrection(changed(stored(`${key}=null`))).rollout_is).toBeNull();
  expect(rolloutCorrection(changed(stored())).rollout_is).toBe('token');
});
