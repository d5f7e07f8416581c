// A host with hostile texts: each text that a person, a model, an environment or a file can write gets a text of the
// corpus appended, the same one each time, so that names still match. Also checks whether a page treated any of them as
// more than text.
import { expect } from 'vitest';
import { markupCorpus } from '../../e2e/fixtures/markup-corpus.mjs';
import type { MemoryHost } from '../../e2e/preview/memory-host';

/** Keys whose values are the product's own words, formatted numbers, or pictures. */
const own =
  /^(state|kind|mode|created|updated|time|started|images|unit|trained|basis|what|regime|finish|method|category|severity)$/;

export class HostileTexts implements MemoryHost {
  private readonly byOriginal = new Map<string, string>();
  private readonly originals = new Map<string, string>();

  constructor(private readonly honest: MemoryHost) {}

  /** The honest host's answer, after restoring the original names in the request. */
  answer(method: string, params: unknown): unknown {
    const back = (text: string): string => this.originals.get(text) ?? text;
    return this.hostile(this.honest.answer(method, mapped(params, back, back)));
  }

  /** The same for notifications of the host. Adds metrics with the corpus's names wherever keys are listed. */
  hostile<T>(value: T): T {
    const worse = (text: string): string => {
      const known = this.byOriginal.get(text) ?? text + markupCorpus[this.byOriginal.size % markupCorpus.length];
      this.byOriginal.set(text, known);
      this.originals.set(known, text);
      return known;
    };
    const name = (key: string): string => (/^[A-Z]/.test(key) ? worse(key) : key);
    return mapped(value, worse, name) as T;
  }
}

function mapped(value: unknown, text: (text: string) => string, name: (key: string) => string, key = ''): unknown {
  if (typeof value === 'string') return own.test(key) ? value : text(value);
  if (key === 'keys' && Array.isArray(value))
    return [...(value as unknown[]), ...markupCorpus.map(each => `train/${each}/success`)];
  if (Array.isArray(value)) return value.map(item => mapped(item, text, name, key));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [name(key), mapped(child, text, name, key)]));
}

/** Elements that no page creates from data. */
const foreign =
  'script, iframe, frame, object, embed, base, meta, link, form, template, noscript, video, audio, source, math, marquee, ' +
  'foreignObject, animate, use, image, a[href], [name=harmed], [id=harmed], [data-harmed], [srcdoc], [formaction], [autofocus]';

/** Throws if any element or attribute of the document was made from a text. Pictures may be data URLs of the page. */
export function expectTextAlone(root: Element): void {
  expect([...root.querySelectorAll(foreign)].map(element => element.outerHTML)).toEqual([]);
  for (const element of root.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name)) throw new Error(`<${element.localName}> has ${name}="${value}"`);
      if (
        /^(src|href|xlink:href|action|poster|data|background)$/i.test(name) &&
        !/^(data:image\/png;base64,[\w+/=]*$|#)/.test(value)
      )
        throw new Error(`<${element.localName}> has ${name}="${value}"`);
      if (name === 'style' && /url\(|@import|expression|</i.test(value)) throw new Error(`a style is ${value}`);
    }
    if (element.localName === 'style' && /harmed|display:none\}/.test(element.textContent ?? ''))
      throw new Error('a style was made');
  }
  expect((globalThis as { harmed?: unknown }).harmed).toBeUndefined();
}

/** Corpus texts that a page shows, in its text or in attributes. */
export function shownOf(root: Element): string[] {
  const parts = [root.textContent ?? ''];
  for (const element of root.querySelectorAll<HTMLElement & { value?: unknown }>('*')) {
    for (const { value } of element.attributes) parts.push(value);
    if (typeof element.value === 'string') parts.push(element.value);
  }
  const all = parts.join('\n');
  return markupCorpus.filter(text => all.includes(text));
}
