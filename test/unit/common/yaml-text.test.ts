// The limit on YAML nesting: input that the library's parser cannot handle is refused beforehand, everywhere; real
// configurations pass.
import { describe, expect, it } from 'vitest';
import { gapAt, locationAt } from '../../../extension/vscode/configuration/yaml-locations';
import { mistakesIn } from '../../../extension/vscode/configuration/configuration-mistakes';
import { mostLevels, yamlDocument, yamlValue } from '../../../extension/common/yaml-text';
import { parseYaml } from '../../../extension/trainer/config/yaml-tree';
import type { ConfigProblem } from '../../../extension/trainer/config/config-error';

const lines = (levels: number): string =>
  Array.from({ length: levels }, (_, i) => `${' '.repeat(i)}a:\n`).join('') + ' '.repeat(levels) + 'b: 1\n';

describe.each([
  ['keys of keys', '? '.repeat(4000)],
  ['lists of lists', '- '.repeat(4000)],
  ['brackets', '['.repeat(8000)],
  ['braces', '{a: '.repeat(2000)],
  ['lines', lines(mostLevels + 1)],
  ['keys of keys over lines', Array.from({ length: 120 }, (_, i) => `${' '.repeat(i)}? a`).join('\n')],
])('endlessly nested %s', (_, text) => {
  it('are reported at their position by every reader', () => {
    const document = yamlDocument(text, {});
    expect(document.errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/nested more than 100 levels/),
    ]);
    expect(document.errors[0].pos[0]).toBeLessThan(text.length);
    const problems: ConfigProblem[] = [];
    expect(parseYaml(text, { file: '/a.yaml' }, problems)).toBeNull();
    expect(problems).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/^config: the YAML is not valid: the text is nested/) }),
    ]);
    expect(() => [locationAt(text, 5), gapAt(text, 5)]).not.toThrow();
    expect(mistakesIn(text, {})[0].message).toMatch(/nested more than 100 levels/);
    expect(() => yamlValue(text)).toThrow(/nested/);
  });
});

it.each([
  'a: &x\n  <<: [*x, *x]\n  b: 1\n',
  'a: &x [*x, *x, *x]\n',
  'a: &a [1, 1, 1, 1]\n' +
    'bcdefgh'.replace(/./g, k => `${k}: &${k} [${`*${String.fromCharCode(k.charCodeAt(0) - 1)}, `.repeat(9)}]\n`),
])('endless aliases are reported once: %j', text => {
  const problems: ConfigProblem[] = [];
  parseYaml(text, { file: '/a.yaml' }, problems);
  expect(problems.map(({ message }) => message)).toEqual([expect.stringMatching(/aliases expand without end/)]);
});

it.each([`- 1\n${'|\n'.repeat(2000)}`, '}'.repeat(4000), `: ${'a: '.repeat(1000)}`])(
  'very many mistakes: the first ones are reported: %#',
  text => {
    const { errors } = yamlDocument(text, { prettyErrors: false });
    expect(errors).toHaveLength(100);
    expect(errors[0].pos[0]).toBeLessThan(10);
    const problems: ConfigProblem[] = [];
    expect(parseYaml(text, { file: '/a.yaml' }, problems)).toBeNull();
    expect(problems).toHaveLength(100);
  },
);

it('a second document is an error', () => {
  expect(yamlDocument('a: 1\n---\nb: 2\n', {}).errors.map(({ message }) => message)).toEqual([
    'a second document starts here: keep only one document',
  ]);
  expect(yamlDocument('', {}).errors).toEqual([]);
});

it('maps and lists are not allowed as keys: written as text they would double with each level', () => {
  const text = `trainer:\n${'- ? '.repeat(40)}\n`;
  expect(mistakesIn(text, {})[0].message).toMatch(/a map or list cannot be a key/);
  expect(() => yamlValue(text)).toThrow(/cannot be a key/);
  expect(locationAt(text, 3)).toMatchObject({ path: ['trainer'], part: 'key' });
});

it('realistic nesting is read, and text that looks like nesting', () => {
  expect(yamlDocument(lines(60), {}).errors).toEqual([]);
  expect(yamlValue(`${'['.repeat(80)}${']'.repeat(80)}`)).toBeInstanceOf(Array);
  const wide = Array.from({ length: 500 }, (_, i) => `k${i}: {a: [1, {b: 2}]}\nl${i}:\n  - - 1\n`).join('');
  expect(yamlDocument(wide, {}).errors).toEqual([]);
  expect(yamlValue(`text: one ${'- and another ? '.repeat(200)}`)).toMatchObject({
    text: expect.stringMatching(/^one/),
  });
});

it('many keys and duplicate keys take linear time', () => {
  const keys = Array.from({ length: 40_000 }, (_, i) => `k${i}: ${i}\n`).join('');
  expect(Object.keys(yamlValue(keys) as object)).toHaveLength(40_000);
  expect(() => yamlValue('a: 1\nb: 2\na: 3\n')).toThrow('Map keys must be unique');
  expect(yamlDocument('a: 1\nb: 2\na: 3\n', {}).errors.map(({ code, pos }) => [code, pos[0]])).toEqual([
    ['DUPLICATE_KEY', 10],
  ]);
  expect(() => yamlValue('{a: 1, a: 2}')).toThrow('Map keys must be unique');
}, 30_000); // the library's check takes minutes

it('a text larger than a megabyte, or with more than 1,000 aliases, is refused', () => {
  expect(() => yamlValue(`a: "${'x'.repeat(2 ** 20)}"`)).toThrow('more than 1048576 characters');
  expect(() => yamlValue(`a: &a 1\nb:\n${'- *a\n'.repeat(1001)}`)).toThrow('more than 1000 aliases');
});
