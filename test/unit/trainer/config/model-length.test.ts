// Assigns max_model_len to the model it was set for, and handles lengths beyond the model's positions.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig, overrideConfig, presets } from '../../../../extension/trainer/config/load-config';
import { fitLength, isMadeOf } from '../../../../extension/trainer/config/model-length';
import { load, presetFolder } from './presets';

const length = 'actor_rollout_ref.rollout.max_model_len';
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-length-'));
  mkdirSync(join(folder, 'config'));
  const rollout = (n: number) => `actor_rollout_ref: {rollout: {max_model_len: ${n}}}\n`;
  const write = (name: string, text: string) => writeFileSync(join(folder, `config/${name}.yaml`), text);
  write('model', 'defaults: [base]\nmodel_path: ragen-tiny\n');
  write('length', `defaults: [base]\n${rollout(3000)}`);
  write('both', `defaults: [base]\nmodel_path: ragen-tiny\n${rollout(3000)}`);
  write('above', `defaults: [model]\n${rollout(3000)}`);
  write('below', 'defaults: [length]\nmodel_path: ragen-tiny\n');
  write('first', `defaults: [_self_, model]\n${rollout(3000)}`);
});
afterAll(() => rmSync(folder, { recursive: true }));

const own = (configName: string, ...overrides: string[]) =>
  loadConfig({ configName, overrides, presetFolders: [join(folder, 'config'), presetFolder], workspace: folder });
const fitted = (configName: string, ...overrides: string[]) =>
  fitLength(own(configName, ...overrides), 2048, more => own(configName, ...overrides, more));

const names = presets([presetFolder]).map(({ name }) => name);

test.each(names)('%s with the shipped model has a length that fits the model', name => {
  const { config, notes } = fitLength(load(name, 'model_path=ragen-tiny'), 2048, more =>
    load(name, 'model_path=ragen-tiny', more),
  );
  const before = load(name).config.actor_rollout_ref.rollout.max_model_len;
  expect(config.actor_rollout_ref.rollout.max_model_len).toBe(Math.min(before, 2048));
  const note = `config: ${length} is lowered from ${before} to 2048, the maximum number of positions of ragen-tiny`;
  expect(notes.includes(note)).toBe(before > 2048);
});

describe('a length set for another model', () => {
  test.each([
    ['of a preset, under a model by override', 'base', ['model_path=ragen-tiny']],
    ['of a preset, under a model of a file', 'model', []],
    ['of a file, under a model by override', 'length', ['model_path=ragen-tiny']],
    ['of a file, under a model of a file over it', 'below', []],
    ['of a file that is laid under the model', 'first', []],
  ])('is lowered: %s', (_, name, overrides) => {
    const { config, notes } = fitted(name, ...overrides);
    expect(config.actor_rollout_ref.rollout.max_model_len).toBe(2048);
    expect(notes.at(-1)).toMatch(
      /max_model_len is lowered from 3\d00 to 2048, the maximum number of positions of ragen-tiny$/,
    );
  });
});

describe('a length set for this model', () => {
  test.each([
    ['by an override', 'base', ['model_path=ragen-tiny', `${length}=3000`]],
    ['by an override before that of the model', 'base', [`${length}=3000`, 'model_path=ragen-tiny']],
    ['in the file of the model', 'both', []],
    ['in a file over that of the model', 'above', []],
  ])('is refused: %s', (_, name, overrides) => {
    expect(() => fitted(name, ...overrides)).toThrow(
      `config: ${length} is 3000, but ragen-tiny supports only 2048 positions: use at most 2048`,
    );
  });
});

test('a length that fits is kept without a note', () => {
  const loaded = own('base', 'model_path=ragen-tiny', `${length}=2048`);
  expect(fitLength(loaded, 2048, () => expect.unreachable())).toBe(loaded);
});

test("a run's configuration keeps its length under a checkpoint of the run", () => {
  const { config } = fitted('model');
  const again = overrideConfig(config, ['model_path=/runs/a/checkpoints/step-000001']);
  expect(again.config.actor_rollout_ref.rollout.max_model_len).toBe(2048);
});

describe('a run matches the configuration from which it was created', () => {
  const run = (configName: string, ...overrides: string[]) => {
    const { config, hash } = fitted(configName, ...overrides);
    return { config, config_hash: hash };
  };

  test('also when its length was lowered', () => {
    expect(isMadeOf(run('model'), own('model'))).toBe(true);
    expect(isMadeOf(run('base', 'model_path=ragen-tiny'), own('base', 'model_path=ragen-tiny'))).toBe(true);
  });

  test('also when a later version has added a key, whose value is the default', () => {
    const { config } = run('model');
    const { clip_cov_ratio: _, ...policy_loss } = config.actor_rollout_ref.actor.policy_loss;
    const actor_rollout_ref = {
      ...config.actor_rollout_ref,
      actor: { ...config.actor_rollout_ref.actor, policy_loss },
    };
    const older = { config: { ...config, actor_rollout_ref }, config_hash: 'of another version' };
    expect(isMadeOf(older, own('model'))).toBe(true);
    const other = own('model', 'actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.5');
    expect(isMadeOf(older, other)).toBe(false);
  });

  test('but not if another value differs, nor if the length was set for the model', () => {
    expect(isMadeOf(run('model'), own('model', 'seed.train=1'))).toBe(false);
    expect(isMadeOf(run('model'), own('model', `${length}=3600`))).toBe(false);
    expect(isMadeOf(run('model', `${length}=2000`), own('model', `${length}=1000`))).toBe(false);
    expect(isMadeOf({ config: {}, config_hash: '' }, own('model'))).toBe(false);
  });
});
