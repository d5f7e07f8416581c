// Sends requests to a model behind an API and retries failed requests. The pause before a retry grows exponentially; if
// the service asks for a pause in its Retry-After header, all requests are paused. The API key is removed from error
// texts of the service. If all retries of a request fail, the evaluation ends and can be resumed; an outage of the
// service is thus never recorded as a failure of the model. The package p-retry is not used, because a pause must delay
// all requests, and the random length of a pause must come from a seeded stream.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { secrets } from '../../node/secrets';
import { BodyTooLong, bodyText } from '../../../envs/api/response-body';
import { UserError } from '../../common/user-error';
import { RandomStream } from '../../engine/sampling/random-stream';
import { deriveSeed } from '../rollout/seeds';
import type { ApiMessage } from './api-images';
import type { ApiAnswer, ApiService } from './api-service';

export interface ApiClientOptions {
  timeoutMs: number;
  /** Maximum number of retries per request. */
  maxRetries: number;
  /** First and maximum pause, in milliseconds. */
  pauseMs?: { first: number; longest: number };
  /** Maximum bytes of a response body; the default is enough for the longest answers to conversations. */
  mostBytes?: number;
  /** What happens if all retries of a request fail, for the message; by default, the evaluation ends. */
  consequence?: string;
  signal: AbortSignal;
}

/**
 * Thrown if the service refuses a conversation, for example because it is too long or violates the service's rules.
 * Only the episode of this conversation fails.
 */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
}

/** Thrown if the service refuses all requests, for example because the key is invalid. */
export class ServiceRefused extends UserError {}

/** Why an attempt failed, and the pause that the service requested. */
interface Failure {
  why: string;
  /** Length of the pause in milliseconds, if the service asked for one. */
  asked?: number;
}

/** Maximum bytes of a response body. The longest model outputs (some hundred thousand tokens) need fewer bytes. */
const mostBodyBytes = 2 ** 22;
/** Maximum number of characters of an error text that are searched for secrets; the rest is dropped. */
const mostReadBytes = 65_536;
/**
 * Maximum pause in milliseconds that a service may ask for. If a service asks for a longer pause, the evaluation ends.
 */
const longestAskedMs = 15 * 60_000;

export class ApiClient<Question = readonly ApiMessage[], Answer extends object = ApiAnswer> {
  /** Total number of retries over all requests. */
  retries = 0;
  /** Earliest time of the next request, in milliseconds of `performance.now()`. */
  private opensAt = 0;
  private readonly pauses = new RandomStream(deriveSeed('api-pauses'));

  constructor(
    private readonly service: ApiService<Question, Answer>,
    private readonly options: ApiClientOptions,
  ) {
    setMaxListeners(0, options.signal); // each request adds a listener
  }

  /**
   * Returns the model's answer to a question, by default to a conversation.
   * @throws RequestRefused if the service refuses this question; UserError if the service refuses all requests, or
   * if all retries failed
   */
  async ask(question: Question): Promise<Answer> {
    const { maxRetries, signal, pauseMs = { first: 1000, longest: 60_000 } } = this.options;
    const { consequence = 'resume the evaluation later; its finished episodes are kept' } = this.options;
    const body = JSON.stringify(this.service.body(question));
    for (let attempt = 0; ; attempt++) {
      await this.untilOpen();
      const result = await this.attempt(body, question);
      if (!('why' in result)) return result;
      signal.throwIfAborted();
      const wait = result.asked ?? 0;
      if (attempt === maxRetries || wait > longestAskedMs)
        throw new UserError(
          `api: ${this.service.url} gave no usable response in ${attempt + 1} tries (${result.why}${wait > longestAskedMs ? `, next try allowed in ${Math.round(wait / 60_000)} minutes` : ''}): ${consequence}`,
        );
      this.retries++;
      if (wait > 0) this.opensAt = Math.max(this.opensAt, performance.now() + wait);
      const own = Math.min(pauseMs.longest, pauseMs.first * 2 ** attempt) * (0.5 + this.pauses.uniform() / 2);
      await sleep(Math.max(own, wait), undefined, { signal });
    }
  }

  private async untilOpen(): Promise<void> {
    for (let wait = this.opensAt - performance.now(); wait > 0; wait = this.opensAt - performance.now())
      await sleep(wait, undefined, { signal: this.options.signal });
  }

  private async attempt(body: string, question: Question): Promise<Answer | Failure> {
    const { url, headers } = this.service;
    const { timeoutMs, signal } = this.options;
    const request = new AbortController();
    const abort = (): void => request.abort();
    signal.addEventListener('abort', abort, { once: true });
    const timer = setTimeout(abort, timeoutMs);
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
        body,
        redirect: 'manual', // a redirect would send the key to another address
        signal: request.signal,
      });
      const text = await bodyText(response, this.options.mostBytes ?? mostBodyBytes).catch((error: unknown) => {
        if (error instanceof BodyTooLong && !response.ok) return ''; // the HTTP status suffices for the error message
        throw error;
      });
      return response.ok ? this.read(text) : this.refusal(response, text, question);
    } catch (error) {
      if (error instanceof UserError || error instanceof RequestRefused) throw error;
      signal.throwIfAborted();
      if (error instanceof BodyTooLong) throw new RequestRefused(`${error.message}: lower max_tokens`);
      if (request.signal.aborted) return { why: `no answer in ${timeoutMs / 1000} s` };
      const { message, cause } = error as Error & { cause?: Error & { code?: string } };
      return { why: this.withoutSecrets(cause?.code ?? cause?.message ?? message) };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  private read(text: string): Answer | Failure {
    try {
      return this.service.read(JSON.parse(text));
    } catch {
      return { why: `the reply does not follow the protocol: ${this.withoutSecrets(text, 80)}` };
    }
  }

  /** Returns the failure for a status that permits a retry; throws for any other error status. */
  private refusal({ status, headers }: Response, text: string, question: Question): Failure {
    const { message, code } = errorOf(text);
    const why = `${status}${message === '' ? '' : ` ${this.withoutSecrets(message)}`}`;
    const needed = this.service.remedyFor?.(text, question);
    if (needed !== undefined) throw new ServiceRefused(`api: ${this.service.url} refuses requests (${why}): ${needed}`);
    const spent = code === 'insufficient_quota' || code === 'billing_error';
    if (!spent && (status === 408 || status === 409 || status === 425 || status === 429 || status >= 500))
      return { why, asked: retryAfter(headers) };
    if (status === 400 || status === 413 || status === 422) throw new RequestRefused(why);
    const remedy =
      status === 401 || status === 403
        ? 'check the key and its permissions'
        : spent || status === 402
          ? 'top up the account'
          : 'check model_info';
    throw new ServiceRefused(`api: ${this.service.url} refuses requests (${why}): ${remedy}`);
  }

  /**
   * Removes secrets, then truncates the text. If the text were truncated first, a key that is cut in half would no
   * longer be recognised as a secret.
   */
  private withoutSecrets(text: string, most = 300): string {
    return secrets
      .text(text.slice(0, mostReadBytes))
      .replaceAll(this.service.secret, '***')
      .replace(/\b(sk|key|tgp)[-_][\w*.-]{6,}/g, '***')
      .replace(/\s+/g, ' ')
      .slice(0, most);
  }
}

/**
 * Extracts the error from a response body. In both protocols, the body is `{"error": {"message", "type", "code"}}`. If
 * the body has another form, its complete text is the message.
 */
function errorOf(text: string): { message: string; code: string | undefined } {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown; type?: unknown; code?: unknown } | string };
    if (typeof error === 'string') return { message: error, code: undefined };
    const code = [error?.code, error?.type].find(value => typeof value === 'string');
    return { message: typeof error?.message === 'string' ? error.message : '', code };
  } catch {
    return { message: text, code: undefined };
  }
}

/**
 * Returns the pause that a service asks for, in milliseconds. Reads the header `retry-after-ms`, or `Retry-After`,
 * which contains seconds or a date.
 */
export function retryAfter(headers: Headers, now = Date.now()): number | undefined {
  const ms = Number(headers.get('retry-after-ms') ?? NaN);
  if (ms >= 0) return ms;
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  if (text.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
