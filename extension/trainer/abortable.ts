// Work that cannot be cut off itself (a process that starts, an environment's answer), left behind when a signal says so.

/** What `work` gives, or a rejection with the signal's reason as soon as it is aborted; what `work` comes to then is of no interest. */
export async function abortable<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  work.catch(() => undefined);
  signal.throwIfAborted();
  let left: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    left = () => reject(signal.reason as Error);
    signal.addEventListener('abort', left, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', left);
  }
}
