// Sends requests to a server of the Tinker REST API, polls the server for results that it computes later, and handles
// failures. One loop (`persist`) repeats requests, polls and downloads during an outage of the server
// (server-availability.ts). A failure that would occur again is reported as an error at once. A request that changes
// weights is sent only once. If the answer to such a request is lost, WeightsUncertain is thrown, because the server
// may have executed the request. Secrets are removed from the server's error texts before they are shown.
import { Agent } from 'undici';
import type { z } from 'zod';
import { UserError } from '../../common/user-error';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import { secrets } from '../../node/secrets';
import { explainFailure, isLasting } from './connection-failures';
import { attempt, detailOf, jsonOf, passingFailure, timedOut, type Answer, type Failure } from './http-attempt';
import { ServerAvailability, type AvailabilityOptions } from './server-availability';
import { heartbeatMs } from './server-heartbeat';
import { engineKeyNames, refusalOf, shownText, type KeyNames } from './server-refusal';
import { failedSchema, notReadySchema, pendingSchema } from './tinker-wire';

export interface ConnectionOptions extends AvailabilityOptions {
  /** Base URL without a trailing slash, such as https://host:8000. */
  url: string;
  /** API key, sent in the header X-API-Key; null if no key is needed. */
  key: string | null;
  /** Configuration keys of URL and key, for error messages; the default keys are those of workbench.engine. */
  keyNames?: KeyNames;
  /** Maximum milliseconds of one HTTP request. */
  timeoutMs: number;
  /** Maximum number of concurrent HTTP requests; heartbeats are not counted. */
  connections: number;
  /** Called when a request begins. Returns a function that is called when the request's result has arrived. */
  onRequest?(path: string): () => void;
}

/**
 * Milliseconds after which an unanswered poll is abandoned, and a new poll for the same result is sent. Servers delay
 * the answer to a poll by up to 300 s.
 */
const pollMs = 45_000;
/** Maximum bytes of a JSON response; enough for the log-probs of about 10 million tokens. */
const mostBytes = 2 ** 28;
/** Maximum bytes of the answer to a heartbeat or a deletion. */
const shortBytes = 2 ** 16;
/** Maximum redirects of a download. */
const mostRedirects = 3;
/**
 * A request fails after this number of consecutive poll answers with status 500, because the server cannot send the
 * result.
 */
const mostCrashedPolls = 5;

/** Whether a request may be sent again if its answer is lost. */
export type Repeatable = 'repeatable' | 'once';

/**
 * The result of an attempt is a value, the reason why another attempt is needed after a pause, or `pending` if the
 * server has not computed the value yet.
 */
type Outcome<T> = { value: T } | { reason: string } | 'pending';

export class TinkerConnection {
  private readonly agent: Agent;
  /** Connections for heartbeats alone, because polls may occupy all other connections. */
  private readonly ownAgent = new Agent({ connections: 2, pipelining: 1 });
  private readonly availability: ServerAvailability;

  constructor(private readonly options: ConnectionOptions) {
    this.agent = new Agent({ connections: options.connections, pipelining: 1 });
    const { onOutage } = options;
    this.availability = new ServerAvailability(
      { ...options, onOutage: reason => onOutage(reason === null ? null : secrets.text(reason)) },
      (path, reason) => this.unreachable(path, reason),
    );
  }

  /** Sends a GET request and returns the parsed response. */
  get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.observed(path, this.exchange('GET', path, undefined, schema, 'repeatable'));
  }

  /** Sends a POST request and returns the parsed response. */
  post<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable = 'repeatable',
  ): Promise<T> {
    return this.observed(path, this.exchange('POST', path, body, schema, repeatable));
  }

  /**
   * Sends a POST request that the server executes later. Waits for the result. Returns the result and the model id from
   * the server's first answer. If `body` is a function, it is called for each attempt, so that each attempt can contain
   * a new name.
   * @throws UserError with the server's reason if the request fails
   * @throws WeightsUncertain if the server no longer knows the request, or if `repeatable` is `once` and the answer is
   * lost
   * @throws RunStopped if the server does not answer after a stop
   */
  async later<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable = 'repeatable',
  ): Promise<{ result: T; modelId: string | undefined }> {
    const { result, modelId } = await this.submit(path, body, schema, repeatable);
    return { result: await result, modelId };
  }

  /**
   * Sends a POST request like `later`, but resolves as soon as the server has accepted the request. The returned
   * `result` is a promise of the request's result.
   */
  async submit<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable,
  ): Promise<{ result: Promise<T>; modelId: string | undefined }> {
    const accepted = this.exchange('POST', path, body, pendingSchema, repeatable);
    const result = this.observed(
      path,
      accepted.then(({ request_id }) => this.result(path, request_id, schema)),
    );
    result.catch(() => undefined); // no unhandled rejection if the caller awaits the result later
    return { modelId: (await accepted).model_id, result };
  }

  /** Reports to `onRequest` when a request begins and when its result has arrived. */
  private observed<T>(path: string, result: Promise<T>): Promise<T> {
    const end = this.options.onRequest?.(path);
    if (end) result.then(end, end);
    return result;
  }

  /** Fetches the result of a request. */
  private result<T>(path: string, request_id: string, schema: z.ZodType<T>): Promise<T> {
    let crashes = 0;
    return this.persist(path, async () => {
      const answer = await this.send('POST', this.url('retrieve_future'), { request_id }, pollMs);
      if ('status' in answer) crashes = answer.status === 500 ? crashes + 1 : 0;
      if (crashes >= mostCrashedPolls && 'status' in answer)
        throw refusalOf(
          this.options,
          path,
          `its result cannot be sent (${detailOf(answer)}); the result may contain a number that is not finite`,
        );
      return this.polled(path, answer, schema);
    });
  }

  /** Downloads bytes. A redirect to another host is followed without the key. */
  download(path: string, most: number): Promise<Buffer> {
    const bytes = this.persist(path, async () => {
      let url = this.url(path);
      for (let hops = 0; hops <= mostRedirects; hops++) {
        const answer = await this.send('GET', url, undefined, this.options.timeoutMs, most);
        if ('reason' in answer) return answer;
        if (answer.status >= 300 && answer.status < 400 && answer.location !== undefined) {
          url = new URL(answer.location, url).href;
          continue;
        }
        if (answer.status === 200) return { value: answer.bytes };
        return this.passing(path, answer);
      }
      throw refusalOf(this.options, path, `more than ${mostRedirects} redirects`);
    });
    return this.observed(path, bytes);
  }

  /**
   * Sends a DELETE request once. Returns the server's reason if the server refuses the request. Returns null if the
   * request succeeds, or if it fails but a later attempt may succeed.
   */
  async remove(path: string): Promise<string | null> {
    const answer = await this.send('DELETE', this.url(path), undefined, heartbeatMs, shortBytes);
    if ('reason' in answer || answer.status < 400 || passingFailure(answer)) return null;
    return shownText(detailOf(answer));
  }

  /**
   * Sends heartbeats of a session until `close` is called. When several consecutive heartbeats are unanswered, an
   * outage begins.
   */
  keepAlive(session_id: string): void {
    const path = this.url('session_heartbeat');
    this.availability.keepAlive(async limitMs => {
      const answer = await this.send('POST', path, { session_id }, limitMs, shortBytes, this.ownAgent);
      return 'status' in answer && answer.status < 500;
    });
  }

  /** Called when the run is stopped; see `ServerAvailability.interrupt`. */
  interrupt(): void {
    this.availability.interrupt();
  }

  /** Waits for `ms` milliseconds. If all requests are aborted during the wait, throws the abort reason. */
  pause(ms: number): Promise<void> {
    return this.availability.pause(ms);
  }

  /** Ends all requests and connections. */
  async close(): Promise<void> {
    this.availability.end();
    await Promise.all([this.agent.destroy(), this.ownAgent.destroy()]);
  }

  private exchange<T>(
    method: 'GET' | 'POST',
    path: string,
    body: object | (() => object) | undefined,
    schema: z.ZodType<T>,
    repeatable: Repeatable,
  ): Promise<T> {
    return this.persist(path, async () => {
      const content = typeof body === 'function' ? (body() as object) : body;
      const answer = await this.send(method, this.url(path), content, this.options.timeoutMs);
      const outcome = 'reason' in answer ? answer : this.answeredBy(path, answer, schema, method);
      if ('reason' in outcome && outcome.executed && repeatable === 'once')
        throw new WeightsUncertain(`the answer to ${path} was lost (${outcome.reason})`);
      return outcome;
    });
  }

  /** Returns the parsed content of an answer, or the reason why the request must be sent again. */
  private answeredBy<T>(
    path: string,
    answer: Answer,
    schema: z.ZodType<T>,
    method: 'GET' | 'POST',
  ): { value: T } | Failure {
    if (answer.status >= 200 && answer.status < 300) {
      const parsed = schema.safeParse(jsonOf(answer.bytes));
      return parsed.success
        ? { value: parsed.data }
        : { reason: `unreadable answer: ${issueOf(parsed.error)}`, executed: true };
    }
    if (method === 'POST' && answer.status === 404)
      throw new WeightsUncertain(
        `the server no longer knows the object to which the request ${path} refers (${shownText(detailOf(answer))})`,
      );
    return this.passing(path, answer);
  }

  /**
   * Evaluates the answer to a poll for the result of a request to `path`: returns the result, `pending`, or the reason
   * why another poll is needed.
   */
  private async polled<T>(path: string, answer: Answer | Failure, schema: z.ZodType<T>): Promise<Outcome<T>> {
    if ('reason' in answer) return answer.reason === timedOut ? 'pending' : answer;
    const json = jsonOf(answer.bytes);
    const { status } = answer;
    if (status === 404 || status === 410)
      throw new WeightsUncertain(`the server no longer knows the request ${path} (${shownText(detailOf(answer))})`);
    if (status === 408 || notReadySchema.safeParse(json).success) {
      this.availability.noteService();
      await this.availability.pause();
      return 'pending';
    }
    const failed = failedSchema.safeParse(json);
    if (failed.success && status < 500) throw this.failure(path, failed.data.error, status);
    if (status >= 300) {
      const passing = passingFailure(answer);
      if (passing) return passing;
      throw this.failure(path, detailOf(answer), status);
    }
    if (json === undefined) return { reason: 'unreadable answer: not JSON' };
    const result = schema.safeParse(json);
    if (result.success) return { value: result.data };
    throw new WeightsUncertain(`the result of ${path} is unreadable (${issueOf(result.error)})`);
  }

  /**
   * Calls `once` until it returns a value, and returns this value. Waits before the next call if `once` returns a
   * reason.
   */
  private async persist<T>(path: string, once: () => Promise<Outcome<T>>): Promise<T> {
    for (;;) {
      const outcome = await once();
      if (outcome === 'pending') continue;
      if ('value' in outcome) {
        this.availability.noteResult();
        return outcome.value;
      }
      await this.availability.retry(path, outcome.reason);
    }
  }

  /**
   * Sends one request to a URL. Adds the key only if the URL belongs to the server. After a redirect to another host,
   * the key is therefore not sent.
   * @throws UserError if no answer arrived and a later attempt would fail too
   */
  private async send(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body: object | undefined,
    timeoutMs: number,
    most = mostBytes,
    agent = this.agent,
  ): Promise<Answer | Failure> {
    const { origin } = new URL(url);
    const isOwn = origin === new URL(this.options.url).origin;
    const { availability } = this;
    const headers = {
      accept: 'application/json',
      ...(isOwn && this.options.key !== null && { 'x-api-key': this.options.key }),
    };
    const answer = await attempt({
      method,
      url,
      headers,
      body,
      agent,
      timeoutMs,
      most,
      signal: availability.signal,
    });
    if ('reason' in answer && isLasting(answer.error, isOwn && availability.hasAnswered))
      throw new UserError(`engine: ${explainFailure(isOwn ? this.options.url : origin, answer.error, timeoutMs)}`);
    if ('status' in answer && answer.status < 500) availability.noteAnswer();
    return answer;
  }

  /**
   * Returns the failure that an answer reports, if a later attempt may succeed. @throws UserError for any other failure
   */
  private passing(path: string, answer: Answer): Failure {
    const failure = passingFailure(answer);
    if (failure) return failure;
    this.availability.noteService();
    throw refusalOf(this.options, path, detailOf(answer), answer.status);
  }

  /** Returns the error to throw for a request that failed on the server. */
  private failure(path: string, detail: string, status?: number): Error {
    this.availability.noteService();
    return /\bnot loaded\b|\b(model|session) not found\b/i.test(detail)
      ? new WeightsUncertain(
          `the server no longer has the object to which the request ${path} refers (${shownText(detail)})`,
        )
      : refusalOf(this.options, path, detail, status);
  }

  private readonly url = (path: string): string => `${this.options.url}/api/v1/${path}`;

  private unreachable(path: string, reason: string): UserError {
    return new UserError(
      `engine: ${this.options.url} does not answer ${path} (${secrets.text(reason)}): start the server or correct ${(this.options.keyNames ?? engineKeyNames).url}, then resume the run`,
    );
  }
}

function issueOf({ issues: [issue] }: z.ZodError): string {
  return `${issue.path.join('.') || 'content'}: ${issue.message}`;
}
