// The shop: its shipped catalogue and goals, pages and navigation, WebShop's own files, and missing data.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StepResult } from '../../../../envs/api/environment';
import { readCatalogue } from '../../../../envs/webshop/catalogue';
import { goalsOf } from '../../../../envs/webshop/goals';
import webshop from '../../../../envs/webshop/index';
import { createSync } from '../../../support/sync-environment';

const shipped = resolve(__dirname, '../../../../media/data/webshop');
const begin = (config: Record<string, unknown>, seed: number, mode: 'train' | 'val' = 'train') => {
  const environment = createSync(webshop, webshop.config.parse(config));
  const { observation } = environment.reset({ seed, mode }) as { observation: string };
  const step = (action: string) => environment.step(action) as StepResult & { observation: string };
  return { environment, observation, step };
};
const page = (observation: string) => observation.split('.\nYou have 10 actions')[0];
const offers = (observation: string) => /You must choose from these actions: (.*)\.$/.exec(observation)![1].split(', ');

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'ragen-webshop-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the shipped catalogue', () => {
  test('comes from the committed script', () => {
    execFileSync(process.execPath, [resolve(shipped, '../make/webshop.mjs'), folder]);
    for (const name of ['items_shuffle.json', 'items_ins_v2.json'])
      expect(readFileSync(join(folder, 'webshop', name), 'utf8')).toBe(readFileSync(join(shipped, name), 'utf8'));
  });

  test('has an oracle that reaches each goal within the tag’s nine actions', () => {
    const catalogue = readCatalogue(shipped, true, null);
    const goals = goalsOf(catalogue, false);
    expect(catalogue.products.size).toBe(520);
    expect(goals.length).toBeGreaterThan(1500);
    const { environment, step } = begin({}, 0);
    const seen = new Set<string>();
    for (let index = 0; index < goals.length; index++) {
      const seed = index < 1000 ? index : index - 1000;
      const { observation } = environment.reset({ seed, mode: index < 1000 ? 'val' : 'train' }) as {
        observation: string;
      };
      seen.add(observation.split('\n')[0]);
      const actions = environment.solve!() as string[];
      const steps = actions.map(step);
      const told = {
        actions: actions.length <= 9,
        valid: steps.every(({ info }) => info.action_is_valid),
        early: steps.slice(0, -1).some(({ terminated, reward }) => terminated || reward !== 0),
      };
      expect([observation, told]).toEqual([observation, { actions: true, valid: true, early: false }]);
      expect(steps.at(-1)).toMatchObject({ terminated: true, reward: 1, info: { success: true, raw_reward: 1 } });
    }
    expect(seen.size).toBeGreaterThan(goals.length - 500 - 60); // test goals are not used; few texts are equal
  });
});

test('each page shows its content and leads to the next', () => {
  const { observation, step, environment } = begin({}, 3);
  expect(page(observation)).toMatch(/^Find me .* with .*, and price lower than \d+\.00 dollars$/);
  expect(offers(observation)).toEqual(['search[<content>]']);
  const results = step('search[Canvas Sneaker]');
  expect(page(results.observation)).toMatch(
    /^Instruction: \[SEP\] .* \[SEP\] Back to Search \[SEP\] Page 1 \(Total results: \d+\) \[SEP\] Next > \[SEP\] B0/,
  );
  expect(offers(results.observation).slice(0, 2)).toEqual(['click[back to search]', 'click[next >]']);
  expect(offers(results.observation)).toHaveLength(12);
  const second = step('click[Next >]');
  expect(page(second.observation)).toContain('Page 2 (Total results: 20) [SEP] < Prev [SEP] Next >');
  expect(step('click[< prev]').observation).toBe(results.observation);
  const product = offers(results.observation)[2];
  const item = step(product);
  expect(page(item.observation)).toMatch(
    /color \[SEP\] .* \[SEP\] size \[SEP\] .* \[SEP\] Price: \$\d+\.\d\d \[SEP\] Rating: N\.A\. \[SEP\] Description \[SEP\] Features \[SEP\] Reviews \[SEP\] Buy Now$/,
  );
  const features = step('click[features]');
  expect(page(features.observation)).toContain('as one expects of');
  expect(offers(features.observation)).toEqual(['click[back to search]', 'click[< prev]']);
  expect(step('click[< prev]').observation).toBe(item.observation);
  const option = offers(item.observation)[2];
  expect(step(option)).toMatchObject({
    observation: item.observation,
    info: { action_is_valid: true, action_is_effective: false },
  });
  const end = step('click[buy now]');
  expect(end).toMatchObject({ terminated: true, reward: 0, info: { success_purchase: true, success: false } });
  expect(end.info.raw_reward).toBeLessThan(1);
  expect(environment.solve!()).toEqual([]);
  expect(step('click[buy now]')).toMatchObject({
    terminated: true,
    reward: 0,
    info: { action_is_valid: false, raw_reward: 0 },
  });
});

test('the last page of results offers no next page', () => {
  const { step } = begin({}, 3);
  step('search[Canvas Sneaker]');
  let last = step('click[next >]');
  for (let i = 0; i < 4; i++) last = step('click[next >]');
  expect(offers(last.observation)).toEqual(['click[back to search]', 'click[< prev]']);
  expect(last.info.end_of_page).toBe(true);
  expect(page(last.observation)).toContain('Page 6 (Total results: 20)');
});

test.each(['search[]', 'click[search]', 'click[buy now]', 'buy', '', 'search[shoes', 'click[nothing]'])(
  '%j has no effect at the start',
  action => {
    const { step } = begin({}, 3);
    expect(step(action)).toMatchObject({
      reward: 0,
      terminated: false,
      info: { action_is_valid: false, action_is_effective: false },
    });
  },
);

test('the oracle continues from any page', () => {
  const { environment, step } = begin({}, 8);
  const finish = () => {
    let last: StepResult | undefined;
    for (const action of environment.solve!() as string[]) last = step(action);
    return last?.reward;
  };
  for (const wandering of [
    ['search[tea]'],
    ['search[tea]', 'click[next >]'],
    (environment.solve!() as string[]).slice(0, 2).concat('click[description]'),
  ]) {
    environment.reset({ seed: 8 });
    for (const action of wandering) expect(step(action).info.action_is_valid).toBe(true);
    expect(finish()).toBe(1);
  }
});

test('HTML pages and attributes are parsed', () => {
  const { environment, step } = begin({ observation_mode: 'html', show_attrs: true }, 3);
  const { observation } = step(`search[${(environment.solve!() as string[])[0].slice(7, -1)}]`);
  expect(observation).toContain('<button>Back to Search</button>\n<p>Page 1');
  const item = step(offers(observation)[2]);
  expect(item.observation).toContain('<button>Attributes</button>');
  expect(step('click[attributes]').info.action_is_valid).toBe(true);
});

describe("WebShop's own files", () => {
  const product = (asin: string, more: object) => ({
    asin,
    name: `Lamp ${asin}`,
    pricing: '$20.00',
    query: ' Lamps ',
    product_category: 'Home › Light',
    ...more,
  });
  const write = (name: string, content: unknown) => writeFileSync(join(folder, 'own', name), JSON.stringify(content));
  beforeAll(() => {
    mkdirSync(join(folder, 'own'), { recursive: true });
    write('items_shuffle.json', [
      product('A1', {
        customization_options: { Color: [{ value: ' Red/Blue ' }], Size: null },
        small_description: null,
      }),
      product('A2', { pricing: '$1,010.00 to $1,020.00', small_description: ['one', 'two'] }),
      product('A2', { name: 'twice' }),
      product('A3', { pricing: '' }),
      product('nan', {}),
      product('much too long an asin', {}),
    ]);
    write('items_ins_v2.json', {
      A1: { attributes: ['bright'], instruction: 'Find me bright lamps', instruction_attributes: ['bright'] },
      A2: { attributes: ['dim'], instruction: 'Find me dim lamps', instruction_attributes: ['dim'] },
      A3: { attributes: [], instruction: null, instruction_attributes: [] },
    });
    write('items_human_ins.json', {
      A1: [
        {
          instruction: 'i want a bright lamp in red.',
          instruction_attributes: ['bright'],
          instruction_options: ['red blue'],
        },
      ],
    });
  });

  test('are read although they contain missing, duplicate or malformed data', () => {
    const { products } = readCatalogue(join(folder, 'own'), true, null);
    expect([...products.keys()]).toEqual(['A1', 'A2', 'A3']);
    expect(products.get('A1')).toMatchObject({ price: 20, query: 'lamps', shelf: ['Home', 'Light'], bullets: [''] });
    expect([...products.get('A1')!.options]).toEqual([['color', ['red | blue']]]);
    expect(products.get('A2')!.priceTag).toBe('$1010.00 to $1020.00');
    expect(products.get('A2')!.price).toBeGreaterThan(1010);
    expect(products.get('A2')!.price).toBeLessThan(1020);
    expect(products.get('A3')!.price).toBe(100);
    expect(readCatalogue(join(folder, 'own/items_shuffle.json'), false, 1).products.size).toBe(1);
  });

  test('give reachable goals, generated or written', () => {
    const catalogue = readCatalogue(join(folder, 'own'), true, null);
    expect(
      goalsOf(catalogue, false)
        .map(({ text }) => text)
        .sort(),
    ).toEqual([
      expect.stringMatching(/^Find me bright lamps with color: red \| blue, and price lower than [3-6]0\.00 dollars$/),
      'Find me dim lamps',
    ]);
    const { observation, environment, step } = begin(
      { file_path: join(folder, 'own'), dataset: 'full', human_goals: true },
      0,
    );
    expect(observation).toMatch(/^i want a bright lamp in red, and price lower than/);
    for (const action of environment.solve!() as string[])
      if (step(action).terminated) return expect(step(action).info.action_is_valid).toBe(false);
    expect.unreachable();
  });
});

test.each([
  [{ dataset: 'full' }, /needs the full catalogue, which is not part of the extension/],
  [{ file_path: 'no/such' }, /needs products, but .*no\/such does not exist/],
  [{ file_path: 'test' }, /cannot find items_shuffle.json in/],
  [{ file_path: 'README.md' }, /cannot read .*README\.md/],
  [{ human_goals: true }, /cannot find .*items_human_ins\.json/],
])('%j is refused with a remedy', (config, message) => {
  expect(() => webshop.dependencies!(webshop.config.parse(config))).toThrow(message);
});
