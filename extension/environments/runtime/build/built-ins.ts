// Freezes the built-ins that the worker's code relies on while episodes run, because an episode that changed
// Array.prototype would break the other episodes of its tag. Changes made at load time are allowed: they affect all
// episodes of the environment equally. Math, Date and the methods of Object stay mutable, since environments seed and
// extend them.

import { MessagePort } from 'node:worker_threads';

/** Prototypes and namespaces with functions that the worker calls. */
const used = (): object[] => [
  ...[Array, Map, Set, Promise, String, Number, Uint8Array, Int32Array, WeakMap, MessagePort].map(
    ({ prototype }): object => prototype,
  ),
  Object.getPrototypeOf(Uint8Array.prototype),
  ...iterators(),
  Array,
  Promise,
  Atomics,
  Reflect,
  Object,
  Number,
  String,
];

const iterators = (): object[] =>
  [[], new Map(), new Set(), ''].map(list => Object.getPrototypeOf(list[Symbol.iterator]()) as object);

/** Locks the built-ins. A later write throws in strict mode and is ignored in sloppy mode. */
export function lockBuiltIns(): void {
  for (const object of used()) Object.freeze(object);
  for (const object of [Object.prototype, Function.prototype, Error.prototype]) Object.preventExtensions(object);
}
