// Sends one HTTP request to a Tinker server, with limits on time and size. The result is the server's answer, or the
// reason why no answer arrived. If the answer reports a failure, `detailOf` returns the answer's error text, and
// `passingFailure` decides whether another attempt may succeed.
import { request, type Agent } from 'undici';
import { bodyBytes, BodyTooLong } from '../../../envs/api/response-body';
import { unsentCodes } from '../../../envs/api/unsent-codes';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import type { ConnectionError } from './connection-failures';

/** Value of `reason` if no answer arrived within the time limit. */
export const timedOut = 'no answer in time';

export interface Attempt {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  body?: object;
  agent: Agent;
  signal: AbortSignal;
  /** Maximum milliseconds until the answer's headers arrive, and maximum milliseconds between two parts of its body. */
  timeoutMs: number;
  /** Maximum bytes of the answer's body. */
  most: number;
}

export interface Answer {
  status: number;
  /** Target of a redirect. */
  location: string | undefined;
  bytes: Buffer;
}

/** An attempt without a usable answer. `executed`: whether the server may have executed the request. */
export interface Failure {
  reason: string;
  executed: boolean;
}

/** An attempt without an answer. */
export interface Unanswered extends Failure {
  error: ConnectionError;
}

/** Statuses with which a busy or restarting server refuses a request without executing it. */
const notExecuted = new Set([425, 429, 503]);

/**
 * Sends one request.
 * @throws the abort reason of `signal` when `signal` is aborted, or a UserError if the answer is too long
 */
export async function attempt({ body, url, agent, timeoutMs, most, ...rest }: Attempt): Promise<Answer | Unanswered> {
  try {
    const response = await request(url, {
      ...rest,
      dispatcher: agent,
      headers: { ...rest.headers, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    const { location } = response.headers;
    const bytes = await bodyBytes(response, most);
    return { status: response.statusCode, location: typeof location === 'string' ? location : undefined, bytes };
  } catch (error) {
    rest.signal.throwIfAborted();
    if (error instanceof BodyTooLong)
      throw new UserError(`engine: ${url} is not usable, because ${error.message}: use a server of the Tinker API`);
    const reason = reasonOf(error);
    return { reason, executed: !unsentCodes.has(reason), error: error as ConnectionError };
  }
}

/**
 * Returns the failure that an answer reports, if a later attempt may succeed. Returns undefined if the answer reports a
 * success, or a failure that would occur again.
 */
export function passingFailure({ status, bytes }: Answer): Failure | undefined {
  if (status === 408 || notExecuted.has(status) || (status >= 500 && !isDeliberate(status, jsonOf(bytes))))
    return { reason: `status ${status}`, executed: !notExecuted.has(status) };
  return undefined;
}

/**
 * Whether an answer has status 500 because the server itself reports a failure. FastAPI sends such a report as JSON
 * with a string `detail`. Answers after a crash of the server, or from a proxy, contain no such `detail`.
 */
const isDeliberate = (status: number, json: unknown): boolean =>
  status === 500 && isRecord(json) && typeof json.detail === 'string';

/** The JSON value of a body; undefined if it is not JSON. */
export function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The server's error text: FastAPI's `detail`, or the body. */
export function detailOf({ status, bytes }: Answer): string {
  const json = jsonOf(bytes);
  const detail = (isRecord(json) ? json.detail : undefined) ?? json ?? `status ${status} without a reason`;
  return typeof detail === 'string' ? detail : JSON.stringify(detail);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' ? timedOut : (code ?? message);
}
