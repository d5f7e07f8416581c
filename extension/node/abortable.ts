// Stops waiting for work that cannot be cancelled (a process start, an environment's reply) when a signal aborts.

/**
 * Resolves or rejects with `work`; rejects with the signal's reason as soon as it aborts. After an abort the outcome of
 * `work` is ignored.
 */
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
