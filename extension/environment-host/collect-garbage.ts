// Memory outside JavaScript that a thread held is let go of with its `Worker` object, which V8 sees no reason to collect for a long time,
// small as it is. After every so many ended threads the collector is called by hand.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A collection takes some milliseconds in a process whose own heap is small. */
const threadsBetween = 4;

let ended = 0;
let collect: (() => void) | undefined;

/** A thread has ended and nothing refers to it any more. With `now` it held much. */
export function threadEnded(now = false): void {
  if (++ended % threadsBetween !== 0 && !now) return;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
