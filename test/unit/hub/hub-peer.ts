// A hub on 127.0.0.1 that speaks like huggingface.co to a client without xet: revisions, the tree in pages, small files
// behind a redirect on the same host, large files behind a redirect to a store on another port, ETag, X-Linked-*,
// ranges, refusals with X-Error-Code. Faults are enabled per file. Sources: the hub's API documentation, and how
// huggingface_hub reads the headers.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PeerFile {
  content: Buffer;
  /** Stored in the store for large files; by default every *.safetensors and tokenizer.json. */
  lfs?: boolean;
  /** Content of the response in place of the listed content. */
  sent?: Buffer;
  /** The connection is cut after this many bytes of each response, one entry per response. */
  cuts?: number[];
  /** The response stalls after this many bytes until the peer is closed, one entry per response. */
  standsStill?: number[];
  /** Sent in chunks with a pause between them. */
  slowly?: { bytes: number; ms: number };
  /** Response to a Range request in place of 206. */
  range?: 'ignored' | 'refused';
  /** Statuses of the first responses, before the content is served. */
  fails?: number[];
  /** Size in the list, if it differs from the content's. */
  listedBytes?: number;
}

export interface PeerModel {
  commit: string;
  revisions?: string[];
  files: Record<string, Buffer | string | PeerFile>;
  private?: boolean;
  gated?: boolean;
}

export interface SeenRequest {
  host: 'hub' | 'store';
  path: string;
  range: string | undefined;
  authorization: string | undefined;
  encoding: string | undefined;
}

export interface Peer {
  endpoint: string;
  models: Record<string, PeerModel>;
  requests: SeenRequest[];
  /** Statuses of the hub's first responses, for any request. */
  fails: number[];
  /** Requests for contents, in order, as `name` or `name from-`. */
  contents(): string[];
  close(): Promise<void>;
}

export const token = 'hf_peer';
const pageSize = 4;

export const fileOf = (model: PeerModel, name: string): PeerFile | undefined => {
  const file = model.files[name];
  if (file === undefined) return undefined;
  return typeof file === 'string' || Buffer.isBuffer(file) ? { content: Buffer.from(file) } : file;
};
const isLfs = (name: string, file: PeerFile): boolean =>
  file.lfs ?? (name.endsWith('.safetensors') || name === 'tokenizer.json');
export const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
export const gitSha1 = (content: Buffer): string =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');

/** Opens a hub and its store on free ports. */
export async function openPeer(models: Record<string, PeerModel>): Promise<Peer> {
  const requests: SeenRequest[] = [];
  const see = (host: SeenRequest['host'], { url, headers }: IncomingMessage): void =>
    void requests.push({
      host,
      path: decodeURIComponent(url!.split('?')[0]),
      range: headers.range,
      authorization: headers.authorization,
      encoding: headers['accept-encoding'],
    });
  const store = createServer((request, response) => {
    see('store', request);
    // A link signed for one request: no token may be sent with it.
    const [, key] = /^\/(.*)\?X-Signature=ok$/.exec(decodeURIComponent(request.url!)) ?? [];
    if (!key || request.headers.authorization) return void response.writeHead(400).end();
    const [model, name] = key.split('|');
    send(request, response, fileOf(peer.models[model], name)!, true);
  });
  const hub = createServer((request, response) => {
    see('hub', request);
    answer(request, response, peer, `http://127.0.0.1:${(store.address() as AddressInfo).port}`);
  });
  await Promise.all([store, hub].map(server => new Promise<void>(done => server.listen(0, '127.0.0.1', done))));
  const peer: Peer = {
    endpoint: `http://127.0.0.1:${(hub.address() as AddressInfo).port}`,
    models,
    requests,
    fails: [],
    contents: () =>
      requests
        .filter(({ host, path }) => host === 'store' || path.includes('/resolve-cache/'))
        .map(({ path, range }) => {
          const name = path.split(/[/|]/).at(-1)!;
          return range ? `${name} ${range.replace(/^bytes=(\d+)-.*/, '$1-')}` : name;
        }),
    close: async () => {
      await Promise.all([store, hub].map(closeServer));
    },
  };
  return peer;
}

const closeServer = (server: Server): Promise<void> =>
  new Promise(done => {
    server.close(() => done());
    server.closeAllConnections();
  });

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-error-code': code, 'x-error-message': message });
  response.end(JSON.stringify({ error: message }));
}

function answer(request: IncomingMessage, response: ServerResponse, peer: Peer, storeAddress: string): void {
  const failing = peer.fails.shift();
  if (failing !== undefined) return void response.writeHead(failing, { 'retry-after': '0' }).end('later');
  const { authorization } = request.headers;
  if (authorization !== undefined && authorization !== `Bearer ${token}`)
    return refuse(response, 401, '', 'Invalid credentials in Authorization header');
  const url = new URL(request.url!, peer.endpoint);
  const cached = /^\/api\/resolve-cache\/models\/([^/]+\/[^/]+)\/([^/]+)\/(.+)$/.exec(url.pathname);
  const [, api, , resolved] =
    /^\/(api\/(?:models|datasets)\/|datasets\/)?(([^/]+\/[^/]+)(?=\/))/.exec(url.pathname) ?? [];
  const repo = cached?.[1] ?? resolved;
  const model = repo === undefined ? undefined : peer.models[repo];
  if (!model || (model.private && !authorization))
    return authorization
      ? refuse(response, 404, 'RepoNotFound', 'Repository not found')
      : refuse(response, 401, 'RepoNotFound', 'Repository not found');
  const known = [model.commit, 'main', ...(model.revisions ?? [])];
  if (cached) return send(request, response, fileOf(model, decodeURIComponent(cached[3]))!, false);
  const rest = url.pathname.slice(`/${api ?? ''}${repo}/`.length);
  const [kind, revision, ...path] = rest.split('/').map(decodeURIComponent);
  if (!known.includes(revision)) return refuse(response, 404, 'RevisionNotFound', 'Invalid rev id');
  if (api && kind === 'revision')
    return void response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(
        JSON.stringify({ _id: '1', id: repo, sha: model.commit, private: false, gated: model.gated ? 'auto' : false }),
      );
  if (api && kind === 'tree') return tree(response, model, url);
  if (kind !== 'resolve') return void response.writeHead(404).end();
  if (model.gated)
    return refuse(response, authorization ? 403 : 401, 'GatedRepo', `Access to model ${repo} is restricted`);
  const name = path.join('/');
  const file = fileOf(model, name);
  if (!file) return refuse(response, 404, 'EntryNotFound', 'Entry not found');
  const common = { 'x-repo-commit': model.commit, 'accept-ranges': 'bytes' };
  if (isLfs(name, file))
    return void response
      .writeHead(302, {
        ...common,
        'x-linked-size': String(file.content.length),
        'x-linked-etag': `"${sha256(file.content)}"`,
        etag: `"${gitSha1(Buffer.from(sha256(file.content)))}"`,
        location: `${storeAddress}/${encodeURIComponent(`${repo}|${name}`)}?X-Signature=ok`,
      })
      .end('Found. Redirecting');
  response
    .writeHead(307, {
      ...common,
      etag: `"${gitSha1(file.content)}"`,
      location: `/api/resolve-cache/models/${repo}/${model.commit}/${encodeURIComponent(name)}`,
    })
    .end('Temporary Redirect');
}

function tree(response: ServerResponse, model: PeerModel, url: URL): void {
  const entries: unknown[] = Object.keys(model.files).map(path => {
    const file = fileOf(model, path)!;
    const size = file.listedBytes ?? file.content.length;
    const lfs = isLfs(path, file) && { lfs: { oid: sha256(file.content), size, pointerSize: 134 } };
    return { type: 'file', oid: gitSha1(file.content), size, path, ...lfs };
  });
  entries.unshift({ type: 'directory', oid: model.commit, size: 0, path: 'onnx' });
  const from = Number(url.searchParams.get('cursor') ?? 0);
  const next = from + pageSize < entries.length;
  url.searchParams.set('cursor', String(from + pageSize));
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    ...(next && { link: `<${url.href}>; rel="next"` }),
  });
  response.end(JSON.stringify(entries.slice(from, from + pageSize)));
}

function send(request: IncomingMessage, response: ServerResponse, file: PeerFile, lfs: boolean): void {
  const failing = file.fails?.shift();
  if (failing !== undefined) return void response.writeHead(failing).end('no');
  const content = file.sent ?? file.content;
  const asked = /^bytes=(\d+)-(\d+)?$/.exec(request.headers.range ?? '');
  const from = asked && file.range !== 'ignored' ? Number(asked[1]) : 0;
  const etag = lfs ? sha256(file.content) : gitSha1(file.content);
  if (asked && (file.range === 'refused' || from >= content.length))
    return void response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
  const to = asked?.[2] && file.range !== 'ignored' ? Math.min(Number(asked[2]) + 1, content.length) : content.length;
  const part = content.subarray(from, to);
  response.writeHead(asked && file.range !== 'ignored' ? 206 : 200, {
    'content-type': 'application/octet-stream',
    'content-length': String(part.length),
    etag: `"${etag}"`,
    'accept-ranges': 'bytes',
    ...(asked && file.range !== 'ignored' && { 'content-range': `bytes ${from}-${to - 1}/${content.length}` }),
  });
  const cut = file.cuts?.shift();
  if (cut !== undefined) return void response.write(part.subarray(0, cut), () => response.destroy());
  const still = file.standsStill?.shift();
  if (still === 0) return response.flushHeaders();
  if (still !== undefined) return void response.write(part.subarray(0, still));
  if (!file.slowly) return void response.end(part);
  const { bytes, ms } = file.slowly;
  const piece = (at: number): void => {
    if (at >= part.length || response.destroyed) return void response.end();
    response.write(part.subarray(at, at + bytes));
    setTimeout(piece, ms, at + bytes);
  };
  piece(0);
}
