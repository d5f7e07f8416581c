// The interface between a protocol and an episode on a server, and the three kinds of failure. `NotTaken`: the server
// did not accept the request, so the request may be repeated. `SessionLost`: the server may have executed the request,
// so the session must not be used again. `Error`: the server returned an error.
import { bodyBytes } from '../api/response-body';
import { unsentCodes } from '../api/unsent-codes';
import type { ActionLookup } from '../api/environment';
import { imageType } from './multipart';

/** A server's response to a reset or a step. */
export interface RemoteState {
  text: string;
  /** Bytes of PNG or JPEG files. */
  images: Uint8Array[];
  reward: number;
  done: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
  /** Names of this episode's actions, if the server sends them with a reset. */
  actions?: ActionLookup;
}

export interface RemoteReset {
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

/** One environment instance on the server. */
export interface RemoteSession {
  reset(options: RemoteReset): Promise<RemoteState>;
  /** @param action name of an action, or a text if actions are texts */
  step(action: string): Promise<RemoteState>;
  /** Releases the instance; never throws. */
  close(): Promise<void>;
}

/** The server's description of its environment. */
export interface RemoteDescription {
  instruction: string;
  actions?: ActionLookup;
}

export interface RemotePeer {
  /** Returns the reason why the server does not respond, such as "ECONNREFUSED"; undefined if it responds. */
  missing(): Promise<string | undefined>;
  describe(): Promise<RemoteDescription>;
  open(): Promise<RemoteSession>;
}

export interface PeerOptions {
  /** Base URL without a trailing slash. */
  url: string;
  apiKey: string | undefined;
  /** Response timeout in seconds. */
  timeout: number;
  /** Connection timeout in seconds. */
  connectTimeout: number;
  /** Configuration of the environment, passed to the server. */
  envConfig: Record<string, unknown>;
}

/** The server rejected the request before executing it, or could not be reached: the request may be repeated. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
  constructor(
    message: string,
    /** Seconds to wait before a retry, from the server's Retry-After header; undefined without this header. */
    readonly after?: number,
  ) {
    super(message);
  }
}

/**
 * The server may or may not have executed the request, or the server has no such session. The session must not be used
 * again.
 */
export class SessionLost extends Error {
  override readonly name = 'SessionLost';
}

/** Maximum bytes of a response, which contains an observation with its images. */
const mostBodyBytes = 2 ** 26;

/** Maximum number of characters that a message quotes from a server's error text. */
const maxCharacters = 300;

/** Headers that carry the API key: GymService reads `x-api-key`, other servers read `authorization`. */
export const keyHeaders = (apiKey: string | undefined): Record<string, string> =>
  apiKey === undefined ? {} : { 'x-api-key': apiKey, authorization: `Bearer ${apiKey}` };

/** A server's text in which the API key is masked, because error messages are logged. */
export const withoutKey = (said: string, { apiKey }: Pick<PeerOptions, 'apiKey'>): string =>
  apiKey ? said.replaceAll(apiKey, '***') : said;

/**
 * Sends a request and returns the response's content type and body.
 * @throws NotTaken, SessionLost, or an Error with the server's text
 */
export async function ask(
  options: PeerOptions,
  path: string,
  body?: { type: string; body: Uint8Array | string },
): Promise<{ type: string; body: Uint8Array }> {
  const { url, apiKey, timeout } = options;
  const attempt = async () => {
    const response = await fetch(`${url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { ...keyHeaders(apiKey), ...(body && { 'content-type': body.type }) },
      body: body?.body as RequestInit['body'] | undefined,
      redirect: 'manual', // a redirect could send the key to another host
      signal: AbortSignal.timeout(timeout * 1000),
    });
    return { response, bytes: await bodyBytes(response, mostBodyBytes) };
  };
  const { response, bytes } = await attempt().catch((error: unknown) => {
    throw connectionError(error, timeout);
  });
  const { status } = response;
  if (response.ok) return { type: response.headers.get('content-type') ?? '', body: bytes };
  const cleared = withoutKey(Buffer.from(bytes).toString('utf8'), options);
  // The text is shortened only after masking, because masking does not detect a shortened key.
  const excerpt = cleared.length > maxCharacters ? `${cleared.slice(0, maxCharacters)}…` : cleared;
  const said = `the server answered ${path} with status ${status}: ${excerpt}`;
  if (status === 503 || status === 429)
    throw new NotTaken(said, Number(response.headers.get('retry-after') ?? NaN) || undefined);
  if (status === 404 || status === 502 || status === 504) throw new SessionLost(said);
  throw new Error(said);
}

/** Sends a request and returns the response's JSON. */
export async function askJson(options: PeerOptions, path: string): Promise<Record<string, unknown>> {
  const { body } = await ask(options, path);
  return JSON.parse(Buffer.from(body).toString('utf8')) as Record<string, unknown>;
}

/**
 * Classifies the error of a request without a response: `NotTaken` if no connection was established, else
 * `SessionLost`.
 */
export function connectionError(error: unknown, timeout: number): NotTaken | SessionLost {
  const { name, message, code, cause } = error as Error & { code?: string; cause?: { code?: string } };
  if (name === 'TimeoutError') return new SessionLost(`no answer within ${timeout} s`);
  const why = cause?.code ?? code;
  return why !== undefined && unsentCodes.has(why) ? new NotTaken(why) : new SessionLost(why ?? message);
}

/** Returns the reason why the server does not respond to GET `path` within five seconds; undefined if it responds. */
export async function missingAt(options: PeerOptions, path: string): Promise<string | undefined> {
  try {
    await ask({ ...options, timeout: Math.min(options.timeout, 5) }, path);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Checks that a server's images are PNG or JPEG, and appends missing `<image>` placeholders to the text.
 * @throws Error if an image is neither
 */
export function stateOf(state: RemoteState): RemoteState {
  const { text, images } = state;
  const wrong = images.findIndex(image => imageType(image) === undefined);
  if (wrong >= 0) throw new Error(`the server's image ${wrong + 1} is neither PNG nor JPEG`);
  const marks = text.split('<image>').length - 1;
  return { ...state, text: text + '\n<image>'.repeat(Math.max(images.length - marks, 0)) };
}

/** The value itself if it is an object, else an empty object. */
export const recordOf = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

/**
 * Returns a server's reward as a number; a missing reward is 0.
 * @throws Error if the value is not a number
 */
export function rewardOf(value: unknown): number {
  const reward = value === null || value === undefined ? 0 : Number(value);
  if (!Number.isFinite(reward))
    throw new Error(`the server's reward is ${JSON.stringify(value)}, which is not a number`);
  return reward;
}
