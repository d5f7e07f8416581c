// Keeps environment code from replacing what the worker's own code stands on while episodes run: an episode that changed Array.prototype would
// fail the others of its tag. Changes at load are the environment's own, for all of its episodes alike. Math, Date and Object's methods stay
// open, since environments seed and extend these.

import { MessagePort } from 'node:worker_threads';

/** Prototypes and namespaces whose functions the worker calls. */
const used = (): object[] => [
  ...[Array, Map, Set, Promise, String, Number, Uint8Array, Int32Array, WeakMap, MessagePort].map(
    ({ prototype }) => prototype,
  ),
  ...[Object.getPrototypeOf(Uint8Array.prototype), ...iterators()],
  ...[Array, Promise, Atomics, Reflect, Object, Number, String],
];

const iterators = (): object[] =>
  [[], new Map(), new Set(), ''].map(list => Object.getPrototypeOf(list[Symbol.iterator]()) as object);

/** From now on these throw where they are changed, or ignore it in sloppy code. */
export function lockBuiltIns(): void {
  for (const object of used()) Object.freeze(object);
  for (const object of [Object.prototype, Function.prototype, Error.prototype]) Object.preventExtensions(object);
}
