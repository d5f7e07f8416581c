// A configuration that was resolved before, as a run's manifest keeps it, taken up again.
import { describe, expect, test } from 'vitest';
import { overrideConfig } from '../../../extension/trainer/config/load-config';
import { ConfigError } from '../../../extension/trainer/config/config-error';
import { load } from './presets';

const { config, hash } = load('quickstart');
const stored = JSON.parse(JSON.stringify(config)) as Record<string, unknown>;

describe('a resolved configuration', () => {
  test('comes back as it was, to the hash', () => {
    expect(overrideConfig(stored, [])).toMatchObject({ config, hash, notes: [] });
  });

  test('takes overrides, texts with blanks and quotes among them', () => {
    const taken = overrideConfig(stored, ['trainer.val_only=true', "model_path=/a b/it's"]).config;
    expect(taken).toEqual({ ...config, model_path: "/a b/it's", trainer: { ...config.trainer, val_only: true } });
  });

  test('refuses what a configuration file may not hold either', () => {
    expect(() => overrideConfig(stored, ['trainer.val_onli=true'])).toThrow(ConfigError);
    expect(() => overrideConfig({ ...stored, es_manager: 3 }, [])).toThrow(/es_manager/);
    expect(() => overrideConfig(null as never, [])).toThrow(/config: the configuration is not a map of keys/);
  });
});
