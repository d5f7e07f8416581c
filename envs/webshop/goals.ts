// Shopping goals, generated or written by humans. As in WebShop, one goal is generated per combination of a product's
// options, with a random price limit above the price. Human-written goals come from items_human_ins.json. Seeded random
// streams determine the order of the goals and their price limits.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MissingDependency } from '../api/environment';
import { PythonRandom } from '../api/random/python-random';
import { readShopFile, shopSeed, type Catalogue, type Product } from './catalogue';

export interface Goal {
  product: Product;
  /** The instruction to the agent. */
  text: string;
  attributes: string[];
  /** Wanted option values, in lower case. */
  options: string[];
  /** Price limit in dollars; null for no limit. */
  limit: number | null;
}

/**
 * Returns all goals in their seeded order.
 * @param human whether to read the human-written goals instead of generating goals
 */
export function goalsOf(catalogue: Catalogue, human: boolean): Goal[] {
  const random = new PythonRandom(shopSeed);
  const goals = human ? humanGoals(catalogue, random) : syntheticGoals(catalogue, random);
  if (goals.length === 0)
    throw new MissingDependency(
      `cannot find goals for the products in ${catalogue.folder}`,
      `put ${human ? 'items_human_ins.json' : 'items_ins_v2.json'} of WebShop in the same folder`,
    );
  random.shuffle(goals);
  return goals;
}

function syntheticGoals({ products }: Catalogue, random: PythonRandom): Goal[] {
  const goals: Goal[] = [];
  for (const product of products.values()) {
    const { wish } = product;
    if (!wish) continue;
    const limit = drawnLimit(product.price, random);
    const names = [...product.options.keys()].sort();
    let combinations: string[][] = [[]];
    for (const name of names)
      combinations = combinations.flatMap(chosen => product.options.get(name)!.map(value => [...chosen, value]));
    for (const options of combinations) {
      const chosen = options.map((value, i) => `${names[i]}: ${value}`).join(', and ');
      const text = wish.text + (chosen === '' ? '' : ` with ${chosen}`) + limitText(limit);
      goals.push({ product, text, attributes: wish.attributes, options, limit });
    }
  }
  return goals;
}

interface RawHumanGoal {
  instruction?: string;
  instruction_attributes?: string[];
  instruction_options?: string[];
}

function humanGoals({ products, folder }: Catalogue, random: PythonRandom): Goal[] {
  const file = join(folder, 'items_human_ins.json');
  if (!existsSync(file))
    throw new MissingDependency(`cannot find ${file}`, 'put the file there, or set env_config.human_goals to false');
  const written = readShopFile(file) as Record<string, RawHumanGoal[] | undefined>;
  return [...products.values()].flatMap(product => {
    const wishes = (written[product.asin] ?? []).filter(({ instruction_attributes: asked }) => asked?.length);
    if (wishes.length === 0) return [];
    const limit = drawnLimit(product.price, random);
    return wishes.map(({ instruction, instruction_attributes, instruction_options }) => ({
      product,
      text: String(instruction ?? '').replace(/\.+$/, '') + limitText(limit),
      attributes: instruction_attributes!,
      options: (instruction_options ?? []).map(value => value.toLowerCase()),
      limit,
    }));
  });
}

/**
 * Returns a price limit. Two of the first four multiples of ten dollars above the price are drawn at random, and the
 * higher one is the limit. Returns null if fewer than two of these multiples are below 1000.
 */
function drawnLimit(price: number, random: PythonRandom): number | null {
  const above = Array.from({ length: 99 }, (_, i) => 10 * (i + 1))
    .filter(limit => limit > price)
    .slice(0, 4);
  if (above.length < 2) return null;
  random.shuffle(above);
  return Math.max(above[0], above[1]);
}

const limitText = (limit: number | null) =>
  limit === null ? '' : `, and price lower than ${limit.toFixed(2)} dollars`;

/**
 * Returns the position of a seed's goal in the shuffled order of goals (`goalOrder`). With more than 1500 goals, the
 * split is RAGEN's: 500 goals for tests, 1000 for validation, and the others for training. With fewer goals, a sixth is
 * for tests and a third for validation.
 */
export function goalIndex(seed: number, mode: 'train' | 'val', goals: number): number {
  const [kept, validation] = goals > 1500 ? [500, 1000] : [Math.floor(goals / 6), Math.floor(goals / 3)];
  if (mode === 'val' && validation > 0) return (seed % validation) + kept;
  return (seed % (goals - kept - validation)) + kept + validation;
}

/** Returns a seeded permutation of the goal indices. */
export function goalOrder(goals: number): number[] {
  const order = Array.from({ length: goals }, (_, i) => i);
  new PythonRandom(42).shuffle(order);
  return order;
}
