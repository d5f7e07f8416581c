// Impossible sizes in a config.json.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';

it('an excessive number of layers is refused before they are listed', () => {
  const config = JSON.parse(readFileSync('test/golden/llama/config.json', 'utf8')) as object;
  const parse = (layers: number) => parseDecoderConfig({ ...config, num_hidden_layers: layers }, 'config.json').layers;
  expect(parse(120)).toBe(120);
  expect(() => parse(2 ** 53 - 1)).toThrow(UserError);
  expect(() => parse(2 ** 31)).toThrow(/config\.json: num_hidden_layers/);
});
