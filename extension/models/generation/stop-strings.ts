// Detects stop strings in sampled ids. The engine takes and returns ids; it decodes ids to text only to find stop
// strings.
import { maximum } from '../../common/lists';

/**
 * Returns whether the newest of `ids` completes one of the stop strings. Decodes only as many trailing tokens as could
 * contain a stop string.
 */
export function completesStop(
  ids: readonly number[],
  stop: readonly string[],
  decode: (ids: readonly number[]) => string,
): boolean {
  if (stop.length === 0) return false;
  const tail = ids.slice(-1 - maximum(stop.map(text => Buffer.byteLength(text))));
  const text = decode(tail);
  const before = decode(tail.slice(0, -1));
  return stop.some(wanted => text.includes(wanted) && !before.includes(wanted));
}
