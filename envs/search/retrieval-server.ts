// Client of RAGEN's retrieval server: POST /retrieve {query, top_k} returns {results: [{id, content, score}]}. If the
// request fails, the error message becomes the observation and the episode continues, as in RAGEN.
import { BodyTooLong, bodyText } from '../api/response-body';
import type { Found } from './corpus';

/** Maximum bytes of a response, which holds up to fifty passages. */
const mostBodyBytes = 2 ** 23;

/** Returns the `limit` best passages, or an error message as a sentence. Times out after `timeoutMs`. */
export async function retrieve(
  server: string,
  query: string,
  limit: number,
  timeoutMs: number,
): Promise<Found[] | string> {
  try {
    const response = await fetch(`${server.replace(/\/+$/, '')}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, top_k: Math.min(limit, 50) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await bodyText(response, mostBodyBytes);
    const body = objectOf(text) as { results?: unknown; error?: unknown };
    if (!response.ok)
      return `The retrieval server answered ${response.status}${body.error ? `: ${String(body.error)}` : ''}.`;
    if (!Array.isArray(body.results)) return 'The retrieval server answered without results.';
    return (body.results as Partial<Found>[]).slice(0, limit).map(({ id, content, score }, i) => ({
      id: String(id ?? `doc_${i + 1}`),
      content: String(content ?? ''),
      score: Number(score ?? 0),
    }));
  } catch (error) {
    if (error instanceof BodyTooLong) return `The retrieval server answered with more than ${mostBodyBytes} bytes.`;
    return (error as Error).name === 'TimeoutError'
      ? `The search took longer than ${timeoutMs / 1000} seconds.`
      : `The retrieval server at ${server} cannot be reached.`;
  }
}

function objectOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Whether the server responds to a health check within five seconds. */
export async function healthy(server: string): Promise<boolean> {
  const url = `${server.replace(/\/+$/, '')}/health`;
  return fetch(url, { signal: AbortSignal.timeout(5000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}
