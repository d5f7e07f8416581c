// Client of the Ray Jobs REST API: submits, reads, lists, stops and deletes jobs, and reads their logs. `fetch` cannot
// be used, because it always sends the header sec-fetch-mode, and Ray refuses requests with this header. Every answer
// is validated. Error messages name the dashboard's address, the reason and the remedy, without secrets.
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import { jsonOrNothing } from '../common/json';
import { printable } from '../common/printable';
import { UserError } from '../common/user-error';
import { secrets } from '../node/secrets';
import type { RayServer } from './ray-server';
import {
  deletedSchema,
  jobSchema,
  jobsSchema,
  logsSchema,
  stoppedSchema,
  submittedSchema,
  versionSchema,
  type JobRequest,
  type RayJob,
} from './ray-wire';

/** Maximum milliseconds until a request is answered. */
const timeoutMs = 30_000;
/** Maximum bytes of an answer. The largest answers are logs, because Ray returns the complete log. */
const mostBytes = 64 * 2 ** 20;
/** Maximum characters of a server's error text in a message. */
const mostDetail = 400;
/** Version of the REST API. */
const restVersion = '4';

/** Thrown if the dashboard did not answer, or if its answer was cut off. The same request may succeed later. */
export class RayUnreachable extends UserError {}

/** Thrown if Ray answers that it does not know the job. */
class NoSuchJob extends UserError {}

export class RayJobs {
  constructor(
    private readonly server: RayServer,
    private readonly limitMs = timeoutMs,
  ) {}

  get url(): string {
    return this.server.url;
  }

  /** Checks that a Ray dashboard with this REST API is at the address. Returns Ray's version. */
  async version(): Promise<string> {
    const { version, ray_version } = await this.exchange('GET', '/api/version', versionSchema);
    if (version !== restVersion)
      throw new UserError(
        `ray: ${this.url} (Ray ${printable(ray_version)}) has version ${printable(version)} of the jobs API instead of ${restVersion}: use a Ray version such as 2.57`,
      );
    return ray_version;
  }

  /**
   * Submits a job. The request is sent only once, so that the job cannot be submitted twice. If the answer is lost,
   * looks up by the job's id whether Ray has received the job.
   */
  async submit(job: JobRequest): Promise<void> {
    try {
      await this.exchange('POST', '/api/jobs/', submittedSchema, job);
    } catch (error) {
      if (!(error instanceof RayUnreachable) || (await this.get(job.submission_id)) === null) throw error;
    }
  }

  /** Returns a job; null if Ray does not know it. */
  get(id: string): Promise<RayJob | null> {
    return this.ifKnown(this.exchange('GET', this.path(id), jobSchema));
  }

  /** Returns all jobs in the order in which Ray lists them. */
  list(): Promise<RayJob[]> {
    return this.exchange('GET', '/api/jobs/', jobsSchema);
  }

  /** Returns the complete log of a job so far; null if Ray does not know the job. */
  async logs(id: string): Promise<string | null> {
    const answer = await this.ifKnown(this.exchange('GET', `${this.path(id)}/logs`, logsSchema));
    return answer && secrets.text(answer.logs);
  }

  /**
   * Stops a job. Ray sends SIGTERM to the job and, after a waiting time, SIGKILL. The job's environment variable
   * RAY_JOB_STOP_WAIT_TIME_S sets the waiting time in seconds; the default is 3. Returns false if the job had already
   * ended.
   */
  async stop(id: string): Promise<boolean> {
    return (await this.exchange('POST', `${this.path(id)}/stop`, stoppedSchema)).stopped;
  }

  /** Deletes an ended job and its log. */
  async remove(id: string): Promise<boolean> {
    return (await this.exchange('DELETE', this.path(id), deletedSchema)).deleted;
  }

  private readonly path = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`;

  private async ifKnown<T>(answer: Promise<T>): Promise<T | null> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof NoSuchJob) return null;
      throw error;
    }
  }

  private async exchange<T>(
    method: Dispatcher.HttpMethod,
    path: string,
    schema: z.ZodType<T>,
    body?: object,
  ): Promise<T> {
    const { status, text } = await this.send(method, path, body);
    if (status === 404 && path.startsWith('/api/jobs/') && /\bjob\b.*\b(not|does not) (exist|found)\b/is.test(text))
      throw new NoSuchJob(
        `ray: ${this.url} has no job ${printable(decodeURIComponent(path.split('/')[3]))}: see ragen jobs`,
      );
    if (status < 200 || status > 299) throw this.refusal(method, path, status, text);
    const parsed = schema.safeParse(jsonOrNothing(text));
    if (parsed.success) return parsed.data;
    const [{ path: at, message }] = parsed.error.issues;
    throw new UserError(
      `ray: ${this.url} gave an unexpected answer to ${method} ${path} (${at.join('.') || 'content'}: ${message}): give the address of a Ray dashboard, such as http://127.0.0.1:8265`,
    );
  }

  private async send(
    method: Dispatcher.HttpMethod,
    path: string,
    body?: object,
  ): Promise<{ status: number; text: string }> {
    try {
      const { request } = await import('undici'); // loaded only here, because few processes use a cluster
      const { statusCode, body: answer } = await request(`${this.url}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(body && { 'content-type': 'application/json' }),
          ...this.server.headers,
        },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(this.limitMs),
      });
      return { status: statusCode, text: await textOf(answer) };
    } catch (error) {
      const { code, name, message } = error as NodeJS.ErrnoException;
      const reason = name === 'TimeoutError' ? `no answer within ${this.limitMs / 1000} s` : (code ?? message);
      throw new RayUnreachable(
        `ray: ${this.url} cannot be reached (${this.shown(reason)}): start Ray (ray start --head), or correct the address`,
      );
    }
  }

  private refusal(method: string, path: string, status: number, text: string): UserError {
    if (status === 401 || status === 403)
      return new UserError(
        `ray: ${this.url} refuses access (${status}): set RAY_AUTH_TOKEN to a token of this cluster, or RAY_JOB_HEADERS to its headers`,
      );
    // Ray's error text is a traceback, or several for nested errors. The last line of the text that contains a word
    // states the reason.
    const reason = this.shown(text.split('\n').findLast(line => /\w/.test(line)) ?? '');
    return new UserError(
      `ray: ${this.url} answered ${status} to ${method} ${path} (${reason}): see the log of the Ray dashboard`,
    );
  }

  private readonly shown = (text: string): string =>
    printable(secrets.text(text).replace(/\s+/g, ' ').trim()).slice(0, mostDetail);
}

async function textOf(body: Dispatcher.ResponseData['body']): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body) {
    const bytes = part as Buffer;
    length += bytes.length;
    if (length > mostBytes) throw new Error(`the answer has more than ${mostBytes} bytes`);
    parts.push(bytes);
  }
  return Buffer.concat(parts, length).toString('utf8');
}
