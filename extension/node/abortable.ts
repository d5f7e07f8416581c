// Waits for the result of an operation, but gives up waiting when a signal is aborted. Used for operations that cannot
// be cancelled, such as the start of a process or an environment's reply.

/**
 * Resolves or rejects like `work`. As soon as `signal` is aborted, rejects with the signal's reason. After an abort,
 * the outcome of `work` is ignored.
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
