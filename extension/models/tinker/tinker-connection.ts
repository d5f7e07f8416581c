// Requests to a server of the Tinker REST API: results that are computed later, and what follows from a failure. One loop
// (`persist`) serves requests, polls and downloads: an outage is waited for and reported, up to a limit. A request that
// changes weights is sent once: if its answer is lost, WeightsUncertain is thrown, because the server may have executed
// it. After a stop nothing waits for a server that does not answer. Error texts of the server are shown without secrets.
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
  /** API key, sent as X-API-Key; null for none. */
  key: string | null;
  /** Maximum milliseconds of one HTTP request. */
  timeoutMs: number;
  /** Maximum milliseconds of an outage that is waited for. */
  outageMs: number;
  /** Maximum number of concurrent HTTP requests, heartbeats excepted. */
  connections: number;
  /** Reports the reason of an outage when it begins, and null when the server answers again. */
  onOutage(reason: string | null): void;
  /** First and maximum pause between attempts in milliseconds. */
  pauseMs?: { first: number; longest: number };
  /** Milliseconds between heartbeats. */
  heartbeatMs?: number;
  /** Milliseconds for which a stop waits for results of a server that answers. */
  stopMs?: number;
}

/** Milliseconds after which a poll for a result is sent again; servers hold it for up to 300 s. */
const pollMs = 45_000;
/** Maximum bytes of a JSON response: log-probs of some 10 million tokens. */
const mostBytes = 2 ** 28;
/** Maximum bytes of the answer to a heartbeat or a deletion. */
const shortBytes = 2 ** 16;
/** Maximum characters of a server's error text in a message. */
const mostDetail = 400;
/** Maximum redirects of a download. */
const mostRedirects = 3;
/** Polls in a row with status 500 after which a result counts as failed: the server cannot send it. */
const mostCrashedPolls = 5;
const defaultStopMs = 120_000;

/** Whether a request may be sent again if its answer is lost. */
export type Repeatable = 'repeatable' | 'once';

/** What an attempt came to: a value, a reason to wait and try again, or a result that is not computed yet. */
type Outcome<T> = { value: T } | { reason: string } | 'pending';

export class TinkerConnection {
  private readonly agent: Agent;
  /** Connections of heartbeats, because polls may hold all others. */
  private readonly ownAgent = new Agent({ connections: 2, pipelining: 1 });
  private heartbeat: ServerHeartbeat | undefined;
  private session: string | undefined;
  /** Start of the current outage by `performance.now()`; null while the server answers. */
  private outageSince: number | null = null;
  /** True during an outage that began with unanswered heartbeats. */
  private silent = false;
  /** Number of answers to any request. */
  private answers = 0;
  /** Time of the newest final answer or result, or of the stop. */
  private progressed = 0;
  private stopping = false;
  /** Aborted with the reason why nothing is requested or waited for any more. */
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

  /** Sends a POST request as `later` does; resolves when the server has accepted it, with a promise of its result. */
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
        throw this.refusal(path, `its result cannot be sent (${detailOf(answer)}); a number may not be finite`);
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

  /** Sends heartbeats of a session until `close`. A server that leaves several unanswered is in an outage. */
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

  /** Begins or ends the outage of a silent server, and ends all waiting when it has lasted too long. */
  private judge(silent: boolean): void {
    if (silent && this.outageSince === null) {
      this.silent = true;
      this.beginOutage('no answer to any request');
    } else if (!silent && this.silent) this.answered();
    if (this.silent && performance.now() - this.outageSince! > this.options.outageMs)
      this.ended.abort(this.unreachable('any request', 'no answer in time'));
  }

  /**
   * Ends waiting for a server that does not answer, with RunStopped. Requests to a server that answers heartbeats are
   * still waited for, up to `stopMs`, so that a step can be finished and a checkpoint written.
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

  /** The parsed content of an answer, or why the request must be sent again. */
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
      throw new WeightsUncertain(`the server no longer knows what ${path} refers to (${this.shown(detailOf(answer))})`);
    return this.passing(path, answer);
  }

  /** What the answer to a poll says about the result of the request `path`. */
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

  /** The loop of every request: attempts until there is a value; waits during an outage. */
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

  /** Sends one request to the server, or to where it has redirected. */
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

  /** The failure of an answer that may pass. @throws UserError if it is final */
  private passing(path: string, answer: Answer): Failure {
    const failure = passingFailure(answer);
    if (failure) return failure;
    this.answered();
    throw this.refusal(path, detailOf(answer), answer.status);
  }

  /**
   * Waits before the next attempt; pauses grow during an outage.
   * @throws UserError if the outage lasts longer than `outageMs`, or RunStopped after a stop
   */
  private async wait(path: string, reason: string): Promise<void> {
    this.beginOutage(reason);
    this.ended.signal.throwIfAborted();
    const lasted = performance.now() - this.outageSince!;
    if (lasted > this.options.outageMs) throw this.unreachable(path, reason);
    await this.pause(Math.min(this.pauses.longest, Math.max(this.pauses.first, lasted)));
  }

  /** Waits, unless the connection ends. */
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

  /** The error of a request that failed on the server. */
  private failure(path: string, detail: string, status?: number): Error {
    this.answered();
    return /\bnot loaded\b|\b(model|session) not found\b/i.test(detail)
      ? new WeightsUncertain(`the server no longer has what ${path} refers to (${this.shown(detail)})`)
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
