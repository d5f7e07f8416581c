// A hub model as a folder on disk. If the cache contains a complete copy of the model, the hub is not contacted.
// Otherwise the model is downloaded, and its folder is created only when all files are complete and verified. Only
// files that the trainer reads are downloaded: configuration, tokenizer, and the safetensors weights of the model or
// adapter.
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../common/user-error';
import type { FileSystem } from '../node/files';
import { HubCache } from './hub-cache';
import type { CachedModel } from './hub-cache';
import { HubUnreachable } from './hub-call';
import type { HubModel } from './hub-call';
import { HubClient } from './hub-client';
import type { HubFile } from './hub-client';
import { downloadFile } from './hub-download';
import { readRegular } from '../node/regular-file';

const small = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
];
const index = 'model.safetensors.index.json';
const single = 'model.safetensors';
const adapter = ['adapter_config.json', 'adapter_model.safetensors'];

/** Properties of a model that are known before its weights are downloaded. */
export interface HubModelFacts {
  repo: string;
  /** Commit of the revision, 40 hex digits. */
  commit: string;
  /** Files of the model that the trainer reads. */
  files: HubFile[];
  /** Path of the model's folder if it is complete, else null. */
  folder: string | null;
}

export interface HubProgress {
  /** Name of the file that is being downloaded. */
  file: string;
  /** Bytes on disk and total bytes, each summed over all files. */
  bytes: number;
  total: number;
}

export interface FetchOptions {
  onProgress?: (progress: HubProgress) => void;
  /** Aborts the download; partial content is kept. */
  signal?: AbortSignal;
  client?: HubClient;
  /** File system that contents are written to; replaced in tests. */
  fs?: FileSystem;
}

/**
 * Finds a model in the cache. If the cache does not contain the model, finds it on the hub. When the call returns, all
 * files of the model except the weights are in the cache. Throws a UserError if the hub refuses, cannot be reached, or
 * has no such model.
 */
export async function findHubModel(model: HubModel, options: FetchOptions = {}): Promise<HubModelFacts> {
  const { client = new HubClient() } = options;
  const { repo, revision } = model;
  const cache = new HubCache(repo);
  const known = await cache.commitOf(revision);
  const complete = known === null ? null : await cache.complete(known);
  const damaged = complete && (await cache.damagedFile(complete, options.signal));
  if (complete && !damaged) return { repo, ...complete };
  try {
    if (client.options.offline) throw new HubUnreachable('hub: HF_HUB_OFFLINE is set', 'unset it');
    const { commit, files } = await client.list(damaged ? { ...model, revision: known! } : model, options.signal); // same commit
    await cache.prepare();
    await cache.keepRevision(revision, commit);
    const again = await completeOrDiscarded(cache, commit, options.signal); // fetched under another revision's name, or damaged
    if (again) return { repo, ...again };
    const light = files.filter(({ name }) => small.includes(name) || name === index || name === adapter[0]);
    await download(light, model, commit, cache, { ...options, client });
    const names = await modelFiles(model, files, index => readText(cache.blob(index.etag)));
    const own = files.filter(({ name }) => names.has(name));
    const [rest, weights] = [own.filter(file => !isWeights(file)), own.filter(isWeights)];
    return { repo, commit, files: [...rest, ...weights], folder: null }; // in download order
  } catch (error) {
    if (!(error instanceof HubUnreachable)) throw error;
    if (complete && damaged) throw damagedOffline(complete, damaged, error);
    const found = await fetchedByOthers(model, cache);
    const broken = found && (await cache.damagedFile(found, options.signal));
    if (found && broken) throw damagedOffline(found, broken, error);
    if (found) return { repo, ...found };
    throw new UserError(
      `${error.what}, and ${cache.root} does not contain ${repo} at ${revision}: go online once to download it, or give the path of a model folder`,
      { cause: error },
    );
  }
}

/** Returns the model folder of a commit if it is complete and undamaged; removes a damaged folder. */
export async function completeOrDiscarded(
  cache: HubCache,
  commit: string,
  signal?: AbortSignal,
): Promise<CachedModel | null> {
  for (;;) {
    const complete = await cache.complete(commit);
    const damaged = complete && (await cache.damagedFile(complete, signal));
    if (!complete || !damaged) return complete;
    await cache.discard(complete, damaged);
  }
}

/**
 * Returns the error for a cached file that is damaged and cannot be downloaded again, because the hub cannot be
 * reached.
 */
export const damagedOffline = ({ folder }: CachedModel, { name, etag }: HubFile, error: HubUnreachable): UserError =>
  new UserError(
    `hub: ${join(folder, name)} is damaged (its hash is not ${etag}), and it cannot be downloaded again now (${error.what}): go online once, or replace the content of ${folder} with undamaged files`,
    { cause: error },
  );

/**
 * Returns the model's folder, downloading the model if necessary. Throws the errors of `findHubModel`; also throws if
 * the disk is full. May be called again after a failure.
 */
export async function fetchHubModel(model: HubModel, options: FetchOptions = {}): Promise<CachedModel> {
  const { client = new HubClient(), signal } = options;
  const { folder, commit, files } = await findHubModel(model, { client, signal, fs: options.fs });
  const cache = new HubCache(model.repo);
  if (folder !== null) return { folder, commit, files };
  await checkRoom(files, model, cache);
  await download(files, model, commit, cache, { ...options, client });
  return cache.assemble(
    commit,
    files,
    files.map(({ etag }) => cache.blob(etag)),
  );
}

/**
 * Returns a folder with the model's configuration and tokenizer, for a model whose weights are elsewhere. Downloads
 * these files if necessary, and never the weights. Throws like `findHubModel`.
 */
export async function fetchHubTexts(model: HubModel, options: FetchOptions = {}): Promise<CachedModel> {
  const cache = new HubCache(model.repo);
  const known = await cache.commitOf(model.revision);
  const kept = known === null ? null : await completeOrDiscarded(cache, textsOf(known), options.signal);
  if (kept) return { ...kept, commit: known! };
  const { folder, commit, files } = await findHubModel(model, options);
  if (folder !== null) return { folder, commit, files };
  const texts = files.filter(file => !isWeights(file));
  const made = await cache.assemble(
    textsOf(commit),
    texts,
    texts.map(({ etag }) => cache.blob(etag)),
  );
  return { ...made, commit };
}

/** Returns the name of the folder in the cache that contains all files of a commit except the weights. */
const textsOf = (commit: string): string => `${commit}-texts`;

/** Calls `work` with a folder that contains the model's files except its weights. */
export function withSmallFiles<T>(facts: HubModelFacts, work: (folder: string) => Promise<T>): Promise<T> {
  const files = facts.files.filter(file => !isWeights(file));
  return new HubCache(facts.repo).withFiles(files, work);
}

const readText = async (file: string): Promise<string> => (await readRegular(file)).toString('utf8');

const isWeights = ({ name }: HubFile): boolean => name.endsWith('.safetensors');

/** Downloads the missing files into the cache. Throws like `downloadFile`. */
export async function download(
  files: readonly HubFile[],
  model: HubModel,
  commit: string,
  cache: HubCache,
  { client, onProgress, signal, fs }: FetchOptions & { client: HubClient },
): Promise<void> {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = 0;
  for (const file of files) {
    const onBytes = (here: number): void => onProgress?.({ file: file.name, bytes: done + here, total });
    await downloadFile(file, { client, cache, model, commit, onBytes, signal, fs });
    done += file.bytes;
  }
}

/** Returns the names of the model's files. Throws a UserError if the repository has no usable files. */
async function modelFiles(
  { repo }: HubModel,
  files: readonly HubFile[],
  read: (index: HubFile) => Promise<string>,
): Promise<Set<string>> {
  const names = new Set(files.map(({ name }) => name));
  const present = small.filter(name => names.has(name));
  if (!names.has('config.json')) {
    if (adapter.every(name => names.has(name))) return new Set([...present, ...adapter]);
    throw new UserError(
      `hub: ${repo} has no config.json, so it is not a model in Hugging Face format: choose another repository`,
    );
  }
  if (names.has(single)) return new Set([...present, single]);
  const indexFile = files.find(({ name }) => name === index);
  if (!indexFile)
    throw new UserError(
      `hub: ${repo} has no weights in safetensors format (neither ${single} nor ${index}): choose a repository with such weights, or convert the weights`,
    );
  const shards = shardsIn(await read(indexFile));
  const missing = shards?.find(name => !names.has(name));
  if (!shards || missing !== undefined)
    throw new UserError(
      `hub: ${index} of ${repo} ${shards ? `names ${missing}, which is missing` : 'is not an index of shards'}: choose another revision`,
    );
  return new Set([...present, index, ...shards]);
}

function shardsIn(text: string): string[] | null {
  try {
    const { weight_map: map } = JSON.parse(text) as { weight_map?: unknown };
    if (typeof map !== 'object' || map === null) return null;
    const shards = [...new Set(Object.values(map) as unknown[])];
    return shards.every(name => typeof name === 'string') ? shards : null;
  } catch {
    return null;
  }
}

/**
 * Returns the folder of a model that Hugging Face's own tools have downloaded completely into the cache; null if the
 * cache contains no such folder. Needs no network access.
 */
async function fetchedByOthers(model: HubModel, cache: HubCache): Promise<CachedModel | null> {
  const snapshot = await cache.otherSnapshot(model.revision);
  if (!snapshot) return null;
  const { commit, folder, files, sources } = snapshot;
  const sourceOf = (file: HubFile): string => sources[files.indexOf(file)];
  try {
    const names = await modelFiles(model, files, index => readText(sourceOf(index)));
    if (!names.has('tokenizer.json') && !names.has(adapter[0])) return null;
    const chosen = files.filter(({ name }) => names.has(name));
    // If the cache is read-only, the folder that the other tool created is used directly.
    return await cache.assemble(commit, chosen, chosen.map(sourceOf)).catch(() => ({ folder, commit, files: chosen }));
  } catch {
    return null; // the other tool downloaded only some of the files
  }
}

/** Throws if the disk has too little free space for the missing files. */
export async function checkRoom(files: readonly HubFile[], { repo }: HubModel, cache: HubCache): Promise<void> {
  const absent = await Promise.all(files.map(async file => ((await cache.hasBlob(file)) ? 0 : file.bytes)));
  const needed = absent.reduce((sum, bytes) => sum + bytes, 0) - (await cache.partials.bytes(files));
  const { bavail, bsize } = await statfs(cache.root);
  if (needed > bavail * bsize)
    throw new UserError(
      `hub: ${repo} needs ${gigabytes(needed)} more on the disk of ${cache.root}, which has ${gigabytes(bavail * bsize)} free: free space, or set HF_HOME to a folder of another disk`,
    );
}

const gigabytes = (bytes: number): string =>
  bytes < 1e9 ? `${Math.ceil(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
