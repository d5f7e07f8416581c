// Freezes the built-ins that the worker's own code uses. If they were not frozen, an episode could change
// Array.prototype and thereby break other episodes of the same tag. The environment's code may change built-ins while
// it is loaded, because such a change affects all of the environment's episodes equally. Math, Date and the methods of
// Object.prototype stay mutable, because environments seed and extend them.

import { MessagePort } from 'node:worker_threads';

/** Prototypes and namespaces whose functions the worker calls. */
const used = (): object[] => [
  ...[Array, Map, Set, Promise, String, Number, Uint8Array, Int32Array, WeakMap, MessagePort].map(
    ({ prototype }): object => prototype,
  ),
  Object.getPrototypeOf(Uint8Array.prototype) as object,
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

/** Freezes the built-ins. A later write throws in strict mode and has no effect in sloppy mode. */
export function lockBuiltIns(): void {
  for (const object of used()) Object.freeze(object);
  for (const object of [Object.prototype, Function.prototype, Error.prototype]) Object.preventExtensions(object);
}
