// Runs the garbage collector after several threads have ended. A thread's memory outside the JavaScript heap is freed
// only when its `Worker` object is collected. This object is small, so V8 alone would not collect it for a long time.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The garbage collector runs each time this number of threads has ended. One collection takes a few milliseconds if the
 * process's heap is small.
 */
const threadsBetween = 4;

let ended = 0;
let collect: (() => void) | undefined;

/**
 * Must be called when a thread has ended and its `Worker` is no longer referenced.
 * @param now whether to collect at once, because the thread used much memory
 */
export function threadEnded(now = false): void {
  if (++ended % threadsBetween !== 0 && !now) return;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
