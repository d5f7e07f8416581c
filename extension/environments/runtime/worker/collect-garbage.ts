// Runs the garbage collector after every few ended threads. A thread's memory outside the JavaScript heap is freed with
// its `Worker` object, which is small, so V8 would not collect it for a long time.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Number of ended threads between collections. A collection takes a few milliseconds in a process with a small heap.
 */
const threadsBetween = 4;

let ended = 0;
let collect: (() => void) | undefined;

/**
 * Records that a thread has ended and is unreferenced. `now` forces a collection, for a thread that held much memory.
 */
export function threadEnded(now = false): void {
  if (++ended % threadsBetween !== 0 && !now) return;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
