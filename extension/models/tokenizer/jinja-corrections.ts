// Prepares a parsed chat template for the interpreter: each printed expression becomes an Output node
// (python-interpreter.ts), and string methods become calls of the functions below. Three string methods of
// @huggingface/jinja (strip, lstrip and rstrip) use JavaScript's white space. They also ignore their argument, which
// names the characters to strip. Qwen3's template uses this argument to strip newlines but not blanks. The library's
// strftime_now returns the current local time; here it returns a given day, so that prompts do not depend on the clock.
import { outputNode } from './python-interpreter';
import { capitalized, split, strftime, strip } from './python-text';
import type { Template } from '@huggingface/jinja';

type Node = Record<string, unknown> & { type: string };
/** Names under which corrected templates call the functions that replace library functions. */
const names = {
  strip: 'py_strip',
  lstrip: 'py_lstrip',
  rstrip: 'py_rstrip',
  split: 'py_split',
  capitalize: 'py_capitalize',
  strftime_now: 'py_strftime_now',
};
const methods = ['strip', 'lstrip', 'rstrip', 'split', 'capitalize'] as const;
/**
 * `blocks`: fields that contain the body of a statement. `statements`: types of nodes that `printed` leaves unchanged.
 */
const blocks = ['body', 'alternate', 'defaultBlock'];
const statements = [
  'If',
  'For',
  'Set',
  'Macro',
  'CallStatement',
  'FilterStatement',
  'Break',
  'Continue',
  'Comment',
  'StringLiteral',
];

/** Changes the template in place, so that it prints values as Python does and calls `templateFunctions`. */
export function correctTemplate(template: Template): void {
  template.parsed = corrected(template.parsed) as Template['parsed'];
}

/** Returns the functions that a corrected template calls. strftime_now returns `day`, in UTC. */
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

/**
 * Returns the node with printed expressions wrapped in Output nodes, and with method calls replaced by function calls.
 */
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

/** Creates a node with the prototype of a library class, because the library checks with instanceof. */
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
