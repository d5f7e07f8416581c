// The shop's pages as lists of parts; a part that can be clicked has a name. Pages are rendered as text, with [SEP]
// between the parts, or as simple HTML.
import type { Catalogue, Product } from './catalogue';

export type PageState =
  | { at: 'search' }
  | ({ at: 'results' } & Results)
  | { at: 'item'; asin: string; detail?: Detail; from: Results }
  | { at: 'end'; score: number };

/** A page of search results; pages are numbered from 1. */
export interface Results {
  asins: string[];
  page: number;
}

export const details = ['description', 'features', 'reviews', 'attributes'] as const;
export type Detail = (typeof details)[number];

export interface Part {
  text: string;
  tag: 'h1' | 'p' | 'button' | 'a' | 'label';
  /** The part's name in lower case; undefined if the part cannot be clicked. */
  click?: string;
}

/** Number of products per page of results (`perPage`), and maximum number of results per search (`found`). */
export const perPage = 10;
export const found = 50;

const text = (of: string): Part => ({ text: of, tag: 'p' });
const button = (of: string): Part => ({ text: of, tag: 'button', click: of.toLowerCase() });
const heading = (wish: string) => [{ text: 'Instruction:', tag: 'h1' } as const, text(wish)];

/** Returns the parts of a page, in display order. */
export function partsOf(pageState: PageState, wish: string, catalogue: Catalogue, showAttributes: boolean): Part[] {
  switch (pageState.at) {
    case 'search':
      return [{ text: 'WebShop', tag: 'h1' }, ...heading(wish), button('Search')];
    case 'results': {
      const { asins, page } = pageState;
      const first = (page - 1) * perPage;
      return [
        ...heading(wish),
        button('Back to Search'),
        text(`Page ${page} (Total results: ${asins.length})`),
        ...(page > 1 ? [button('< Prev')] : []),
        button('Next >'),
        ...asins.slice(first, first + perPage).flatMap((asin): Part[] => {
          const { title, priceTag } = catalogue.products.get(asin)!;
          return [{ text: asin, tag: 'a', click: asin.toLowerCase() }, text(title), text(priceTag)];
        }),
      ];
    }
    case 'item': {
      const product = catalogue.products.get(pageState.asin)!;
      const way = [...heading(wish), button('Back to Search'), button('< Prev')];
      if (pageState.detail) return [...way, ...detailOf(product, pageState.detail).map(text)];
      const shown = details.filter(detail => detail !== 'attributes' || showAttributes);
      return [
        ...way,
        ...[...product.options].flatMap(([name, values]): Part[] => [
          text(name),
          ...values.map((value): Part => ({ text: value, tag: 'label', click: value })),
        ]),
        { text: product.title, tag: 'h1' },
        text(`Price: ${product.priceTag}`),
        text('Rating: N.A.'),
        ...shown.map(detail => button(detail[0].toUpperCase() + detail.slice(1))),
        button('Buy Now'),
      ];
    }
    case 'end':
      return [
        text('Thank you for shopping with us!'),
        text('Your score (min 0.0, max 1.0)'),
        text(String(pageState.score)),
      ];
  }
}

function detailOf({ description, bullets, attributes }: Product, detail: Detail): string[] {
  if (detail === 'description') return [description];
  if (detail === 'features') return bullets;
  return detail === 'attributes' ? attributes : ['There are no reviews.'];
}

/** Returns the page as text. */
export const pageText = (parts: readonly Part[]): string => parts.map(part => part.text).join(' [SEP] ');

/** Returns the page as HTML. */
export function pageHtml(parts: readonly Part[]): string {
  const escaped = (of: string) => of.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<html><body>\n${parts.map(({ tag, text }) => `<${tag}>${escaped(text)}</${tag}>`).join('\n')}\n</body></html>`;
}
