// Prepares a parsed chat template for the interpreter. Each printed expression becomes an Output node (python-interpreter.ts), and calls of text methods become
// calls of the functions below: @huggingface/jinja ignores which characters strip, lstrip and rstrip are to remove (Qwen3's template keeps the blanks of an
// answer and drops its newlines), takes JavaScript's white space, and its strftime_now returns the present in the machine's time zone.
import { outputNode } from './python-interpreter';
import { capitalized, split, strftime, strip } from './python-text';
import type { Template } from '@huggingface/jinja';

type Node = Record<string, unknown> & { type: string };
/** Template functions that replace the library's, by the name under which a corrected template calls them. */
const names = {
  strip: 'py_strip',
  lstrip: 'py_lstrip',
  rstrip: 'py_rstrip',
  split: 'py_split',
  capitalize: 'py_capitalize',
  strftime_now: 'py_strftime_now',
};
const methods = ['strip', 'lstrip', 'rstrip', 'split', 'capitalize'] as const;
/** Fields that hold what a statement runs or prints, and the nodes there that print nothing of their own. */
const blocks = ['body', 'alternate', 'defaultBlock'];
const statements = ['If', 'For', 'Set', 'Macro', 'CallStatement', 'FilterStatement', 'Break', 'Continue', 'Comment', 'StringLiteral']; // prettier-ignore

/** Makes the template print as Python does and call `templateFunctions`, in place. */
export function correctTemplate(template: Template): void {
  template.parsed = corrected(template.parsed) as Template['parsed'];
}

/** The functions that a corrected template calls. `day`, in UTC, is what strftime_now returns. */
export function templateFunctions(day: Date): Record<string, (...args: never[]) => unknown> {
  return {
    [names.strip]: (text: unknown, chars?: string | null) => strip(method(text, 'strip'), chars, true, true),
    [names.lstrip]: (text: unknown, chars?: string | null) => strip(method(text, 'lstrip'), chars, true, false),
    [names.rstrip]: (text: unknown, chars?: string | null) => strip(method(text, 'rstrip'), chars, false, true),
    [names.split]: (text: unknown, separator?: string | null, most?: number) =>
      split(method(text, 'split'), separator ?? null, most ?? -1),
    [names.capitalize]: (text: unknown) => capitalized(method(text, 'capitalize')),
    [names.strftime_now]: (format: string) => strftime(day, format),
  };
}

/** The node with its parts: printed expressions in Output nodes, calls of the methods above as calls of their functions. */
function corrected(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(corrected);
  if (part instanceof Map) return new Map([...part].map(([key, value]) => [corrected(key), corrected(value)]));
  if (!isNode(part)) return part;
  for (const [key, value] of Object.entries(part)) {
    part[key] = corrected(value);
    if (blocks.includes(key) && Array.isArray(part[key])) part[key] = (part[key] as Node[]).map(printed);
  }
  if (isCalled(part, 'strftime_now')) return derived(part, { type: 'Identifier', value: names.strftime_now });
  if (part.type === 'CallExpression' && isNode(part.callee) && part.callee.type === 'MemberExpression') {
    const { object, property } = part.callee;
    for (const name of methods) if (isCalled(property, name)) return call(part, names[name], object, part.args);
  }
  return part;
}

const printed = (node: Node): Node =>
  statements.includes(node.type) ? node : derived(node, { type: outputNode, value: node });

/** A node of the library's own classes, which it looks for with instanceof. */
const derived = (node: Node, fields: Node): Node =>
  Object.assign(Object.create(Object.getPrototypeOf(node) as object) as Node, fields);

const isNode = (part: unknown): part is Node => typeof part === 'object' && part !== null && 'type' in part;
const isCalled = (part: unknown, name: string): boolean =>
  isNode(part) && part.type === 'Identifier' && part.value === name;
const call = (node: Node, name: string, subject: unknown, args: unknown): Node =>
  derived(node, {
    type: 'CallExpression',
    callee: { type: 'Identifier', value: name },
    args: [subject, ...(args as unknown[])],
  });

function method(text: unknown, name: string): string {
  if (typeof text !== 'string') throw new Error(`${name} is a method of text, not of ${String(text)}`);
  return text;
}
