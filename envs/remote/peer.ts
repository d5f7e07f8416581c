// What a protocol gives to an episode played on a server, and the three ways in which it can fail: the request was not taken (it may be
// sent again), nobody knows whether it was (the session is lost: never sent again there), or the server says no.
import { bodyBytes } from '../api/response-body';
import type { ActionLookup } from '../api/environment';

/** A server's answer to a reset or a step. */
export interface RemoteState {
  text: string;
  /** PNG bytes. */
  images: Uint8Array[];
  reward: number;
  done: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
  /** Names of this episode's actions, where the server tells them with a reset. */
  actions?: ActionLookup;
}

export interface RemoteReset {
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

/** One environment on the server. */
export interface RemoteSession {
  reset(options: RemoteReset): Promise<RemoteState>;
  /** @param action name of an action, or text */
  step(action: string): Promise<RemoteState>;
  /** Gives it back; never throws. */
  close(): Promise<void>;
}

/** A server's environment as it describes itself. */
export interface RemoteDescription {
  instruction: string;
  actions?: ActionLookup;
}

export interface RemotePeer {
  /** Undefined where it answers, else why not, as in "ECONNREFUSED". */
  missing(): Promise<string | undefined>;
  describe(): Promise<RemoteDescription>;
  open(): Promise<RemoteSession>;
}

export interface PeerOptions {
  /** Base URL without a slash at its end. */
  url: string;
  apiKey: string | undefined;
  /** Seconds for an answer. */
  timeout: number;
  /** Seconds for a connection. */
  connectTimeout: number;
  /** The server's own parameters of the environment. */
  envConfig: Record<string, unknown>;
}

/** The server did not take the request, and says so or could not be reached: it may be sent again. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
  constructor(
    message: string,
    /** Seconds after which the server wants to be asked again. */
    readonly after?: number,
  ) {
    super(message);
  }
}

/** Whether the server took the request is unknown, or it does not know the session: the session must not be used any more. */
export class SessionLost extends Error {
  override readonly name = 'SessionLost';
}

/** Bytes of an answer: an observation with its pictures. */
const mostBodyBytes = 2 ** 26;

/** Characters of what a server says of an error. */
const mostWords = 300;

/** Codes of connections that never came about. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Headers that carry the key: GymService reads the first, servers behind a gateway the second. */
export const keyHeaders = (apiKey: string | undefined): Record<string, string> =>
  apiKey === undefined ? {} : { 'x-api-key': apiKey, authorization: `Bearer ${apiKey}` };

/** What a server said, without the key where it repeats it: what goes wrong is written down. */
export const withoutKey = (said: string, { apiKey }: Pick<PeerOptions, 'apiKey'>): string =>
  apiKey ? said.replaceAll(apiKey, '***') : said;

/**
 * The body of a server's answer.
 * @throws NotTaken, SessionLost, or an Error with what the server said
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
      body: body?.body as BodyInit | undefined,
      redirect: 'manual', // the key goes to no other place than the one that was named
      signal: AbortSignal.timeout(timeout * 1000),
    });
    return { response, bytes: await bodyBytes(response, mostBodyBytes) };
  };
  const { response, bytes } = await attempt().catch((error: unknown) => {
    throw connectionError(error, timeout);
  });
  const { status } = response;
  if (response.ok) return { type: response.headers.get('content-type') ?? '', body: bytes };
  const told = withoutKey(Buffer.from(bytes).toString('utf8'), options);
  const words = told.length > mostWords ? `${told.slice(0, mostWords)}…` : told; // the mark tells readers that a key may be cut there
  const said = `${path} was answered with ${status}: ${words}`;
  if (status === 503 || status === 429)
    throw new NotTaken(said, Number(response.headers.get('retry-after') ?? NaN) || undefined);
  if (status === 404 || status === 502 || status === 504) throw new SessionLost(said);
  throw new Error(said);
}

/** JSON of an answer. */
export async function askJson(options: PeerOptions, path: string): Promise<Record<string, unknown>> {
  const { body } = await ask(options, path);
  return JSON.parse(Buffer.from(body).toString('utf8')) as Record<string, unknown>;
}

/** How a request that got no answer failed. */
export function connectionError(error: unknown, timeout: number): NotTaken | SessionLost {
  const { name, message, code, cause } = error as Error & { code?: string; cause?: { code?: string } };
  if (name === 'TimeoutError') return new SessionLost(`no answer within ${timeout} s`);
  const why = cause?.code ?? code;
  return why !== undefined && neverConnected.has(why) ? new NotTaken(why) : new SessionLost(why ?? message);
}

/** Why a server does not answer GET `path` within five seconds; undefined where it does. */
export async function missingAt(options: PeerOptions, path: string): Promise<string | undefined> {
  try {
    await ask({ ...options, timeout: Math.min(options.timeout, 5) }, path);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A truthful state of what a server sent; images are PNG, each with its `<image>` mark in the text. */
export function stateOf(state: RemoteState): RemoteState {
  const { text, images } = state;
  const wrong = images.findIndex(image => Buffer.from(image.subarray(0, 4)).toString('latin1') !== '\x89PNG');
  if (wrong >= 0) throw new Error(`the server's image ${wrong + 1} is no PNG`);
  const marks = text.split('<image>').length - 1;
  return { ...state, text: text + '\n<image>'.repeat(Math.max(images.length - marks, 0)) };
}

/** `value` where it is an object, else an empty one. */
export const recordOf = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

/** A reward as a number; absent ones are 0, what is no number is refused. */
export function rewardOf(value: unknown): number {
  const reward = value === null || value === undefined ? 0 : Number(value);
  if (!Number.isFinite(reward)) throw new Error(`the server's reward is ${JSON.stringify(value)}, no number`);
  return reward;
}
