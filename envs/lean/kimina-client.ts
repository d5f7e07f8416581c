// Client of the Kimina Lean server: POST /api/check with one snippet returns {results: [{id, time, error | response}]}.
// This client sends the same requests as the server's official client (kimina-client 0.2.1 on PyPI).
import { createHash } from 'node:crypto';
import { bodyText } from '../api/response-body';
import { checkOf, type Check, type Checker } from './lean-check';

export interface KiminaOptions {
  url: string;
  apiKey: string | null;
  /** Whole seconds after which the server stops Lean. */
  timeout: number;
  /** HTTP timeout per attempt, in seconds. */
  httpTimeout: number;
  attempts: number;
  /**
   * Milliseconds before the second attempt. Each further wait is twice as long as the wait before it, up to ten
   * seconds.
   */
  backoffMs?: number;
}

/** Maximum bytes of a response, which contains the messages and the info tree of a proof. */
const mostBodyBytes = 2 ** 26;

const urlOf = (base: string, path: string) => `${base.replace(/\/+$/, '')}${path}`;
const headersOf = (apiKey: string | null): Record<string, string> =>
  apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };

export function kiminaChecker(options: KiminaOptions): Checker {
  const { url, apiKey, timeout, httpTimeout, attempts, backoffMs = 1000 } = options;

  async function attempt(code: string): Promise<Check> {
    // The id is a hash of the script, so that a replayed episode sends identical requests.
    const id = `ragen-proof-${createHash('sha256').update(code).digest('hex').slice(0, 32)}`;
    const body = { timeout, debug: true, reuse: true, infotree: 'tactics', snippets: [{ id, code }] };
    const response = await fetch(urlOf(url, '/api/check'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersOf(apiKey) },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(httpTimeout * 1000),
    });
    if (!response.ok) throw new Error(`the Lean server answered ${response.status}`);
    const { results } = JSON.parse(await bodyText(response, mostBodyBytes)) as {
      results?: { error?: unknown; response?: unknown }[];
    };
    const [result] = results ?? [];
    if (result === undefined) return { failure: 'The Lean server gave no result.', timedOut: false };
    if (typeof result.error === 'string') {
      // The API key is masked, because the error text is written to logs.
      const failure = apiKey ? result.error.replaceAll(apiKey, '***') : result.error;
      return { failure, timedOut: failure.toLowerCase().includes('timed out') };
    }
    return checkOf(result.response);
  }

  return {
    async check({ header, body }) {
      for (let tried = 1; ; tried++) {
        try {
          return await attempt(header + body);
        } catch (error) {
          const timedOut = (error as Error).name === 'TimeoutError';
          const why = timedOut ? `The request timed out after ${httpTimeout} seconds.` : reasonOf(error);
          if (tried >= attempts) return { failure: why, timedOut };
        }
        await new Promise(done => setTimeout(done, Math.min(backoffMs * 2 ** (tried - 1), 10_000)));
      }
    },
  };
}

/** Whether the server responds to a health check within five seconds. */
export function isAnswering(url: string, apiKey: string | null): Promise<boolean> {
  return fetch(urlOf(url, '/health'), { headers: headersOf(apiKey), signal: AbortSignal.timeout(5000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string } };
  return cause?.code
    ? `The Lean server cannot be reached (${cause.code}).`
    : `Asking the Lean server failed (${message}).`;
}
