// Elements without a framework. Invariant: every text reaches the page as a text node or an attribute, never as markup, since
// model output and environments' states are shown here.

export type Child = Node | string | null | undefined | false;

export interface Attributes {
  class?: string | null;
  /** Other attributes; null, undefined and false leave the attribute out, true gives the empty value. */
  [name: string]: string | number | boolean | null | undefined;
}

/** `h('span', {class: 'name'}, 'text')`: an element with attributes and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes?: Attributes,
  ...children: Child[]
): HTMLElementTagNameMap[K];
export function h(tag: string, attributes?: Attributes, ...children: Child[]): HTMLElement;
export function h(tag: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** Puts `children` in the place of what `parent` held. */
export function replaceChildren(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Sets the text only where it differs, so that a selection in it survives an update. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or takes away one attribute, only where it differs. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
}

function append(parent: Element, children: Child[]): void {
  for (const child of children) if (child !== null && child !== undefined && child !== false) parent.append(child);
}
