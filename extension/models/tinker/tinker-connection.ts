// HTTP to a server of the Tinker REST API: requests with time limits, results that are computed later, heartbeats, and
// what follows from a failure. An outage is waited for and reported. A request that changes weights is sent once: if
// its answer is lost, WeightsUncertain is thrown, because the server may have executed it. Error texts of the server
// are shown without secrets.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request, type Dispatcher } from 'undici';
import type { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import { secrets } from '../../node/secrets';
import { failedSchema, notReadySchema, pendingSchema } from './tinker-wire';

export interface ConnectionOptions {
  /** Base URL without a trailing slash, such as https://host:8000. */
  url: string;
  /** API key, sent as X-API-Key; null for none. */
  key: string | null;
  /** Maximum milliseconds of one HTTP request. */
  timeoutMs: number;
  /** Maximum milliseconds of an outage that is waited for. */
  outageMs: number;
  /** Maximum number of concurrent HTTP requests. */
  connections: number;
  /** Reports the reason of an outage when it begins, and null when the server answers again. */
  onOutage(reason: string | null): void;
  /** First and maximum pause between attempts in milliseconds. */
  pauseMs?: { first: number; longest: number };
}

/** Milliseconds after which a poll for a result is sent again; servers hold it for up to 300 s. */
const pollMs = 45_000;
/** Milliseconds between heartbeats; a server drops the models of a session without one for 300 s. */
const heartbeatMs = 10_000;
/** Maximum bytes of a JSON response: log-probs of some 10 million tokens. */
const mostBytes = 2 ** 28;
/** Maximum characters of a server's error text in a message. */
const mostDetail = 400;
/** Statuses of a request that the server did not execute because it is busy or restarting. */
const notExecuted = new Set([425, 429, 503]);
/** Connection errors before anything was sent. */
const notSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** A failed attempt. `executed`: whether the server may have executed the request. */
interface Failure {
  reason: string;
  executed: boolean;
}

/** Whether a request may be sent again if its answer is lost. */
export type Repeatable = 'repeatable' | 'once';

export class TinkerConnection {
  private readonly agent: Agent;
  private heartbeat: NodeJS.Timeout | undefined;
  /** Start of the current outage by `performance.now()`; null while the server answers. */
  private outageSince: number | null = null;
  private readonly ended = new AbortController();

  constructor(private readonly options: ConnectionOptions) {
    this.agent = new Agent({ connections: options.connections, pipelining: 1 });
    setMaxListeners(0, this.ended.signal); // each request has one
  }

  /** Sends a GET request and returns the parsed response. */
  get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.exchange('GET', path, undefined, schema, 'repeatable');
  }

  /** Sends a POST request and returns the parsed response. */
  post<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable = 'repeatable',
  ): Promise<T> {
    return this.exchange('POST', path, body, schema, repeatable);
  }

  /**
   * Sends a POST request that the server executes later, and returns its result and the first answer. A `body` that is a
   * function is called for each attempt, for requests whose names must not repeat.
   * @throws UserError with the server's reason if the request fails
   * @throws WeightsUncertain if the answer to a request with `once` is lost, or the server no longer knows the request
   */
  async later<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable = 'repeatable',
  ): Promise<{ result: T; modelId: string | undefined }> {
    const { request_id, model_id } = await this.post(path, body, pendingSchema, repeatable);
    for (;;) {
      const answer = await this.attempt('POST', 'retrieve_future', { request_id }, pollMs);
      if ('reason' in answer) {
        if (answer.reason !== timedOut) await this.wait('retrieve_future', answer.reason);
        continue;
      }
      const { status, json } = answer;
      if (status === 404)
        throw new WeightsUncertain(`the server no longer knows the request ${path} (${this.shown(detailOf(json))})`);
      if (status >= 500 && !isFailedResult(status, json)) {
        await this.wait('retrieve_future', `status ${status}`);
        continue;
      }
      this.answered();
      if (status === 408 || notReadySchema.safeParse(json).success) continue;
      const failed = failedSchema.safeParse(json);
      if (status >= 400 || failed.success)
        throw this.failure(path, failed.success ? failed.data.error : detailOf(json));
      const result = schema.safeParse(json);
      if (!result.success)
        throw new WeightsUncertain(
          `the result of ${path} is unreadable (${json === undefined ? 'not JSON' : issueOf(result.error)})`,
        );
      return { result: result.data, modelId: model_id };
    }
  }

  /** Downloads bytes. A redirect to another host is followed without the key. */
  async download(path: string, most: number): Promise<Buffer> {
    let url = new URL(this.url(path));
    for (let hops = 0; hops < 4; hops++) {
      const own = url.origin === new URL(this.options.url).origin;
      const { statusCode, headers, body } = await request(url, {
        dispatcher: this.agent,
        headers: own ? this.headers : {},
        signal: this.ended.signal,
        headersTimeout: this.options.timeoutMs,
        bodyTimeout: this.options.timeoutMs,
      }).catch((error: unknown) => {
        throw this.unreachable(path, reasonOf(error));
      });
      const location = headers.location;
      if (statusCode >= 300 && statusCode < 400 && typeof location === 'string') {
        await body.dump();
        url = new URL(location, url);
        continue;
      }
      const bytes = await bytesOf(body, most).catch((error: unknown) => {
        throw this.unreachable(path, reasonOf(error));
      });
      if (statusCode !== 200) throw this.refusal(path, bytes.toString('utf8'));
      return bytes;
    }
    throw this.refusal(path, 'more than 3 redirects');
  }

  /** Sends heartbeats of a session until `close`. */
  keepAlive(session_id: string): void {
    this.heartbeat = setInterval(() => {
      this.attempt('POST', 'session_heartbeat', { session_id }, heartbeatMs).catch(() => undefined); // closing ends it
    }, heartbeatMs).unref();
  }

  /** Ends all requests and connections. */
  async close(): Promise<void> {
    clearInterval(this.heartbeat);
    this.ended.abort();
    await this.agent.destroy();
  }

  private async exchange<T>(
    method: 'GET' | 'POST',
    path: string,
    body: object | (() => object) | undefined,
    schema: z.ZodType<T>,
    repeatable: Repeatable,
  ): Promise<T> {
    for (;;) {
      const failure = await this.exchangeOnce(
        method,
        path,
        typeof body === 'function' ? (body() as object) : body,
        schema,
      );
      if ('value' in failure) return failure.value;
      if (repeatable === 'once' && failure.executed)
        throw new WeightsUncertain(`the answer to ${path} was lost (${failure.reason})`);
      await this.wait(path, failure.reason);
    }
  }

  private async exchangeOnce<T>(
    method: 'GET' | 'POST',
    path: string,
    body: object | undefined,
    schema: z.ZodType<T>,
  ): Promise<{ value: T } | Failure> {
    const answer = await this.attempt(method, path, body, this.options.timeoutMs);
    if ('reason' in answer) return answer;
    const { status, json } = answer;
    if (status >= 200 && status < 300) {
      const parsed = schema.safeParse(json);
      if (!parsed.success) return { reason: `unreadable answer: ${issueOf(parsed.error)}`, executed: true };
      this.answered();
      return { value: parsed.data };
    }
    if (status === 408 || status >= 500 || notExecuted.has(status))
      return { reason: `status ${status}`, executed: !notExecuted.has(status) };
    this.answered();
    if (method === 'POST' && status === 404)
      throw new WeightsUncertain(`the server no longer knows what ${path} refers to (${this.shown(detailOf(json))})`);
    throw this.refusal(path, detailOf(json), status);
  }

  /** Sends one request. `json` is undefined if the body is not JSON. */
  private async attempt(
    method: 'GET' | 'POST',
    path: string,
    body: object | undefined,
    timeoutMs: number,
  ): Promise<{ status: number; json: unknown } | Failure> {
    try {
      const response = await request(this.url(path), {
        method,
        dispatcher: this.agent,
        headers: { ...this.headers, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body),
        signal: this.ended.signal,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      const bytes = await bytesOf(response.body, mostBytes);
      return { status: response.statusCode, json: jsonOf(bytes.toString('utf8')) };
    } catch (error) {
      this.ended.signal.throwIfAborted();
      const reason = reasonOf(error);
      return { reason, executed: !notSent.has(reason) };
    }
  }

  /**
   * Waits before the next attempt; pauses grow during an outage.
   * @throws UserError if the outage lasts longer than `outageMs`
   */
  private async wait(path: string, reason: string): Promise<void> {
    const { outageMs, onOutage, pauseMs: { first, longest } = { first: 250, longest: 10_000 } } = this.options;
    const now = performance.now();
    if (this.outageSince === null) {
      this.outageSince = now;
      onOutage(reason);
    }
    const lasted = now - this.outageSince;
    if (lasted > outageMs) throw this.unreachable(path, reason);
    await sleep(Math.min(longest, Math.max(first, lasted)), undefined, { signal: this.ended.signal });
  }

  private answered(): void {
    if (this.outageSince === null) return;
    this.outageSince = null;
    this.options.onOutage(null);
  }

  /** The error of a request that failed on the server. */
  private failure(path: string, detail: string): Error {
    return /\bnot loaded\b|\b(model|session) not found\b/i.test(detail)
      ? new WeightsUncertain(`the server no longer has what ${path} refers to (${this.shown(detail)})`)
      : this.refusal(path, detail);
  }

  private readonly url = (path: string): string => `${this.options.url}/api/v1/${path}`;

  private get headers(): Record<string, string> {
    return { accept: 'application/json', ...(this.options.key !== null && { 'x-api-key': this.options.key }) };
  }

  private unreachable(path: string, reason: string): UserError {
    return new UserError(
      `engine: ${this.options.url} does not answer ${path} (${secrets.text(reason)}): start the server or correct workbench.engine_url, then resume the run`,
    );
  }

  /** Prepares a text from the server for an error message: one line, without secrets, truncated. */
  private shown(text: string): string {
    return secrets.text(text.replace(/\s+/g, ' ').trim()).slice(0, mostDetail);
  }

  private refusal(path: string, detail: string, status?: number): UserError {
    const what = this.shown(detail);
    if (status === 401 || status === 403)
      return new UserError(
        `engine: ${this.options.url} refuses the key (${what}): correct the variable that workbench.engine_api_key_env names`,
      );
    return new UserError(`engine: ${this.options.url} refused ${path}: ${what}`);
  }
}

const timedOut = 'no answer in time';

const isFailedResult = (status: number, json: unknown): boolean => status === 500 && detailOf(json) === 'Unknown error';

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The server's error text: FastAPI's `detail`, or the body. */
function detailOf(json: unknown): string {
  const detail = (isRecord(json) ? json.detail : undefined) ?? json ?? 'no reason given';
  return typeof detail === 'string' ? detail : JSON.stringify(detail);
}

function issueOf({ issues: [issue] }: z.ZodError): string {
  return `${issue.path.join('.') || 'content'}: ${issue.message}`;
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' ? timedOut : (code ?? message);
}

async function bytesOf(body: Dispatcher.ResponseData['body'], most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body) {
    const bytes = part as Buffer;
    length += bytes.length;
    if (length > most) throw new Error(`its answer has more than ${most} bytes`);
    parts.push(bytes);
  }
  return Buffer.concat(parts, length);
}
