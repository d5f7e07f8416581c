// The pages of an episode, drawn from its seed: a start page, a page per person with the city where the person lives,
// and a shop with a page per article and an order form. Pages are texts with links by number and fields by name, as a
// text browser shows them. Pages depend only on the seed and on the form's state, which the browser holds.
import type { Pcg64 } from '../api/random/pcg64';

export interface Link {
  text: string;
  path: string;
}

export interface Page {
  title: string;
  text: string;
  links: Link[];
  /** Names of the fields of the page's form; absent if the page has no form. */
  fields?: string[];
}

export interface Person {
  name: string;
  city: string;
  friend: string;
}

export interface Article {
  name: string;
  price: number;
  code: string;
}

export interface Site {
  people: Person[];
  articles: Article[];
  pages: ReadonlyMap<string, Page>;
}

export const orderPath = '/order';
export const orderFields = ['code', 'count', 'city'];

const firstNames = ['Ada', 'Ben', 'Cleo', 'Dan', 'Eva', 'Finn', 'Gina', 'Hugo', 'Ines', 'Jan'];
const cities = ['Bergen', 'Cork', 'Delft', 'Evora', 'Ghent', 'Izmir', 'Leon', 'Malmo', 'Nice', 'Turin'];
const goods = ['anchor', 'basket', 'compass', 'drum', 'easel', 'flask', 'globe', 'hammock', 'inkpot', 'jigsaw'];

/** Returns the path of a person's or an article's page. */
export const pathOf = (kind: 'people' | 'shop', name: string): string => `/${kind}/${name.toLowerCase()}`;

/** Draws a site with `size` people and articles. */
export function drawSite(random: Pcg64, size: number): Site {
  const taken = (all: readonly string[]): string[] => {
    const left = [...all];
    return Array.from({ length: size }, () => left.splice(random.integers(0, left.length), 1)[0]);
  };
  const names = taken(firstNames);
  const homes = taken(cities);
  const people = names.map((name, i) => ({ name, city: homes[i], friend: names[(i + 1) % size] }));
  const articles = taken(goods).map(name => ({
    name,
    price: random.integers(2, 90),
    code: `${name[0].toUpperCase()}${random.integers(100, 1000)}`,
  }));
  const home: Link = { text: 'Start', path: '/' };
  const list = (kind: 'people' | 'shop', all: readonly { name: string }[]): Link[] =>
    all.map(({ name }) => ({ text: name, path: pathOf(kind, name) }));
  const pages = new Map<string, Page>([
    [
      '/',
      {
        title: 'Start',
        text: 'Welcome.',
        links: [
          { text: 'People', path: '/people' },
          { text: 'Shop', path: '/shop' },
        ],
      },
    ],
    ['/people', { title: 'People', text: 'Everybody here.', links: [...list('people', people), home] }],
    [
      '/shop',
      {
        title: 'Shop',
        text: 'All articles.',
        links: [...list('shop', articles), { text: 'Order', path: orderPath }, home],
      },
    ],
    [orderPath, { title: 'Order', text: 'Fill in all fields and submit.', links: [home], fields: orderFields }],
    ...people.map(({ name, city, friend }): [string, Page] => [
      pathOf('people', name),
      {
        title: name,
        text: `${name} lives in ${city}. The best friend of ${name} is ${friend}.`,
        links: [{ text: friend, path: pathOf('people', friend) }, home],
      },
    ]),
    ...articles.map(({ name, price, code }): [string, Page] => [
      pathOf('shop', name),
      {
        title: name,
        text: `Price: ${price}. Article code: ${code}.`,
        links: [{ text: 'Order', path: orderPath }, home],
      },
    ]),
  ]);
  return { people, articles, pages };
}

/** Returns a page as the model sees it. */
export function pageText(
  path: string,
  { title, text, links, fields }: Page,
  filled: Readonly<Record<string, string>>,
): string {
  const form = (fields ?? []).map(name => `${name}: ${filled[name] ?? '(empty)'}`);
  return [`${title} (${path})`, text, ...form, ...links.map((link, i) => `[${i + 1}] ${link.text}`)].join('\n');
}
