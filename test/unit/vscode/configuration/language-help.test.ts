// Language features for configuration files, without an editor: which files they apply to, hover, completion and
// diagnostics.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mistakesIn } from '../../../../extension/vscode/configuration/configuration-mistakes';
import { configurations, tags } from '../../../../extension/vscode/configuration/configuration-names';
import {
  describeKey,
  keysAt,
  namedValues,
  readConfigurationSchema,
} from '../../../../extension/vscode/configuration/configuration-schema';
import { isRunConfiguration, isComplete } from '../../../../extension/vscode/configuration/run-configuration';
import { gapAt, locationAt } from '../../../../extension/vscode/configuration/yaml-locations';
import { schemaAt } from '../../../../extension/common/json-schema';

const root = resolve(__dirname, '../../../..');
const presets = join(root, 'media/presets');
const sweeps = join(root, 'media/sweeps');
const schema = readConfigurationSchema(join(root, 'media/configuration.schema.json'));

/** A text without its `|`, and the offset of that mark. */
const at = (marked: string): [string, number] => [marked.replace('|', ''), marked.indexOf('|')];
const gap = (marked: string) => {
  const found = gapAt(...at(marked));
  return found && `${found.part} ${found.path.join('.')}`;
};

describe('the key at a position', () => {
  test.each([
    ['trai|ner:\n  test_freq: 3', 'key trainer'],
    ['trainer:\n  test_f|req: 3', 'key trainer.test_freq'],
    ['trainer:\n  test_freq: |3', 'value trainer.test_freq 3'],
    ['a:\n  b: {tags: [Fro|zen, Bandit], n: 1}', 'value a.b.tags.0 Frozen'],
    ['defaults:\n  - base\n  - _se|lf_', 'value defaults.1 _self_'],
    ['trainer:\n  test_freq: 3 # a com|ment', undefined],
  ])('is found in %j', (marked, expected) => {
    const location = locationAt(...at(marked));
    expect(location && [location.part, location.path.join('.'), location.text].filter(Boolean).join(' ')).toBe(
      expected,
    );
  });
});

describe('completion', () => {
  test.each([
    ['|', 'value '],
    ['trainer:\n  test_freq: 3\n|', 'key '],
    ['trainer:\n  |', 'value trainer'],
    ['trainer:\n  test_freq: 3\n  |', 'key trainer'],
    ['trainer:\n  test_freq: 3\n  sa|\nes_manager:\n  train: {}\n', 'key trainer'],
    ['trainer:\n  test_freq:\n  |', 'key trainer'],
    ['trainer:\n  sa|ve_freq: 3', 'key trainer'],
    ['trainer:\n  test_freq: |', 'value trainer.test_freq'],
    ['algorithm:\n  adv_estimator: gr|\n  gamma: 1', 'value algorithm.adv_estimator'],
    ['es_manager:\n  train:\n    env_configs: {tags: [|], n_groups: [4]}', 'value es_manager.train.env_configs.tags.0'],
    ['es_manager:\n  train:\n    env_configs: {tags: [A, B|', 'value es_manager.train.env_configs.tags.1'],
    ['es_manager:\n  train:\n    env_configs: {tags: [A], |}', 'key es_manager.train.env_configs'],
    [
      'es_manager:\n  train:\n    env_configs:\n      tags:\n        - A\n        - |',
      'value es_manager.train.env_configs.tags.1',
    ],
    ['defaults:\n  - ba|', 'value defaults.0'],
    ['trainer:\n  test_freq: 3 # |', undefined],
  ])('offers keys or values in %j', (marked, expected) => expect(gap(marked)).toBe(expected));

  test('existing keys are reported, with the word to replace', () => {
    const [text, offset] = at('trainer:\n  test_freq: 3\n  save|\n  val_only: true');
    expect(gapAt(text, offset)).toMatchObject({ present: ['test_freq', 'val_only'], from: offset - 4, to: offset });
    expect(keysAt(schema, ['trainer']).map(([key]) => key)).toContain('save_freq');
    expect(keysAt(schema, ['custom_envs', 'Any']).map(([key]) => key)).toContain('env_type');
    expect(namedValues(schemaAt(schema, ['algorithm', 'adv_estimator'])!)).toContain('grpo');
    expect(namedValues(schemaAt(schema, ['workbench', 'coverage'])!)).toEqual(['true', 'false']);
    const model = ['actor_rollout_ref', 'model'];
    expect(namedValues(schemaAt(schema, [...model, 'lora_adapter_path'])!)).toEqual(['null']);
    expect(namedValues(schemaAt(schema, [...model, 'enable_gradient_checkpointing'])!).sort()).toEqual([
      'auto',
      'false',
      'true',
    ]);
  });
});

test('a key’s help names its type, its default and its meaning', () => {
  const path = ['trainer', 'test_freq'];
  expect(describeKey(path, schemaAt(schema, path)!)).toBe(
    '**trainer.test_freq** · an integer ≥ -1\n\nSteps between validations. 0 or -1 turns these validations off. Otherwise, a validation also runs after the last step.\n\nDefault: `10`',
  );
  const ignored = ['trainer', 'nnodes'];
  expect(describeKey(ignored, schemaAt(schema, ignored)!)).toBe(
    '**trainer.nnodes**\n\nIgnored here: it configures GPU placement.',
  );
});

describe('diagnostics', () => {
  const found = (text: string) =>
    mistakesIn(text, schema).map(({ message, from, to, instead }) => [text.slice(from, to), message, instead]);

  test('the presets have none except keys without effect', () => {
    for (const name of readdirSync(presets).filter(entry => entry.endsWith('.yaml') && entry !== 'sft.yaml')) {
      const mistakes = mistakesIn(readFileSync(join(presets, name), 'utf8'), schema);
      expect(
        mistakes.filter(({ idle }) => !idle),
        name,
      ).toEqual([]);
    }
  });

  test.each([
    [
      'trainer:\n  test_frq: 3',
      ['test_frq', 'trainer.test_frq is not a known key: did you mean test_freq?', 'test_freq'],
    ],
    [
      'trainer:\n  adv_estimator: grpo',
      ['adv_estimator', 'trainer.adv_estimator is not a known key: did you mean algorithm.adv_estimator?', undefined],
    ],
    ['trainer:\n  test_freq: -2', ['-2', 'trainer.test_freq is -2: use an integer ≥ -1', undefined]],
    ['trainer:\n  test_freq: often', ['often', 'trainer.test_freq is "often": use an integer ≥ -1', undefined]],
    [
      'trainer:\n  test_freq:\n  save_freq: 2',
      ['test_freq', 'trainer.test_freq is null: use an integer ≥ -1', undefined],
    ],
    [
      'algorithm: {adv_estimator: grop}',
      ['grop', expect.stringMatching(/^algorithm\.adv_estimator is "grop": use one of gae, grpo/), 'grpo'],
    ],
    [
      'es_manager: {train: {env_configs: {n_groups: [4, x]}}}',
      ['x', 'es_manager.train.env_configs.n_groups[1] is "x": use an integer ≥ 1', undefined],
    ],
    [
      'custom_envs:\n  A:\n    env_typ: bandit',
      ['env_typ', 'custom_envs.A.env_typ is not a known key: did you mean env_type?', 'env_type'],
    ],
    ['trainer: 3', ['3', 'trainer is 3: use a map of keys', undefined]],
    ['trainer: {resume_from_path: 3}', ['3', 'trainer.resume_from_path is 3: use a text or null', undefined]],
    [
      'actor_rollout_ref: {model: {enable_gradient_checkpointing: atuo}}',
      ['atuo', expect.stringMatching(/is "atuo": use true or false or auto$/), 'auto'],
    ],
  ] as const)('name the problems of %j', (text, expected) => expect(found(text)).toEqual([expected]));

  test.each([
    'trainer:\n  test_freq: ${trainer.save_freq}',
    'custom_envs:\n  A:\n    env_config:\n      anything: [1, {b: 2}]',
    'lora: {target_modules: all-linear}',
    'lora: {target_modules: [q_proj, v_proj]}',
    'trainer: {resume_from_path: null}',
    'actor_rollout_ref: {model: {lora_adapter_path: adapters/a, enable_gradient_checkpointing: auto}}',
  ])('%j is valid', text => expect(found(text)).toEqual([]));

  test('cover YAML that does not parse, and keys without effect', () => {
    expect(found('trainer:\n  test_freq: [1')[0][1]).toMatch(/^the YAML is not valid: /);
    expect(mistakesIn('trainer:\n  nnodes: 4\ndata:\n  val_files: x', schema)).toMatchObject([
      { key: 'trainer.nnodes', idle: true },
      { key: 'data.val_files', idle: true, message: "Ignored here: it configures verl's data loader." },
    ]);
  });
});

describe('run configurations', () => {
  test('include presets that are complete runs, and exclude other bundled files', () => {
    for (const name of readdirSync(presets).filter(entry => entry.endsWith('.yaml'))) {
      const text = readFileSync(join(presets, name), 'utf8');
      expect([name, isRunConfiguration(`/w/experiments/${name}`, text)]).toEqual([name, name !== 'sft.yaml']);
    }
    for (const name of readdirSync(sweeps))
      expect(isRunConfiguration(`/w/config/${name}`, readFileSync(join(sweeps, name), 'utf8'))).toBe(false);
    expect(isComplete('custom_envs:\n  A: {}\n')).toBe(false);
    expect(isComplete('defaults: [base]\n')).toBe(true);
  });

  test.each([
    ['/w/.github/workflows/ci.yml', 'name: CI\non: push\ndefaults:\n  run: {shell: bash}\njobs: {}\n', false],
    ['/w/config/database.yml', 'development:\n  adapter: x\n', false],
    ['/w/config/config.yaml', 'defaults:\n  - db: mysql\n\nmodel: x\n', false],
    ['/w/config/config.yaml', 'defaults:\n  - _self_\n  - model: x\n', false],
    [
      '/w/lightning.yaml',
      'trainer:\n  max_epochs: 3\nmodel:\n  x: 1\ndata: {}\noptimizer: {}\nlr_scheduler: {}\n',
      false,
    ],
    ['/w/docker-compose.yml', 'services:\n  a: {}\n', false],
    ['/w/config/new.yaml', '', true],
    ['/w/config/new.yaml', '# What it is for.\ntra', true],
    ['/w/config/new.yaml', 'trainer:\n  test_freq: 3\n', true],
    ['/w/new.yaml', '', false],
    ['/w/runs/mine.yaml', 'defaults: [base]\ntrainer: {}\n', true],
    ['/w/mine.json', 'es_manager: {}\n', false],
  ])('are recognized by name and content: %s, %j', (path, text, expected) =>
    expect(isRunConfiguration(path, text)).toBe(expected),
  );
});

describe('names', () => {
  let workspace: string;
  beforeEach(() => (workspace = mkdtempSync(join(tmpdir(), 'ragen-names-'))));
  afterEach(() => rmSync(workspace, { recursive: true }));

  test('of defaults and tags come from the file, its folder, config/ and the presets', async () => {
    for (const folder of ['config', 'mine']) mkdirSync(join(workspace, folder));
    writeFileSync(join(workspace, 'config/part.yaml'), '# A part.\ncustom_envs:\n  Part: {env_type: bandit}\n');
    writeFileSync(join(workspace, 'mine/near.yaml'), 'defaults: [part]\n');
    const sources = { extensionPath: root, workspace, file: join(workspace, 'mine/run.yaml') };
    const known = await configurations(sources);
    expect(known.slice(0, 3).map(({ name, detail }) => [name, detail])).toEqual([
      ['_self_', 'position at which this file’s own keys are merged'],
      ['near', ''],
      ['part', 'A part.'],
    ]);
    expect(known.map(({ name }) => name)).toContain('quickstart');
    const text = 'defaults: [near, base]\ncustom_envs:\n  Own: {env_type: envs/own.ts}\n  ';
    const names = (await tags(text, sources)).map(({ name, detail }) => `${name} ${detail}`);
    expect(names.slice(0, 2)).toEqual(['Own envs/own.ts', 'Part bandit']);
    expect(names).toContain('CoordFrozenLake frozen_lake');
  });
});
