// Sets a record of attributes on an element of a template, for drawings whose attributes are data. Names come from
// code; attributes that the next record lacks are removed.
import { noChange } from 'lit';
import { Directive, directive, type ElementPart } from 'lit/directive.js';
import { setAttribute } from '../shared/dom';

export type AttributeRecord = Readonly<Record<string, string | number>>;

class Attributes extends Directive {
  private present: AttributeRecord = {};

  override update({ element }: ElementPart, [record]: [AttributeRecord]): typeof noChange {
    if (record === this.present) return noChange;
    for (const name of Object.keys(this.present)) if (!Object.hasOwn(record, name)) element.removeAttribute(name);
    for (const [name, value] of Object.entries(record)) setAttribute(element, name, String(value));
    this.present = record;
    return noChange;
  }

  render(_record: AttributeRecord): typeof noChange {
    return noChange;
  }
}

/** `svg`<rect ${attributes({x: 1, y: 2})}></rect>``. */
export const attributes = directive(Attributes);
