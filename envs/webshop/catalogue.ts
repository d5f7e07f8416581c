// The shop's products and their BM25 index, read from WebShop's files: items_shuffle.json holds the products,
// items_ins_v2.json holds attributes and instructions by asin (Amazon's product id). If a product has a range of
// prices, its price is drawn at random. The prices of all products are drawn from one seeded random stream, in file
// order.
import MiniSearch from 'minisearch';
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MissingDependency } from '../api/environment';
import { readRegularText } from '../api/regular-file';
import { PythonRandom } from '../api/random/python-random';

export interface Product {
  asin: string;
  title: string;
  description: string;
  /** Bullet points of the features page. */
  bullets: string[];
  /** Price in the displayed format: `$12.99` or `$10.00 to $20.00`. */
  priceTag: string;
  price: number;
  category: string;
  /** Category levels, broadest first: Men, Shirts, Polos. */
  shelf: string[];
  query: string;
  attributes: string[];
  /** Option values in lower case, by option name. */
  options: ReadonlyMap<string, string[]>;
  /**
   * Instruction and attributes from which goals are generated; undefined if the files contain no instruction for the
   * product.
   */
  wish?: { text: string; attributes: string[] };
}

export interface Catalogue {
  /** Products by asin, in file order. */
  products: ReadonlyMap<string, Product>;
  /** Returns the asins of the best matches, at most `limit`, best first. */
  search(searchText: string, limit: number): string[];
  /** Folder of the files. */
  folder: string;
}

/** Seed of WebShop's two random streams, one for prices and one for goals. */
export const shopSeed = 233;

/** Maximum number of cached searches. */
const searchesKept = 1000;

const remedy = 'set env_config.file_path to the folder with items_shuffle.json and items_ins_v2.json of WebShop';

/** Reads and parses a JSON file. @throws MissingDependency if the file cannot be read or parsed */
export function readShopFile(path: string): unknown {
  try {
    return JSON.parse(readRegularText(path));
  } catch (error) {
    throw new MissingDependency(`cannot read ${path} (${(error as Error).message})`, remedy);
  }
}

/**
 * Reads the products and builds their index.
 * @param path path of the products' file, or of the folder with WebShop's files
 * @param small whether to prefer files whose name ends in `_1000`
 * @param limit maximum number of products to read, null for all
 * @throws MissingDependency if files are missing or unreadable
 */
export function readCatalogue(path: string, small: boolean, limit: number | null): Catalogue {
  const given = resolve(path);
  if (!existsSync(given)) throw new MissingDependency(`needs products, but ${given} does not exist`, remedy);
  const isFolder = statSync(given).isDirectory();
  const folder = isFolder ? given : dirname(given);
  const own = (stem: string) => {
    const names = small ? [`${stem}_1000.json`, `${stem}.json`] : [`${stem}.json`];
    return names.map(name => join(folder, name)).find(file => existsSync(file));
  };
  const file = isFolder ? own('items_shuffle') : given;
  if (file === undefined) throw new MissingDependency(`cannot find items_shuffle.json in ${folder}`, remedy);
  const rows = readShopFile(file);
  if (!Array.isArray(rows))
    throw new MissingDependency(`cannot use ${file}, which is not a JSON array of products`, remedy);
  const attributesFile = own('items_ins_v2');
  const wishes = (attributesFile ? readShopFile(attributesFile) : {}) as Record<string, RawWish | undefined>;
  const random = new PythonRandom(shopSeed);
  const products = new Map<string, Product>();
  for (const row of rows as RawProduct[]) {
    if (products.size === limit) break;
    const asin = String(row.asin ?? 'nan');
    if (asin === 'nan' || asin.length > 10 || products.has(asin)) continue;
    products.set(asin, productOf(asin, row, wishes[asin], random));
  }
  return { products, search: indexOf(products.values()), folder };
}

interface RawProduct {
  asin?: unknown;
  name?: string;
  full_description?: string;
  small_description?: string[] | string | null;
  pricing?: string | null;
  category?: string;
  product_category?: string;
  query?: string;
  customization_options?: Record<string, { value: string }[] | null> | null;
}

interface RawWish {
  attributes?: string[];
  instruction?: string | null;
  instruction_attributes?: string[];
}

function productOf(asin: string, row: RawProduct, wish: RawWish | undefined, random: PythonRandom): Product {
  const prices = [...String(row.pricing ?? '').matchAll(/\$([\d,]*\.?\d+)/g)].map(match =>
    Number(match[1].replaceAll(',', '')),
  );
  const [low, high] = prices.length > 0 ? prices : [100];
  const options = Object.entries(row.customization_options ?? {})
    .map(([name, values]): [string, string[]] => [
      name.toLowerCase(),
      (values ?? []).map(({ value }) => String(value).trim().replaceAll('/', ' | ').toLowerCase()),
    ])
    .filter(([, values]) => values.length > 0);
  const bullets = Array.isArray(row.small_description) ? row.small_description : [row.small_description ?? ''];
  const asked = wish?.instruction_attributes ?? [];
  return {
    asin,
    title: String(row.name ?? ''),
    description: String(row.full_description ?? ''),
    bullets: bullets.map(String),
    priceTag: high === undefined ? `$${low.toFixed(2)}` : `$${low.toFixed(2)} to $${high.toFixed(2)}`,
    price: high === undefined ? low : low + (high - low) * random.random(),
    category: String(row.category ?? ''),
    shelf: String(row.product_category ?? '')
      .split('›')
      .map(level => level.trim())
      .filter(level => level !== ''),
    query: String(row.query ?? '')
      .toLowerCase()
      .trim(),
    attributes: wish?.attributes ?? [],
    options: new Map(options),
    ...(wish?.instruction && asked.length > 0 && { wish: { text: wish.instruction, attributes: asked } }),
  };
}

/** Indexes each product's title, description, first bullet and options, as WebShop does. */
function indexOf(products: Iterable<Product>): Catalogue['search'] {
  const index = new MiniSearch<{ id: string; text: string }>({ fields: ['text'] });
  for (const { asin, title, description, bullets, options } of products) {
    const choices = [...options].map(([name, values]) => `${name}: ${values.join(', ')}`);
    index.add({ id: asin, text: [title, description, bullets[0] ?? '', ...choices].join(' ') });
  }
  // Recent searches are cached, because members of a group send the same searches.
  const newest = new Map<string, string[]>();
  return (searchText, limit) => {
    const asked = searchText.toLowerCase();
    const found = newest.get(asked) ?? index.search(asked).map(({ id }) => String(id));
    if (newest.size >= searchesKept) newest.clear();
    newest.set(asked, found);
    return found.slice(0, limit);
  };
}
