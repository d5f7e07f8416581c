// The Hugging Face hub over HTTP: which commit a revision is, which files it has, and a file's bytes from any offset on. The library
// @huggingface/hub speaks the protocol; this file gives it a `fetch` that adds the token (for the hub's own address alone), ends
// silence, and turns every refusal into one sentence. What is worth another try is a HubInterrupted, never seen by a user.
import { downloadFile, listFiles, modelInfo } from '@huggingface/hub';
import { UserError } from '../../protocol/user-error';

/** A model of the hub: `organisation/name` and a branch, a tag or a commit. */
export interface HubModel {
  repo: string;
  revision: string;
}

export interface HubFile {
  /** Beside config.json: the hub's folders are passed over. */
  name: string;
  bytes: number;
  /** What the hub calls the content: its sha256 (64 hex digits) for large files, git's sha1 of the blob (40) for the others. */
  etag: string;
}

export interface HubListing {
  /** What the revision stands for now, 40 hex digits. */
  commit: string;
  files: HubFile[];
}

export interface HubOptions {
  /** Address without a slash at its end. */
  endpoint: string;
  token: string | undefined;
  /** Ask nothing of the network. */
  offline: boolean;
  /** A connection that brings nothing for so long is given up. */
  silenceMs: number;
  /** Wait before the second try; doubles with each further one. */
  retryMs: number;
}

/** Tries without any progress between them before the user is told. */
export const mostTries = 5;

/** HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE, as other tools of the hub read them. Throws a UserError for an address that is none. */
export function hubOptions(env: NodeJS.ProcessEnv = process.env): HubOptions {
  const endpoint = (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  if (!/^https?:\/\/./.test(endpoint) || !URL.canParse(endpoint))
    throw new UserError(
      `hub: HF_ENDPOINT is ${JSON.stringify(endpoint)}: make it an address such as https://huggingface.co`,
    );
  return {
    endpoint,
    token: env.HF_TOKEN || undefined,
    offline: /^(1|on|yes|true)$/i.test(env.HF_HUB_OFFLINE ?? ''),
    silenceMs: 30_000,
    retryMs: 1000,
  };
}

/** The hub cannot be reached: what was fetched before may still do. */
export class HubUnreachable extends UserError {
  constructor(
    /** The sentence without its remedy. */
    readonly what: string,
    remedy: string,
  ) {
    super(`${what}: ${remedy}`);
  }
}

/** Broken off, silent or overloaded. The message is the sentence for the user, should no further try succeed. */
export class HubInterrupted extends Error {
  constructor(
    readonly what: string,
    readonly remedy = 'check the network and HF_ENDPOINT, then try again',
    /** How long the hub asks to be left alone. */
    readonly waitMs = 0,
    /** No connection came about. */
    readonly unreachable = false,
  ) {
    super(`${what}: ${remedy}`);
  }
}

/** The hub gives no part of the file from that offset on: it must be fetched from its start. */
export class HubRangeRefused extends Error {}

type Fetch = typeof globalThis.fetch;
type Check = (response: Response) => void;

/** Codes that mean that there is no way to the hub, so that asking again at once is in vain. */
const noWay = ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL'];
const badCertificate =
  /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS|ERR_SSL_(?!WRONG_VERSION_NUMBER)|DEPTH_ZERO/;

export class HubClient {
  constructor(readonly options: HubOptions = hubOptions()) {}

  /** The files of a revision. Tries again where that may help. Throws HubUnreachable, or a UserError with the hub's refusal. */
  async list(model: HubModel, signal?: AbortSignal): Promise<HubListing> {
    const { retryMs } = this.options;
    for (let tries = 1; ; tries++) {
      try {
        return await this.call(model, signal, fetch => this.listOnce(model, fetch));
      } catch (error) {
        if (!(error instanceof HubInterrupted)) throw error;
        if (error.unreachable || tries >= mostTries) throw new HubUnreachable(error.what, error.remedy);
        await pause(Math.max(error.waitMs, retryMs * 2 ** (tries - 1)), signal);
      }
    }
  }

  /**
   * The bytes of a file of a commit, from the offset `from` on. Tries once. Throws HubInterrupted where the rest may be had by another
   * try, HubRangeRefused where that must begin at 0, and a UserError for a refusal.
   */
  async *read(
    model: HubModel,
    commit: string,
    file: HubFile,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { endpoint } = this.options;
    const url = `${endpoint}/${model.repo}/resolve/${commit}/${encodeURIComponent(file.name)}`;
    const call = new Call(this.options, model, signal, response => checkExtent(response, file, from, model));
    try {
      const blob = await downloadFile({
        repo: { type: 'model', name: model.repo },
        path: file.name,
        revision: commit,
        hubUrl: endpoint,
        fetch: call.fetch,
        xet: false,
        downloadInfo: { url, size: file.bytes, etag: file.etag },
      });
      if (!blob) throw new Error(`hub: no content of ${file.name}`);
      const reader = blob.slice(from).stream().getReader();
      try {
        for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
          call.alive();
          yield value!;
        }
      } finally {
        void reader.cancel().catch(() => undefined);
      }
    } catch (error) {
      throw call.explain(error);
    } finally {
      call.end();
    }
  }

  private async call<T>(model: HubModel, signal: AbortSignal | undefined, work: (fetch: Fetch) => Promise<T>) {
    const call = new Call(this.options, model, signal);
    try {
      return await work(call.fetch);
    } catch (error) {
      throw call.explain(error);
    } finally {
      call.end();
    }
  }

  private async listOnce({ repo, revision }: HubModel, fetch: Fetch): Promise<HubListing> {
    const { endpoint: hubUrl } = this.options;
    const { sha: commit } = await modelInfo({ name: repo, revision, additionalFields: ['sha'], hubUrl, fetch });
    if (typeof commit !== 'string' || !/^[0-9a-f]{40}$/.test(commit)) throw new NotAHub();
    const files: HubFile[] = [];
    for await (const entry of listFiles({ repo: { type: 'model', name: repo }, revision: commit, hubUrl, fetch })) {
      const { type, path, size, oid, lfs } = entry;
      if (type !== 'file' || !/^\w[\w.-]*$/.test(path)) continue;
      const etag = lfs?.oid ?? oid;
      if (!Number.isSafeInteger(size) || !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(etag ?? '')) throw new NotAHub();
      files.push({ name: path, bytes: size, etag: etag! });
    }
    return { commit, files };
  }
}

/** Waits; throws the signal's reason where it is given up. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const giveUp = (): void => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    }, ms);
    signal?.addEventListener('abort', giveUp, { once: true });
  });
}

/** The answer is none of a hub's: a login page of the network, or another server. */
class NotAHub extends Error {}

/** One exchange with the hub: its `fetch`, its clock, and what went wrong first (the library passes on some errors as mere texts). */
class Call {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private failure: unknown;

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
    headers.set('accept-encoding', 'identity'); // offsets and sizes are those of the file
    headers.set('user-agent', 'ragen-workbench');
    const { endpoint, token } = this.options;
    // A redirect to another host, where large files lie, loses this header: the Fetch standard asks for it.
    if (token !== undefined && url.origin === new URL(endpoint).origin) headers.set('authorization', `Bearer ${token}`);
    try {
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

  /** Something came: the clock begins anew. */
  alive(): void {
    clearTimeout(this.timer);
    const { silenceMs, endpoint } = this.options;
    const silent = (): void =>
      this.controller.abort(
        new HubInterrupted(
          `hub: ${endpoint} has sent nothing for ${silenceMs / 1000} s`,
          'check the network and try again, what came so far is kept',
        ),
      );
    this.timer = setTimeout(silent, silenceMs);
  }

  /** Ends the clock and whatever is still on its way. */
  end(): void {
    clearTimeout(this.timer);
    this.signal?.removeEventListener('abort', this.giveUp);
    this.controller.abort();
  }

  /** What a failed exchange means. */
  explain(error: unknown): unknown {
    if (this.signal?.aborted) return this.signal.reason;
    if (this.controller.signal.aborted) return this.controller.signal.reason;
    const first = this.failure ?? error;
    if (first instanceof UserError || first instanceof HubInterrupted || first instanceof HubRangeRefused) return first;
    const { endpoint } = this.options;
    if (first instanceof NotAHub || first instanceof SyntaxError)
      return new UserError(
        `hub: ${endpoint} does not answer as a hub: check HF_ENDPOINT, and whether the network asks for a login`,
      );
    const code = codeOf(first);
    if (code === undefined && !(first instanceof TypeError)) return first; // a defect
    if (code !== undefined && badCertificate.test(code))
      return new UserError(
        `hub: the certificate of ${endpoint} is not trusted (${code}): set NODE_EXTRA_CA_CERTS to the file of your network's certificate`,
      );
    const unreachable = code !== undefined && noWay.includes(code);
    const what = unreachable ? 'cannot be reached' : 'broke off';
    const why = code === undefined ? '' : ` (${code})`;
    return new HubInterrupted(`hub: ${endpoint} ${what}${why}`, undefined, 0, unreachable);
  }

  private readonly giveUp = (): void => this.controller.abort(this.signal?.reason);
}

/** The system's code of a failed connection, which `fetch` hides in its cause. */
function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code, errors } = at as NodeJS.ErrnoException & { errors?: unknown[] };
    if (typeof code === 'string') return code;
    if (errors?.length) return codeOf(errors[0]);
  }
  return undefined;
}

/** The sentence for a refusal; HubInterrupted where asking again may help. Codes as the hub sends them in X-Error-Code. */
function refusal(response: Response, { repo, revision }: HubModel, { endpoint, token }: HubOptions): Error {
  const { status, headers } = response;
  const code = headers.get('x-error-code');
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const wait = Math.min(60, Number(headers.get('retry-after')) || 0) * 1000;
    const remedy = status === 429 && token === undefined ? 'set HF_TOKEN or try again later' : 'try again later';
    return new HubInterrupted(`hub: ${endpoint} answers ${status} to the request for ${repo}`, remedy, wait);
  }
  if (response.redirected && new URL(response.url).origin !== new URL(endpoint).origin)
    return new HubInterrupted(
      `hub: the store of ${endpoint} answers ${status} to the request for ${repo}`,
      'try again later',
    ); // its links run out after a while
  const account = token === undefined ? 'set HF_TOKEN to a token of yours' : 'use a token of that account in HF_TOKEN';
  if (code === 'GatedRepo')
    return new UserError(
      `hub: ${repo} is open only to those who accepted its terms: accept them at ${endpoint}/${repo} and ${account}`,
    );
  if (code === 'RevisionNotFound')
    return new UserError(
      `hub: ${repo} has no revision ${revision}: name a branch, a tag or a commit of it after the @`,
    );
  if (status === 401 && headers.get('x-error-message') === 'Invalid credentials in Authorization header')
    return new UserError(`hub: ${endpoint} does not accept the token in HF_TOKEN: set a valid one, or none`);
  if (status === 401 || status === 404) {
    const access = token === undefined ? 'set HF_TOKEN if it is private' : 'see that HF_TOKEN may read it';
    return new UserError(`hub: ${endpoint} shows no model ${repo} (${status}): check the name, and ${access}`);
  }
  if (status === 403)
    return new UserError(
      `hub: ${endpoint} forbids access to ${repo} (403): ${token === undefined ? 'set HF_TOKEN to a token that may read it' : 'give the token in HF_TOKEN the right to read it'}`,
    );
  return new UserError(`hub: ${endpoint} answers ${status} to the request for ${repo}: check HF_ENDPOINT`);
}

/** Throws unless the answer holds the rest of the file from `from` on. */
function checkExtent(response: Response, { name, bytes }: HubFile, from: number, { repo }: HubModel): void {
  const { status, headers } = response;
  if (status === 416 || (from > 0 && status !== 206)) throw new HubRangeRefused(`${name}: status ${status}`);
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '');
  const length = headers.get('content-length');
  const [start, whole] = range ? [Number(range[1]), Number(range[2])] : [0, length === null ? bytes : Number(length)];
  if (start !== from) throw new HubRangeRefused(`${name}: the answer begins at ${start} in place of ${from}`);
  if (whole !== bytes)
    throw new UserError(
      `hub: ${name} of ${repo} has ${whole} bytes, but the hub's list says ${bytes}: try again later, or name another revision`,
    );
}
