// Requests data from the Hugging Face hub over HTTP: the commit and the files of a revision, and the bytes of a file
// from any offset. The library @huggingface/hub implements the protocol; each exchange runs in a `Call`, which turns
// failures into one sentence. p-retry is not used, because it would wait for its own delay and then for the delay that
// the hub requests. Waiting for the longer of these two delays is enough.
import { datasetInfo, downloadFile, listFiles, modelInfo } from '@huggingface/hub';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../common/user-error';
import { Call, HubInterrupted, HubRangeRefused, HubUnreachable, NotAHub, hubOptions, pageOf } from './hub-call';
import type { Fetch, HubModel, HubOptions } from './hub-call';

export interface HubFile {
  /**
   * For a model: the file's name; only files in the folder of config.json are listed. For a data set: the file's path
   * with slashes.
   */
  name: string;
  bytes: number;
  /**
   * The hub's id for the content. For a large file: its sha256 (64 hex digits). For other files: git's sha1 of the blob
   * (40 hex digits).
   */
  etag: string;
}

export interface HubListing {
  /** The commit that the revision has at the time of the call, 40 hex digits. */
  commit: string;
  files: HubFile[];
}

/** Maximum number of consecutive attempts that receive no new data; the error of the last attempt is then thrown. */
export const mostTries = 5;

export class HubClient {
  constructor(readonly options: HubOptions = hubOptions()) {}

  /**
   * Lists the files of a revision, with retries. Throws HubUnreachable, or a UserError if the hub refuses the request.
   */
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
   * Yields the bytes of a file at a commit from offset `from` on, without retries. Throws HubInterrupted if a retry may
   * deliver the remaining bytes. Throws HubRangeRefused if the download must restart at byte 0, and a UserError if the
   * hub refuses the request.
   */
  async *read(
    model: HubModel,
    commit: string,
    file: HubFile,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { endpoint } = this.options;
    const path = file.name.split('/').map(encodeURIComponent).join('/');
    const url = `${endpoint}/${pageOf(model)}/resolve/${commit}/${path}`;
    const call = new Call(this.options, model, signal, response => checkExtent(response, file, from, model));
    try {
      const blob = await downloadFile({
        repo: { type: model.type ?? 'model', name: model.repo },
        path: file.name,
        revision: commit,
        hubUrl: endpoint,
        fetch: call.fetch,
        xet: false,
        downloadInfo: { url, size: file.bytes, etag: file.etag },
      });
      if (!blob) throw new Error(`hub: the response for ${file.name} has no content`);
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
      return await work(async (...request) => withinBytes(await call.fetch(...request), this.options));
    } catch (error) {
      throw call.explain(error);
    } finally {
      call.end();
    }
  }

  private async listOnce({ repo, revision, type = 'model' }: HubModel, fetch: Fetch): Promise<HubListing> {
    const { endpoint: hubUrl } = this.options;
    const asked = { name: repo, revision, additionalFields: ['sha' as const], hubUrl, fetch };
    const { sha: commit } = type === 'dataset' ? await datasetInfo(asked) : await modelInfo(asked);
    if (typeof commit !== 'string' || !/^[0-9a-f]{40}$/.test(commit)) throw new NotAHub();
    const files: HubFile[] = [];
    const recursive = type === 'dataset';
    const wanted = recursive ? /^\w[\w.=-]*(\/\w[\w.=-]*)*$/ : /^\w[\w.-]*$/;
    for await (const entry of listFiles({ repo: { type, name: repo }, revision: commit, recursive, hubUrl, fetch })) {
      const { path, size, oid, lfs } = entry;
      if (entry.type !== 'file' || typeof path !== 'string' || !wanted.test(path)) continue;
      const etag = lfs?.oid ?? oid;
      const isEtag = typeof etag === 'string' && /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(etag);
      if (!Number.isSafeInteger(size) || size < 0 || !isEtag) throw new NotAHub();
      files.push({ name: path, bytes: size, etag });
    }
    return { commit, files };
  }
}

/** Maximum bytes of one page of a file list. A page of a thousand entries has about a tenth of this size. */
const mostPageBytes = 2 ** 24;

/** Returns the response with a body that fails with a UserError after `mostPageBytes` bytes. */
function withinBytes(response: Response, { endpoint }: HubOptions): Response {
  let bytes = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes <= mostPageBytes) return controller.enqueue(chunk);
      throw new UserError(
        `hub: ${endpoint} answers with a file list of more than ${mostPageBytes} bytes per page: check HF_ENDPOINT, or try again later`,
      );
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body?.pipeThrough(count) ?? null, { status, statusText, headers });
}

/** Resolves after `ms` milliseconds; rejects with the reason of `signal` when it is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => signal!.throwIfAborted());

/** Throws unless the response contains all bytes of the file from offset `from` to its end. */
function checkExtent(response: Response, { name, bytes }: HubFile, from: number, { repo }: HubModel): void {
  const { status, headers } = response;
  if (status === 416 || (from > 0 && status !== 206)) throw new HubRangeRefused(`${name}: status ${status}`);
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '');
  const length = headers.get('content-length');
  const [start, whole] = range ? [Number(range[1]), Number(range[2])] : [0, length === null ? bytes : Number(length)];
  if (start !== from)
    throw new HubRangeRefused(`${name}: the response begins at byte ${start} instead of byte ${from}`);
  if (whole !== bytes)
    throw new UserError(
      `hub: ${name} of ${repo} has ${whole} bytes, but ${bytes} according to the hub's file list: try again later, or choose another revision`,
    );
}
