// media/configuration.schema.json matches the schema and accepts every shipped configuration.
// `UPDATE=1 npx vitest run test/unit/trainer/config/file-schema.test.ts` rewrites it.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { configurationFileSchema } from './file-schema';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { presetFolder, repository } from './presets';
import { ragenFolder, ragenNames } from './ragen-files';

const file = join(repository, 'media/configuration.schema.json');
const options = { configName: 'base', overrides: [], presetFolders: [presetFolder], workspace: repository };

test('media/configuration.schema.json is up to date', () => {
  const text = `${JSON.stringify(configurationFileSchema(loadConfig(options).config), null, 1)}\n`;
  if (process.env.UPDATE === '1') writeFileSync(file, text);
  expect(readFileSync(file, 'utf8')).toBe(text);
});

test("the JSON schema accepts the presets that are configurations and RAGEN's own files, and refuses configurations that the loader refuses", () => {
  const schema = z.fromJSONSchema(JSON.parse(readFileSync(file, 'utf8')) as Parameters<typeof z.fromJSONSchema>[0]);
  const presets = readdirSync(presetFolder).filter(name => name.endsWith('.yaml') && name !== 'sft.yaml');
  const files = [
    ...presets.map(name => join(presetFolder, name)),
    ...ragenNames.map(name => join(ragenFolder, `${name}.yaml`)),
  ];
  for (const path of files) {
    const { error } = schema.safeParse(parse(readFileSync(path, 'utf8')));
    expect(error?.issues ?? [], path).toEqual([]);
  }
  expect(schema.safeParse({ trainer: { test_freq: '${trainer.save_freq}' } }).success).toBe(true);
  for (const wrong of [
    { trainer: { test_frequency: 3 } },
    { trainer: { test_freq: -2 } },
    { algorithm: { adv_estimator: 'remix' } },
    { custom_envs: { A: { env_typ: 'bandit' } } },
  ])
    expect(schema.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
});
