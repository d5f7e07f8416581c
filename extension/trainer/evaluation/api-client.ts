// Requests to a model behind an API, tried again until they are answered: after a pause that doubles, or the one that the service asks
// for by Retry-After, which then holds for all requests. What a service says in an error is shown without the key.
// An outage is never counted against the model: a request that stays unanswered ends the evaluation, which can be resumed.
import { setTimeout as sleep } from 'node:timers/promises';
import { secrets } from '../secrets';
import { BodyTooLong, bodyText } from '../../../envs/api/response-body';
import { UserError } from '../../protocol/user-error';
import { RandomStream } from '../engine/random-stream';
import { deriveSeed } from '../rollout/seeds';
import type { ChatMessage } from '../rollout/context-manager';
import type { ApiAnswer, ApiService } from './api-service';

export interface ApiClientOptions {
  timeoutMs: number;
  /** A request is tried so many times more. */
  maxRetries: number;
  /** First pause and longest one. */
  pauseMs?: { first: number; longest: number };
  signal: AbortSignal;
}

/** The service does not answer this conversation (too long, against its rules): the episode fails, and nothing else. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
}

/** Why an attempt failed, and after which pause it may be made again; null where it may not. */
interface Failure {
  why: string;
  /** Milliseconds that the service asked to wait. */
  asked?: number;
}

/** Bytes of an answer; the longest that models write have some hundred thousand tokens. */
const mostBodyBytes = 2 ** 22;
/** Of an error's text so much is looked at. */
const mostReadBytes = 65_536;
/** A longer wait than this is not waited for. */
const longestAskedMs = 15 * 60_000;

export class ApiClient {
  /** Attempts that were made again, over all requests. */
  retries = 0;
  /** No request is sent before this time. */
  private opensAt = 0;
  private readonly pauses = new RandomStream(deriveSeed('api-pauses'));

  constructor(
    private readonly service: ApiService,
    private readonly options: ApiClientOptions,
  ) {}

  /**
   * The answer to a conversation.
   * @throws RequestRefused where this conversation is not answered; UserError where none is, or not after all tries
   */
  async ask(messages: readonly ChatMessage[]): Promise<ApiAnswer> {
    const { maxRetries, signal, pauseMs = { first: 1000, longest: 60_000 } } = this.options;
    const body = JSON.stringify(this.service.body(messages));
    for (let attempt = 0; ; attempt++) {
      await this.untilOpen();
      const result = await this.attempt(body);
      if (!('why' in result)) return result;
      signal.throwIfAborted();
      const wait = result.asked ?? 0;
      if (attempt === maxRetries || wait > longestAskedMs)
        throw new UserError(
          `api: ${this.service.url} gave no answer in ${attempt + 1} tries (${result.why}${wait > longestAskedMs ? `, to be tried again in ${Math.round(wait / 60_000)} minutes` : ''}): resume the evaluation when it does, its finished episodes are kept`,
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

  private async attempt(body: string): Promise<ApiAnswer | Failure> {
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
        redirect: 'manual', // a key goes nowhere but where it was sent
        signal: request.signal,
      });
      const text = await bodyText(response, mostBodyBytes).catch((error: unknown) => {
        if (error instanceof BodyTooLong && !response.ok) return ''; // its status says what it means
        throw error;
      });
      return response.ok ? this.read(text) : this.refusal(response, text);
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

  private read(text: string): ApiAnswer | Failure {
    try {
      const answer = this.service.read(JSON.parse(text));
      return { ...answer, text: secrets.text(answer.text) }; // what comes in is what is played on with
    } catch {
      return { why: `its reply is not what its protocol says: ${this.withoutSecrets(text, 80)}` };
    }
  }

  /** What an error's status means: try again, or throw. */
  private refusal({ status, headers }: Response, text: string): Failure {
    const { message, code } = errorOf(text);
    const why = `${status}${message === '' ? '' : ` ${this.withoutSecrets(message)}`}`;
    const spent = code === 'insufficient_quota' || code === 'billing_error';
    if (!spent && (status === 408 || status === 409 || status === 425 || status === 429 || status >= 500))
      return { why, asked: retryAfter(headers) };
    if (status === 400 || status === 413 || status === 422) throw new RequestRefused(why);
    const remedy =
      status === 401 || status === 403
        ? 'check the key and what it may do'
        : spent || status === 402
          ? 'top up the account'
          : 'check model_info';
    throw new UserError(`api: ${this.service.url} refuses requests (${why}): ${remedy}`);
  }

  /** Cut after it is cleared: the beginning of a key would not be found. */
  private withoutSecrets(text: string, most = 300): string {
    return secrets
      .text(text.slice(0, mostReadBytes))
      .replaceAll(this.service.secret, '***')
      .replace(/\b(sk|key|tgp)[-_][\w*.-]{6,}/g, '***')
      .replace(/\s+/g, ' ')
      .slice(0, most);
  }
}

/** What a body says of an error: `{"error": {"message", "type", "code"}}` in both protocols. */
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

/** Milliseconds that a service asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date. */
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
