// Scores a purchase as WebShop does. The score is the share of the goal's requirements (attributes, options and price
// limit) that the product meets, multiplied by a factor for the type of product. The nouns of titles are found with a
// part-of-speech tagger. Phrases are compared as sets of words.
import nlp from 'compromise/two';
import { token_set_ratio } from 'fuzzball';
import type { Product } from './catalogue';
import type { Goal } from './goals';

/** Whether two phrases match: the similarity of their word sets is above 85 on a scale of 0 to 100. */
export const isSamePhrase = (a: string, b: string): boolean => token_set_ratio(a, b, { force_ascii: true }) > 85;

/** Returns the reward, from 0 to 1, for buying a product for which the option values in `chosen` were selected. */
export function purchaseReward(product: Product, chosen: readonly string[], goal: Goal): number {
  const texts = [product.title, product.bullets.join(' '), product.description].map(text => text.toLowerCase());
  const fits = (attribute: string) =>
    product.attributes.some(own => isSamePhrase(own, attribute)) ||
    texts.some(text => text.includes(attribute.toLowerCase()));
  const attributes = goal.attributes.filter(fits).length;
  const options = goal.options.filter(wanted => chosen.some(value => isSamePhrase(value, wanted))).length;
  const price = goal.limit === null || product.price <= goal.limit ? 1 : 0;
  const share = (attributes + options + price) / (goal.attributes.length + goal.options.length + 1);
  return kindFactor(product, goal.product) * share;
}

/** Returns the factor for the similarity of the two products' types: 1, 0.5, 0.1 or 0. */
export function kindFactor(bought: Product, wanted: Product): number {
  if (bought === wanted) return 1; // shortcut: the code below also returns 1 for equal products
  const title = titleScore(bought.title, wanted.title);
  if (title === 0) return 0;
  if (title < 0.1) return 0.1;
  const levels = new Set(bought.shelf);
  const shared = new Set(wanted.shelf.filter(level => levels.has(level))).size;
  return bought.query === wanted.query || shared >= 2 || title > 0.2 ? 1 : 0.5;
}

/**
 * Returns the share of the nouns in the wanted product's title that also occur in the bought product's title; 0.2 if
 * the wanted product's title has no nouns.
 */
export function titleScore(bought: string, wanted: string): number {
  const needed = nounsOf(wanted);
  if (needed.size === 0) return 0.2;
  const present = nounsOf(bought);
  return [...needed].filter(noun => present.has(noun)).length / needed.size;
}

const known = new Map<string, Set<string>>();

/** Returns the nouns of a title, in lower case. */
function nounsOf(title: string): Set<string> {
  const held = known.get(title);
  if (held) return held;
  const sentences = nlp(title).json() as { terms: { normal: string; tags: string[] }[] }[];
  const nouns = sentences.flatMap(({ terms }) => terms).filter(({ tags }) => tags.includes('Noun'));
  const found = new Set(nouns.map(({ normal }) => normal));
  known.set(title, found);
  return found;
}
