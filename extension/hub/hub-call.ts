// One exchange with the hub. Contains a `fetch` that adds the token (only for the hub's origin), a timeout for
// connections that deliver no data, and the error message for every failure. A failure after which a retry may succeed
// is a HubInterrupted; callers catch it and retry. Error codes are read from X-Error-Code, as in huggingface_hub.
import { UserError } from '../common/user-error';

/** A model or data set on the hub: `organisation/name` and a branch, tag or commit. */
export interface HubModel {
  repo: string;
  revision: string;
  /** `model` by default. */
  type?: 'model' | 'dataset';
}

/** Returns the path of the repository's page on the hub. */
export const pageOf = ({ repo, type }: HubModel): string => (type === 'dataset' ? `datasets/${repo}` : repo);

export interface HubOptions {
  /** Address without a trailing slash. */
  endpoint: string;
  token: string | undefined;
  /** True if network requests are not allowed (HF_HUB_OFFLINE). */
  offline: boolean;
  /** Milliseconds after which a connection that delivers no data is aborted. */
  silenceMs: number;
  /** Milliseconds before the first retry; doubled for each further retry. */
  retryMs: number;
}

/**
 * Reads HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE, and interprets them as Hugging Face's own tools do. Throws a
 * UserError for an invalid address.
 */
export function hubOptions(env: NodeJS.ProcessEnv = process.env): HubOptions {
  const endpoint = (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  if (!/^https?:\/\/./.test(endpoint) || !URL.canParse(endpoint))
    throw new UserError(
      `hub: HF_ENDPOINT is ${JSON.stringify(endpoint)}: set it to an address such as https://huggingface.co`,
    );
  const { username, password } = new URL(endpoint);
  if (username !== '' || password !== '')
    throw new UserError(
      'hub: HF_ENDPOINT contains a user name or a password: set HF_ENDPOINT to the address alone, and HF_TOKEN to a token',
    );
  return {
    endpoint,
    token: env.HF_TOKEN || undefined,
    offline: /^(1|on|yes|true)$/i.test(env.HF_HUB_OFFLINE ?? ''),
    silenceMs: 30_000,
    retryMs: 1000,
  };
}

/** Thrown if the hub cannot be reached; callers may continue with an earlier download. */
export class HubUnreachable extends UserError {
  constructor(
    /** The message without its remedy. */
    readonly what: string,
    remedy: string,
  ) {
    super(`${what}: ${remedy}`);
  }
}

/**
 * Thrown if the connection was lost, if no data arrived, or if the server is overloaded. Callers retry. If all retries
 * fail, the user sees the message of the last error.
 */
export class HubInterrupted extends Error {
  constructor(
    readonly what: string,
    readonly remedy = 'check the network and HF_ENDPOINT, then try again',
    /** Waiting time that the hub requested, in milliseconds. */
    readonly waitMs = 0,
    /** True if no connection was established. */
    readonly unreachable = false,
  ) {
    super(`${what}: ${remedy}`);
  }
}

/** Thrown if the hub cannot serve a file from the requested offset, so the download must restart at byte 0. */
export class HubRangeRefused extends Error {}

/** Maximum requests per call. File lists are paged, and a faulty server could link to further pages forever. */
export const mostRequests = 1000;

export type Fetch = typeof globalThis.fetch;
type Check = (response: Response) => void;

/** Codes of connection errors that an immediate retry would not avoid. The hub is then considered unreachable. */
const noWay = [
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
];
const badCertificate =
  /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS|ERR_SSL_(?!WRONG_VERSION_NUMBER)|DEPTH_ZERO/;

/** Thrown if the response does not come from a hub, but from a network's login page or another server. */
export class NotAHub extends Error {}

/**
 * One exchange with the hub. Provides the exchange's `fetch` and timeout. Also stores the exchange's first error,
 * because the library keeps only the text of some errors.
 */
export class Call {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private failure: unknown;
  private requests = 0;

  constructor(
    private readonly options: HubOptions,
    private readonly model: HubModel,
    private readonly signal: AbortSignal | undefined,
    private readonly check?: Check,
  ) {
    signal?.addEventListener('abort', this.giveUp);
    if (signal?.aborted) this.giveUp();
    this.alive();
  }

  readonly fetch: Fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    headers.set('accept-encoding', 'identity'); // offsets and sizes refer to the unencoded file
    headers.set('user-agent', 'ragen-workbench');
    const { endpoint, token } = this.options;
    // fetch drops this header on a redirect to another host, as the Fetch standard requires. The hub redirects to other
    // hosts for large files.
    if (token !== undefined && url.origin === new URL(endpoint).origin) headers.set('authorization', `Bearer ${token}`);
    try {
      if (++this.requests > mostRequests) throw new NotAHub();
      const response = await globalThis.fetch(url, { ...init, headers, signal: this.controller.signal });
      this.alive();
      try {
        if (!response.ok && response.status !== 416) throw refusal(response, this.model, this.options);
        this.check?.(response);
      } catch (error) {
        void response.body?.cancel().catch(() => undefined);
        throw error;
      }
      return response;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  };

  /** Restarts the timeout; called when data arrives. */
  alive(): void {
    clearTimeout(this.timer);
    const { silenceMs, endpoint } = this.options;
    const silent = (): void =>
      this.controller.abort(
        new HubInterrupted(
          `hub: ${endpoint} has sent nothing for ${silenceMs / 1000} s`,
          'check the network and try again; the downloaded part is kept',
        ),
      );
    this.timer = setTimeout(silent, silenceMs);
  }

  /** Stops the timeout and aborts pending requests. */
  end(): void {
    clearTimeout(this.timer);
    this.signal?.removeEventListener('abort', this.giveUp);
    this.controller.abort();
  }

  /** Returns the error to throw when the exchange failed with `error`. */
  explain(error: unknown): unknown {
    if (this.signal?.aborted) return this.signal.reason;
    if (this.controller.signal.aborted) return this.controller.signal.reason;
    const first = this.failure ?? error;
    if (first instanceof UserError || first instanceof HubInterrupted || first instanceof HubRangeRefused) return first;
    const { endpoint } = this.options;
    if (first instanceof NotAHub || first instanceof SyntaxError)
      return new UserError(
        `hub: ${endpoint} is not a Hugging Face hub: check HF_ENDPOINT, and whether the network requires a login`,
      );
    const code = codeOf(first);
    if (code === undefined && !(first instanceof TypeError)) return first; // a bug
    if (code !== undefined && badCertificate.test(code))
      return new UserError(
        `hub: the certificate of ${endpoint} is not trusted (${code}): set NODE_EXTRA_CA_CERTS to the file of your network's certificate`,
      );
    const unreachable = code !== undefined && noWay.includes(code);
    const what = unreachable ? 'cannot be reached' : 'disconnected';
    const why = code === undefined ? '' : ` (${code})`;
    return new HubInterrupted(`hub: ${endpoint} ${what}${why}`, undefined, 0, unreachable);
  }

  private readonly giveUp = (): void => this.controller.abort(this.signal?.reason);
}

/** Returns the system's error code of a failed connection. `fetch` stores it in the cause of its error. */
function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code, errors } = at as NodeJS.ErrnoException & { errors?: unknown[] };
    if (typeof code === 'string') return code;
    if (errors?.length) return codeOf(errors[0]);
  }
  return undefined;
}

/**
 * Returns the error for a refused request. The error is a HubInterrupted if a retry may succeed. Error codes are read
 * from X-Error-Code.
 */
function refusal(response: Response, model: HubModel, { endpoint, token }: HubOptions): Error {
  const { repo, revision, type } = model;
  const { status, headers } = response;
  const code = headers.get('x-error-code');
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const wait = Math.min(60, Number(headers.get('retry-after')) || 0) * 1000;
    const remedy = status === 429 && token === undefined ? 'set HF_TOKEN or try again later' : 'try again later';
    return new HubInterrupted(`hub: ${endpoint} answers ${status} to the request for ${repo}`, remedy, wait);
  }
  if (response.redirected && new URL(response.url).origin !== new URL(endpoint).origin)
    return new HubInterrupted(
      `hub: the file storage of ${endpoint} answers ${status} to the request for ${repo}`,
      'try again later',
    ); // download links expire
  const account = token === undefined ? 'set HF_TOKEN to your token' : 'set HF_TOKEN to a token of the same account';
  if (code === 'GatedRepo')
    return new UserError(
      `hub: ${repo} requires that you accept its terms: accept them at ${endpoint}/${pageOf(model)} and ${account}`,
    );
  if (code === 'RevisionNotFound')
    return new UserError(
      `hub: ${repo} has no revision ${revision}: give one of its branches, tags or commits after the @`,
    );
  if (status === 401 && headers.get('x-error-message') === 'Invalid credentials in Authorization header')
    return new UserError(
      `hub: ${endpoint} does not accept the token in HF_TOKEN: set HF_TOKEN to a valid token, or unset it`,
    );
  if (status === 401 || status === 404) {
    const access =
      token === undefined
        ? 'set HF_TOKEN if the repository is private'
        : 'check that the token in HF_TOKEN may read it';
    return new UserError(
      `hub: ${endpoint} has no accessible ${type === 'dataset' ? 'data set' : 'model'} ${repo} (${status}): check the name, and ${access}`,
    );
  }
  if (status === 403)
    return new UserError(
      `hub: ${endpoint} forbids access to ${repo} (403): ${token === undefined ? 'set HF_TOKEN to a token that may read it' : 'give the token in HF_TOKEN the right to read it'}`,
    );
  return new UserError(`hub: ${endpoint} answers ${status} to the request for ${repo}: check HF_ENDPOINT`);
}
