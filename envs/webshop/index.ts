// WebShop (RAGEN): the agent follows an instruction to search, open pages, select options and buy. Actions are
// search[words] and click[name]. The reward is 1 if the purchase matches the instruction in every respect, otherwise 0;
// `raw_reward` is the score of the match, 0 to 1. The built-in products are fictional (media/data/webshop); WebShop's
// original files can be configured instead.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { defineEnvironment, MissingDependency, type StepResult } from '../api/environment';
import { readCatalogue, type Catalogue } from './catalogue';
import { goalIndex, goalOrder, goalsOf, type Goal } from './goals';
import { details, found, pageHtml, pageText, partsOf, perPage, type Detail, type Part, type PageState } from './pages';
import { isSamePhrase, purchaseReward } from './scoring';

const config = z.strictObject({
  dataset: z
    .enum(['small', 'full'])
    .default('small')
    .describe(
      'small: the smaller files of file_path are read, or the shipped catalogue if file_path is null; full: all products of file_path are read, and file_path must be set',
    ),
  observation_mode: z.enum(['text', 'html']).default('text'),
  file_path: z
    .string()
    .nullable()
    .default(null)
    .describe("folder with WebShop's files; null: the shipped catalogue is used"),
  server: z.null().default(null),
  filter_goals: z.null().default(null),
  limit_goals: z.int().min(-1).default(-1).describe('number of goals to use; -1: all are used'),
  num_products: z.int().min(1).nullable().default(null).describe('number of products to read; null: all are read'),
  human_goals: z
    .boolean()
    .default(false)
    .describe(
      'true: the goals are the human-written ones of items_human_ins.json; false: they are generated from the products',
    ),
  show_attrs: z.boolean().default(false).describe('true: product pages have a link to a page with the attributes'),
});
type Config = z.infer<typeof config>;

const hints = [
  'You have 10 actions to buy a product. It need not fit the description in every respect.',
  'Leave size, color and other details out of the search words.',
  'Search twice at most.',
  'Be lenient about the description: to buy something close enough in time matters more.',
  'Rather open a product of this page than go on to the next page.',
  'Hardly ever use click[next >] more than twice.',
  'Hardly ever use click[< prev], unless you are sure that the product is on an earlier page.',
  'With fewer than 3 actions left, buy the first product on the page.',
  'Where options fit, click the size, then the color, one at a time, before click[buy now]; with 1 action left click[buy now] at once. Never click description.',
].join('\n');

const shipped = fileURLToPath(new URL('../../media/data/webshop', import.meta.url));

interface Shop {
  catalogue: Catalogue;
  goals: Goal[];
  /** Indices of the goals in permuted order; `goalIndex` returns positions in this array. */
  order: number[];
}
const shops = new Map<string, Shop>();

/** Returns the shop of a configuration; opened once and shared by all episodes. */
function openShop({ dataset, file_path, num_products, human_goals, limit_goals }: Config): Shop {
  const key = JSON.stringify([dataset, file_path, num_products, human_goals, limit_goals]);
  const open = shops.get(key);
  if (open) return open;
  if (dataset === 'full' && file_path === null)
    throw new MissingDependency(
      'needs the full catalogue, which is not part of the extension',
      'set env_config.file_path to the folder with items_shuffle.json and items_ins_v2.json of WebShop, or set env_config.dataset to small',
    );
  const catalogue = readCatalogue(file_path ?? shipped, dataset === 'small', num_products);
  const goals = goalsOf(catalogue, human_goals).slice(0, limit_goals < 0 ? undefined : limit_goals);
  const shop = { catalogue, goals, order: goalOrder(goals.length) };
  shops.set(key, shop);
  return shop;
}

export default defineEnvironment({
  name: 'webshop',
  config,
  instruction:
    'You are shopping on the web. Buy the product that fits the wish best: search, read the results, open a product, choose its' +
    ' options, and buy it. Act by search[words] or click[name], and only by actions that the page lists as available, for example' +
    ' <answer>search[hand painted pillow cover]</answer> or <answer>click[buy now]</answer>.',

  dependencies: config => void openShop(config),

  create(config) {
    const { catalogue, goals, order } = openShop(config);
    let goal: Goal;
    let pageState: PageState = { at: 'search' };
    let chosen = new Map<string, string>();
    let parts: Part[] = [];
    let observation = '';

    const show = () => {
      parts = partsOf(pageState, goal.text, catalogue, config.show_attrs);
      observation = config.observation_mode === 'html' ? pageHtml(parts) : pageText(parts);
    };
    const clickables = () => [...new Set(parts.flatMap(({ click }) => (click === undefined ? [] : [click])))];
    /**
     * Returns the actions that the observation lists. If a page of search results contains no products, `next >` is
     * omitted.
     */
    const offered = () => {
      const names = clickables().filter(name => name !== 'search');
      const isEnd = names.join() === 'back to search,< prev,next >';
      const clicks = names.filter(name => !(isEnd && name === 'next >')).map(name => `click[${name}]`);
      return { actions: pageState.at === 'search' ? ['search[<content>]', ...clicks] : clicks, isEnd };
    };
    const shown = (page: string) =>
      pageState.at === 'end'
        ? `${page}.`
        : `${page}.\n${hints}\nYou must choose from these actions: ${offered().actions.join(', ')}.`;

    /** Returns the page to which a click leads. */
    const follow = (name: string): PageState => {
      if (name === 'back to search') return { at: 'search' };
      if (pageState.at === 'results') {
        if (name === 'next >') return { ...pageState, page: pageState.page + 1 };
        if (name === '< prev') return { ...pageState, page: pageState.page - 1 };
        chosen = new Map();
        return { at: 'item', asin: name.toUpperCase(), from: { asins: pageState.asins, page: pageState.page } };
      }
      if (pageState.at !== 'item') return pageState;
      const { asin, detail, from } = pageState;
      if (name === '< prev') return detail ? { at: 'item', asin, from } : { at: 'results', ...from };
      const product = catalogue.products.get(asin)!;
      const option = [...product.options].find(([, values]) => values.includes(name));
      if (option) {
        chosen.set(option[0], name);
        return pageState;
      }
      if (name === 'buy now') return { at: 'end', score: purchaseReward(product, [...chosen.values()], goal) };
      return { at: 'item', asin, from, detail: details.find(known => known === name) as Detail };
    };

    return {
      reset({ seed, mode = 'train' }) {
        goal = goals[order[goalIndex(seed, mode, goals.length)]];
        pageState = { at: 'search' };
        chosen = new Map();
        show();
        return { observation: shown(goal.text) };
      },

      step(action): StepResult {
        const [, verb, raw = ''] = /^(\w+)\[(.*)\]$/s.exec(String(action).trim()) ?? [];
        const argument = raw.toLowerCase();
        const isSearch = verb === 'search' && pageState.at === 'search' && argument !== '';
        const isClick = verb === 'click' && argument !== 'search' && clickables().includes(argument);
        const before = observation;
        if (isSearch) pageState = { at: 'results', asins: catalogue.search(argument, found), page: 1 };
        else if (isClick) pageState = follow(argument);
        show();
        const bought = isClick && pageState.at === 'end';
        const raw_reward = bought && pageState.at === 'end' ? pageState.score : 0;
        const success = raw_reward >= 1;
        return {
          observation: shown(observation),
          reward: success ? 1 : 0,
          terminated: pageState.at === 'end',
          truncated: false,
          info: {
            action_is_valid: isSearch || isClick,
            action_is_effective: observation !== before,
            success,
            success_purchase: bought,
            success_find: success,
            end_of_page: offered().isEnd,
            raw_reward,
          },
        };
      },

      render: mode => (mode === 'html' ? pageHtml(parts) : shown(pageText(parts))),

      solve() {
        if (pageState.at === 'end') return [];
        const { asin, title, options } = goal.product;
        const values = [...options.values()].flat();
        const picks = goal.options.map(
          wanted => values.find(value => value === wanted) ?? values.find(value => isSamePhrase(value, wanted)),
        );
        const purchase = [...picks.filter(value => value !== undefined), 'buy now'].map(name => `click[${name}]`);
        if (pageState.at === 'item' && pageState.asin === asin)
          return pageState.detail ? ['click[< prev]', ...purchase] : purchase;
        const rank = catalogue.search(title, found).indexOf(asin);
        if (rank < 0) return undefined;
        return [
          ...(pageState.at === 'search' ? [] : ['click[back to search]']),
          `search[${title}]`,
          ...Array.from({ length: Math.floor(rank / perPage) }, () => 'click[next >]'),
          `click[${asin.toLowerCase()}]`,
          ...purchase,
        ];
      },
    };
  },
});
