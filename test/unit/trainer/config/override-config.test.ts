// Loads a resolved configuration again, as stored in a run's manifest.
import { describe, expect, test } from 'vitest';
import { overrideConfig } from '../../../../extension/trainer/config/load-config';
import { ConfigError } from '../../../../extension/trainer/config/config-error';
import { load } from './presets';

const { config, hash } = load('quickstart');
const stored = JSON.parse(JSON.stringify(config)) as Record<string, unknown>;

describe('a resolved configuration', () => {
  test('is loaded unchanged, with the same hash', () => {
    expect(overrideConfig(stored, [])).toMatchObject({ config, hash, notes: [] });
  });

  test('accepts overrides, including texts with spaces and quotes', () => {
    const taken = overrideConfig(stored, ['trainer.val_only=true', "model_path=/a b/it's"]).config;
    expect(taken).toEqual({ ...config, model_path: "/a b/it's", trainer: { ...config.trainer, val_only: true } });
  });

  test('refuses keys and values that a configuration file may not contain', () => {
    expect(() => overrideConfig(stored, ['trainer.val_onli=true'])).toThrow(ConfigError);
    expect(() => overrideConfig({ ...stored, es_manager: 3 }, [])).toThrow(/es_manager/);
    expect(() => overrideConfig(null as never, [])).toThrow(/config: the stored configuration is not a map of keys/);
  });
});
