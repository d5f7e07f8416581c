// docs/CONFIGURATION.md matches the schema. `UPDATE=1 npx vitest run test/unit/trainer/config/documentation.test.ts`
// rewrites it.
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { configurationDocument } from './documentation';
import { loadConfig, presets } from '../../../../extension/trainer/config/load-config';
import { configJsonSchema } from '../../../../extension/trainer/config/schema';
import type { JsonSchema } from '../../../../extension/common/json-schema';
import { presetFolder, repository } from './presets';

test('docs/CONFIGURATION.md is up to date', () => {
  const options = { configName: 'base', overrides: [], presetFolders: [presetFolder], workspace: repository };
  const document = configurationDocument(presets([presetFolder]), loadConfig(options).config);
  const file = `${repository}/docs/CONFIGURATION.md`;
  if (process.env.UPDATE === '1') writeFileSync(file, document);
  expect(readFileSync(file, 'utf8')).toBe(document);
});

test('every key has a one-sentence description', () => {
  const silent: string[] = [];
  const visit = (schema: JsonSchema, key: string): void => {
    const text = schema.description ?? schema.anyOf?.map(option => option.description).find(Boolean) ?? '';
    if (!/^[^a-z].*\.$/.test(text)) silent.push(key);
    for (const [name, child] of Object.entries(schema.properties ?? {})) visit(child, `${key}.${name}`);
    if (typeof schema.additionalProperties === 'object' && schema.additionalProperties.properties)
      visit(schema.additionalProperties, `${key}.*`);
  };
  visit(configJsonSchema(), '');
  expect(silent).toEqual([]);
});
