// A text browser for one site: fetches pages, and reads title, paragraphs, links and fields from their HTML. Paths are
// relative to the site's address, so host and secret never appear in an observation. Links that leave the site are left
// out. The browser holds what was typed into the form; another page forgets it.
import { defaultTreeAdapter, parse, type DefaultTreeAdapterTypes } from 'parse5';
import { pageText, type Page } from './site';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

export class TextBrowser {
  /** Path of the present page. */
  path = '/';
  /** Texts of the form's fields by name. */
  filled: Record<string, string> = {};
  page: Page = { title: '', text: '', links: [] };

  /** @param address the site's address without a slash at the end */
  constructor(private readonly address: string) {}

  /** Opens a page. Returns whether it exists; if not, the browser stays where it is. */
  async open(path: string, signal?: AbortSignal): Promise<boolean> {
    const url = new URL(`${this.address}${path}`);
    const to = this.pathOf(url.href);
    if (to === undefined) return false;
    const response = await fetch(url, { redirect: 'error', signal });
    const html = await response.text();
    if (response.status === 404) return false;
    if (!response.ok) throw new Error(`the small web answered ${to} with status ${response.status}`);
    if (to !== this.path) this.filled = {};
    this.page = this.pageOf(html, url);
    this.path = to;
    return true;
  }

  /** Posts the present page's form, and returns the text of the page that answers. */
  async submit(signal?: AbortSignal): Promise<string> {
    const url = new URL(`${this.address}${this.path}`);
    const body = new URLSearchParams(this.filled);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const response = await fetch(url, { method: 'POST', headers, body: body.toString(), redirect: 'error', signal });
    const html = await response.text();
    if (!response.ok) throw new Error(`the small web answered the form of ${this.path} with status ${response.status}`);
    return this.pageOf(html, url).text;
  }

  /** The present page as the model sees it. */
  get text(): string {
    return pageText(this.path, this.page, this.filled);
  }

  /** Returns the path of an address on this site, without its query; undefined for any other address. */
  private pathOf(href: string): string | undefined {
    if (!href.startsWith(`${this.address}/`)) return undefined;
    return href.slice(this.address.length).replace(/[?#].*$/s, '');
  }

  private pageOf(html: string, url: URL): Page {
    const all = [...elementsIn(parse(html))];
    const named = (tag: string): Element[] => all.filter(({ tagName }) => tagName === tag);
    const links = named('a').flatMap(link => {
      const href = attribute(link, 'href');
      const path =
        href !== undefined && URL.canParse(href, url.href) ? this.pathOf(new URL(href, url).href) : undefined;
      return path === undefined ? [] : [{ text: textOf(link), path }];
    });
    const fields = named('input').flatMap(input => attribute(input, 'name') ?? []);
    return {
      title: named('title').map(textOf).join(' '),
      text: named('p').map(textOf).join('\n'),
      links,
      ...(named('form').length > 0 && { fields }),
    };
  }
}

/** Yields the elements below a node, in the order of the document. */
function* elementsIn(node: Node): Generator<Element> {
  if (defaultTreeAdapter.isElementNode(node)) yield node;
  if ('childNodes' in node) for (const child of node.childNodes) yield* elementsIn(child);
}

const attribute = ({ attrs }: Element, name: string): string | undefined =>
  attrs.find(each => each.name === name)?.value;

/** The text of a node, with runs of white space as one space. */
function textOf(node: Node): string {
  const texts = (each: Node): string =>
    defaultTreeAdapter.isTextNode(each) ? each.value : 'childNodes' in each ? each.childNodes.map(texts).join('') : '';
  return texts(node).replace(/\s+/g, ' ').trim();
}
