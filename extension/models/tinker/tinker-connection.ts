// Sends requests to a server of the Tinker REST API, polls for results that the server computes later, and handles
// failures. One loop (`persist`) repeats requests, polls and downloads during an outage of the server. The outage is
// reported, and it is an error if it lasts longer than `outageMs`. A request that changes weights is sent only once. If
// the answer to such a request is lost, WeightsUncertain is thrown, because the server may have executed the request.
// After a stop of the run, no request waits for a server that does not answer. Secrets are removed from the server's
// error texts before they are shown.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import type { z } from 'zod';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import { secrets } from '../../node/secrets';
import { attempt, detailOf, jsonOf, passingFailure, timedOut, type Answer, type Failure } from './http-attempt';
import { heartbeatMs, ServerHeartbeat } from './server-heartbeat';
import { failedSchema, notReadySchema, pendingSchema } from './tinker-wire';

export interface ConnectionOptions {
  /** Base URL without a trailing slash, such as https://host:8000. */
  url: string;
  /** API key, sent in the header X-API-Key; null if no key is needed. */
  key: string | null;
  /** Maximum milliseconds of one HTTP request. */
  timeoutMs: number;
  /** Maximum milliseconds of an outage. If an outage lasts longer, the pending requests fail. */
  outageMs: number;
  /** Maximum number of concurrent HTTP requests; heartbeats are not counted. */
  connections: number;
  /** Reports the reason of an outage when it begins, and null when the server answers again. */
  onOutage(reason: string | null): void;
  /** Milliseconds of the first pause between two attempts, and of the longest pause. */
  pauseMs?: { first: number; longest: number };
  /** Milliseconds between heartbeats. */
  heartbeatMs?: number;
  /**
   * After a stop: if the server still answers heartbeats, requests continue until no request has been completed for
   * this number of milliseconds.
   */
  stopMs?: number;
}

/**
 * Time limit of a poll for a result in milliseconds; then another poll is sent. Servers delay the answer to a poll by
 * up to 300 s.
 */
const pollMs = 45_000;
/** Maximum bytes of a JSON response; enough for the log-probs of about 10 million tokens. */
const mostBytes = 2 ** 28;
/** Maximum bytes of the answer to a heartbeat or a deletion. */
const shortBytes = 2 ** 16;
/** Maximum characters of a server's error text in a message. */
const mostDetail = 400;
/** Maximum redirects of a download. */
const mostRedirects = 3;
/** Number of polls with status 500 after which the request fails, because the server cannot send the result. */
const mostCrashedPolls = 5;
const defaultStopMs = 120_000;

/** Whether a request may be sent again if its answer is lost. */
export type Repeatable = 'repeatable' | 'once';

/**
 * The result of an attempt: a value; the reason why another attempt is needed after a pause; or `pending`, if the
 * server has not computed the result yet.
 */
type Outcome<T> = { value: T } | { reason: string } | 'pending';

export class TinkerConnection {
  private readonly agent: Agent;
  /** Connections that only heartbeats use, because polls may occupy all other connections. */
  private readonly ownAgent = new Agent({ connections: 2, pipelining: 1 });
  private heartbeat: ServerHeartbeat | undefined;
  private session: string | undefined;
  /** Start of the current outage by `performance.now()`; null while the server answers. */
  private outageSince: number | null = null;
  /** True during an outage that was detected by unanswered heartbeats. */
  private silent = false;
  /** Number of answers so far, to requests of any kind. */
  private answers = 0;
  /** Time at which the latest request was completed; after a stop, the time of the stop if this is later. */
  private progressed = 0;
  private stopping = false;
  /** When aborted, all requests and waits end. The reason of the signal is the error that they throw. */
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
   * Sends a POST request that the server executes later. Waits for the result and returns it, together with the model
   * id from the server's first answer. If `body` is a function, it is called for each attempt, so that each attempt can
   * contain a new name.
   * @throws UserError with the server's reason if the request fails
   * @throws WeightsUncertain if `repeatable` is `once` and the answer is lost, or if the server no longer knows the
   * request
   * @throws RunStopped if the server does not answer after a stop
   */
  async later<T>(
    path: string,
    body: object | (() => object),
    schema: z.ZodType<T>,
    repeatable: Repeatable = 'repeatable',
  ): Promise<{ result: T; modelId: string | undefined }> {
    const { request_id, model_id } = await this.post(path, body, pendingSchema, repeatable);
    return { result: await this.result(path, request_id, schema), modelId: model_id };
  }

  /**
   * Sends a POST request like `later`, but resolves as soon as the server has accepted the request. `result` is a
   * promise of the request's result.
   */
  async submit<T>(
    path: string,
    body: object,
    schema: z.ZodType<T>,
    repeatable: Repeatable,
  ): Promise<{ result: Promise<T> }> {
    const { request_id } = await this.post(path, body, pendingSchema, repeatable);
    return { result: this.result(path, request_id, schema) };
  }

  /** Fetches the result of a request. */
  private result<T>(path: string, request_id: string, schema: z.ZodType<T>): Promise<T> {
    let crashes = 0;
    return this.persist(path, async () => {
      const answer = await this.send('POST', this.url('retrieve_future'), { request_id }, pollMs);
      if ('status' in answer && answer.status === 500 && ++crashes >= mostCrashedPolls)
        throw this.refusal(
          path,
          `its result cannot be sent (${detailOf(answer)}); the result may contain a number that is not finite`,
        );
      return this.polled(path, answer, schema);
    });
  }

  /** Downloads bytes. A redirect to another host is followed without the key. */
  download(path: string, most: number): Promise<Buffer> {
    return this.persist(path, async () => {
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
      throw this.refusal(path, `more than ${mostRedirects} redirects`);
    });
  }

  /** Sends a DELETE request once. Returns the reason if the server refuses it or does not answer; else null. */
  async remove(path: string): Promise<string | null> {
    const answer = await this.send('DELETE', this.url(path), undefined, heartbeatMs, shortBytes);
    if ('reason' in answer) return answer.reason;
    return answer.status < 400 ? null : this.shown(detailOf(answer));
  }

  /**
   * Sends heartbeats of a session until `close` is called. If the server does not answer several heartbeats, an outage
   * begins.
   */
  keepAlive(session_id: string): void {
    this.session = session_id;
    this.heartbeat = new ServerHeartbeat({
      everyMs: this.options.heartbeatMs ?? heartbeatMs,
      send: limitMs => this.beat(limitMs),
      answers: () => this.answers,
      onBeat: silent => this.judge(silent),
    });
    this.heartbeat.start();
  }

  private async beat(limitMs: number): Promise<boolean> {
    const path = this.url('session_heartbeat');
    const body = { session_id: this.session };
    const answer = await this.send('POST', path, body, limitMs, shortBytes, this.ownAgent);
    return 'status' in answer && answer.status < 500;
  }

  /**
   * Begins an outage if the server is silent, and ends this outage if the server is no longer silent. If the outage has
   * lasted longer than `outageMs`, aborts all requests.
   */
  private judge(silent: boolean): void {
    if (silent && this.outageSince === null) {
      this.silent = true;
      this.beginOutage('no answer to any request');
    } else if (!silent && this.silent) this.answered();
    if (this.silent && performance.now() - this.outageSince! > this.options.outageMs)
      this.ended.abort(this.unreachable('any request', 'no answer in time'));
  }

  /**
   * Called when the run is stopped. As long as the server answers heartbeats, requests continue, so that a training
   * step can be finished and a checkpoint can be written. All requests reject with RunStopped when the server stops
   * answering, or when no request has been completed for `stopMs`.
   */
  interrupt(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.progressed = performance.now();
    const { stopMs = defaultStopMs } = this.options;
    if (this.outageSince !== null || !this.heartbeat) return this.ended.abort(new RunStopped());
    void this.heartbeat
      .untilSilent(() => performance.now() - this.progressed < stopMs)
      .then(() => this.ended.abort(new RunStopped()));
  }

  /** Ends all requests and connections. */
  async close(): Promise<void> {
    this.heartbeat?.end();
    this.ended.abort();
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
        `the server no longer knows the object to which the request ${path} refers (${this.shown(detailOf(answer))})`,
      );
    return this.passing(path, answer);
  }

  /** Returns what the answer to a poll shows about the result of the request to `path`. */
  private async polled<T>(path: string, answer: Answer | Failure, schema: z.ZodType<T>): Promise<Outcome<T>> {
    if ('reason' in answer) return answer.reason === timedOut ? 'pending' : answer;
    const json = jsonOf(answer.bytes);
    const { status } = answer;
    if (status === 404 || status === 410)
      throw new WeightsUncertain(`the server no longer knows the request ${path} (${this.shown(detailOf(answer))})`);
    if (status === 408 || notReadySchema.safeParse(json).success) {
      this.answered();
      await this.pause(this.pauses.first);
      return 'pending';
    }
    const failed = failedSchema.safeParse(json);
    if (failed.success && status < 500) throw this.failure(path, failed.data.error);
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

  /** Calls `once` until it returns a value. Waits between attempts during an outage. */
  private async persist<T>(path: string, once: () => Promise<Outcome<T>>): Promise<T> {
    for (;;) {
      const outcome = await once();
      if (outcome === 'pending') continue;
      if ('value' in outcome) {
        this.answered();
        this.progressed = performance.now();
        return outcome.value;
      }
      await this.wait(path, outcome.reason);
    }
  }

  /**
   * Sends one request to a URL. Adds the key only if the URL belongs to the server, and not for a redirect to another
   * host.
   */
  private async send(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body: object | undefined,
    timeoutMs: number,
    most = mostBytes,
    agent = this.agent,
  ): Promise<Answer | Failure> {
    const isOwn = new URL(url).origin === new URL(this.options.url).origin;
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
      signal: this.ended.signal,
    });
    if ('status' in answer && answer.status < 500) this.answers++;
    return answer;
  }

  /**
   * Returns the failure that an answer reports, if a later attempt may succeed. @throws UserError for any other failure
   */
  private passing(path: string, answer: Answer): Failure {
    const failure = passingFailure(answer);
    if (failure) return failure;
    this.answered();
    throw this.refusal(path, detailOf(answer), answer.status);
  }

  /**
   * Waits before the next attempt. The longer the outage lasts, the longer the pause is.
   * @throws UserError if the outage lasts longer than `outageMs`, or RunStopped after a stop
   */
  private async wait(path: string, reason: string): Promise<void> {
    this.beginOutage(reason);
    this.ended.signal.throwIfAborted();
    const lasted = performance.now() - this.outageSince!;
    if (lasted > this.options.outageMs) throw this.unreachable(path, reason);
    await this.pause(Math.min(this.pauses.longest, Math.max(this.pauses.first, lasted)));
  }

  /** Waits. Throws the reason if all requests are aborted during the wait. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.ended;
    await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  private get pauses(): { first: number; longest: number } {
    return this.options.pauseMs ?? { first: 250, longest: 10_000 };
  }

  private beginOutage(reason: string): void {
    if (this.stopping) this.ended.abort(new RunStopped());
    if (this.outageSince !== null) return;
    this.outageSince = performance.now();
    this.options.onOutage(secrets.text(reason));
  }

  private answered(): void {
    this.silent = false;
    if (this.outageSince === null) return;
    this.outageSince = null;
    this.options.onOutage(null);
  }

  /** Returns the error to throw for a request that failed on the server. */
  private failure(path: string, detail: string, status?: number): Error {
    this.answered();
    return /\bnot loaded\b|\b(model|session) not found\b/i.test(detail)
      ? new WeightsUncertain(
          `the server no longer has the object to which the request ${path} refers (${this.shown(detail)})`,
        )
      : this.refusal(path, detail, status);
  }

  private readonly url = (path: string): string => `${this.options.url}/api/v1/${path}`;

  private unreachable(path: string, reason: string): UserError {
    return new UserError(
      `engine: ${this.options.url} does not answer ${path} (${secrets.text(reason)}): start the server or correct workbench.engine_url, then resume the run`,
    );
  }

  /** Prepares a text from the server for an error message: one line, without secrets, truncated. */
  private shown(text: string): string {
    return secrets.text(text.replace(/\s+/g, ' ').trim()).slice(0, mostDetail);
  }

  private refusal(path: string, detail: string, status?: number): ServerRefusal {
    const what = this.shown(detail);
    if (status === 401 || status === 403)
      return new ServerRefusal(
        `engine: ${this.options.url} refuses the key (${what}): correct the variable that workbench.engine_api_key_env names`,
        what,
      );
    return new ServerRefusal(`engine: ${this.options.url} refused ${path}: ${what}`, what);
  }
}

/** A request that the server refused or could not execute. */
export class ServerRefusal extends UserError {
  constructor(
    message: string,
    /** The server's own reason. */
    readonly detail: string,
  ) {
    super(message);
  }
}

function issueOf({ issues: [issue] }: z.ZodError): string {
  return `${issue.path.join('.') || 'content'}: ${issue.message}`;
}
