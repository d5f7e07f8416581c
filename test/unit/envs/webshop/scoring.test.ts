// Rewards of purchases: each override of the category factor, each term of the match score, and phrase comparison as in
// thefuzz.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Product } from '../../../../envs/webshop/catalogue';
import { goalIndex, goalOrder, type Goal } from '../../../../envs/webshop/goals';
import { isSamePhrase, kindFactor, purchaseReward, titleScore } from '../../../../envs/webshop/scoring';

const golden = JSON.parse(readFileSync(resolve(__dirname, '../../../golden/envs/webshop.json'), 'utf8')) as {
  ratios: [string, string, number][];
  permutation: number[];
};
const product = (of: Partial<Product>): Product => ({
  asin: 'B000000001',
  title: 'Red Cotton Shirt',
  description: '',
  bullets: [],
  priceTag: '$20.00',
  price: 20,
  category: 'fashion',
  shelf: ['Men', 'Shirts', 'Polos'],
  query: 'shirts',
  attributes: [],
  options: new Map(),
  ...of,
});

test('phrases match when thefuzz finds them similar', () => {
  expect(golden.ratios.filter(([, , ratio]) => ratio > 85).length).toBeGreaterThan(80);
  for (const [a, b, ratio] of golden.ratios) expect([a, b, isSamePhrase(a, b)]).toEqual([a, b, ratio > 85]);
});

describe('the category factor', () => {
  const wanted = product({
    title: 'shirt, button, collar, pocket, sleeve, cotton, wool, linen, silk, thread, hem, zip, lace, cuff',
  });
  test.each([
    ['no noun in common', { title: 'Garden Hose', query: 'shirts' }, 0],
    ['less than a tenth of the nouns', { title: 'A hem for curtains', query: 'shirts' }, 0.1],
    ['some nouns, another shelf and query', { title: 'Wool and linen', query: 'yarn', shelf: ['Craft', 'Yarn'] }, 0.5],
    ['some nouns, one level in common', { title: 'Wool and linen', query: 'yarn', shelf: ['Men', 'Yarn'] }, 0.5],
    ['some nouns, two levels in common', { title: 'Wool and linen', query: 'yarn', shelf: ['Shirts', 'Men'] }, 1],
    ['some nouns, the same query', { title: 'Wool and linen', shelf: [] }, 1],
    ['enough nouns', { title: 'Shirt with collar and pocket', query: 'other', shelf: [] }, 1],
  ])('is as expected: %s', (_, bought, factor) => expect(kindFactor(product(bought), wanted)).toBe(factor));

  test('ignores a title without nouns', () => {
    expect(titleScore('Red Shirt', 'of the')).toBe(0.2);
    expect(titleScore('Blue Shirt', 'Blue Shirt')).toBe(1);
  });
});

describe('the match score', () => {
  const goal = (of: Partial<Goal>): Goal => ({
    product: product({}),
    text: '',
    attributes: ['machine wash', 'long sleeve'],
    options: ['navy blue', 'large'],
    limit: 30,
    ...of,
  });
  const fitting = product({ attributes: ['wash machine'], bullets: ['With LONG SLEEVE.'] });
  test.each([
    ['all', fitting, ['navy blue', 'large'], {}, 1],
    ['an option missing', fitting, ['navy blue'], {}, 4 / 5],
    ['wrong options', fitting, ['red', 'small'], {}, 3 / 5],
    ['an attribute missing', product({ attributes: ['wash machine'] }), ['navy blue', 'large'], {}, 4 / 5],
    ['too dear', fitting, ['navy blue', 'large'], { limit: 19.99 }, 4 / 5],
    ['any price', { ...fitting, price: 5000 }, ['navy blue', 'large'], { limit: null }, 1],
    ['nothing asked but the price', fitting, [], { attributes: [], options: [] }, 1],
  ])('is as expected: %s', (_, bought, chosen, wanted, reward) => {
    expect(purchaseReward(bought, chosen, goal(wanted))).toBeCloseTo(reward, 12);
  });
});

describe('goals of seeds', () => {
  test('are split as in RAGEN with more than 1500', () => {
    expect([goalIndex(123, 'val', 1600), goalIndex(1123, 'val', 1600), goalIndex(250, 'train', 1600)]).toEqual([
      623, 623, 1550,
    ]);
  });

  test('are split by the same shares with fewer, without overlap', () => {
    const of = (mode: 'train' | 'val') => new Set(Array.from({ length: 300 }, (_, seed) => goalIndex(seed, mode, 60)));
    expect([
      Math.min(...of('val')),
      Math.max(...of('val')),
      Math.min(...of('train')),
      Math.max(...of('train')),
    ]).toEqual([10, 29, 30, 59]);
    expect([goalIndex(7, 'val', 1), goalIndex(7, 'train', 1)]).toEqual([0, 0]);
  });

  test("follow CPython's permutation", () => expect(goalOrder(1600)).toEqual(golden.permutation));
});
