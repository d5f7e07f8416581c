// Demonstrated responses for the shop. The facts repeat the wish. A looking thought searches for the whole wish, names the
// listed product that the solver would buy, and chooses the wanted options; a guess searches for one word of the wish, opens
// any listed product, and buys it with any options.
import type { Demonstration } from '../demonstrated-response';
import { guess, pick, pickSome } from './response';
import type { ResponseRequest } from './response';

/** Most options that a guess clicks before it buys. */
const mostOptions = 2;
const product = /^click\[(b0\w{8})\]$/;

export function shopResponse({ state, plan, looks, stream }: ResponseRequest): Demonstration | null {
  const wish = wishOf(state);
  const clicks = /^You must choose from these actions: (.*)\.$/m.exec(state)?.[1].split(', ');
  if (!wish || !clicks) return null;
  if (clicks[0] === 'search[<content>]') {
    const facts = `want ${wish.thing}.`;
    if (looks) return { thought: `${facts} all of it.`, actions: [`search[${wish.thing}]`] };
    const words = wish.thing.replaceAll(',', '').split(' ');
    return { thought: `${facts} ${guess}`, actions: [`search[${pick(words, stream)}]`] };
  }
  const products = clicks.filter(click => product.test(click));
  return clicks.includes('click[buy now]')
    ? purchase(wish, clicks, { plan, looks, stream })
    : choice(wish.thing, products, { state, plan, looks, stream });
}

interface Wish {
  /** The wanted product, such as `eco friendly, sensitive teeth oral care`. */
  thing: string;
  /** Names and values of the wanted options. */
  options: string[];
}

function wishOf(state: string): Wish | null {
  const [, thing, options] =
    /Find me (.+?)(?: with (.+?))?(?:, and price lower than [\d.]+ dollars)?(?:\.\n| \[SEP\] )/.exec(state) ?? [];
  return thing === undefined ? null : { thing, options: options?.split(', and ') ?? [] };
}

/** The response to a page of results: the product that the solver opens next, if the page lists it. */
function choice(
  thing: string,
  products: readonly string[],
  { state, plan, looks, stream }: Omit<ResponseRequest, 'mostActions'>,
): Demonstration {
  const facts = `want ${thing}.`;
  const wanted = plan.find(action => products.includes(action));
  if (products.length === 0 || (looks && wanted === undefined))
    return { thought: `${facts} not here. ${looks ? 'again.' : guess}`, actions: ['click[back to search]'] };
  if (!looks || wanted === undefined) return { thought: `${facts} ${guess}`, actions: [pick(products, stream)] };
  const [, title] = state.split(`${product.exec(wanted)![1].toUpperCase()} [SEP] `)[1].match(/^(.*?) \[SEP\]/)!;
  return { thought: `${facts} ${title}.`, actions: [wanted] };
}

/** The response to a product's page. The solver's plan tells whether it is the product that the wish describes. */
function purchase(
  { thing, options }: Wish,
  clicks: readonly string[],
  { plan, looks, stream }: Pick<ResponseRequest, 'plan' | 'looks' | 'stream'>,
): Demonstration {
  const facts = [`want ${thing}`, ...options].join(', ').concat('.');
  if (!looks) {
    const offered = clicks.slice(clicks.indexOf('click[< prev]') + 1, clicks.indexOf('click[description]'));
    const picked = offered.length === 0 ? [] : pickSome(offered, mostOptions, stream);
    return { thought: `${facts} ${guess}`, actions: [...picked, 'click[buy now]'] };
  }
  if (plan.at(-1) !== 'click[buy now]' || plan[0] === 'click[back to search]')
    return { thought: `${facts} wrong one.`, actions: ['click[< prev]'] };
  return { thought: `${facts} right one.`, actions: [...plan] };
}
