// Creates and changes elements without a template. Used for drawings of many cells, and for attributes that the
// toolkit's elements change themselves. Invariant: every text is inserted as a text node or an attribute, never as
// markup.

type Child = Node | string | null | undefined | false;

interface Attributes {
  /** An attribute that is null, undefined or false is omitted; an attribute that is true is set to an empty text. */
  [name: string]: string | number | boolean | null | undefined;
}

/** Creates an SVG element with attributes and children. */
export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** Sets an attribute, or removes it if `value` is null. An unchanged attribute is not written. */
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
