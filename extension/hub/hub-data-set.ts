// A hub data set as a folder in the hub cache, with the same subfolders as on the hub. The folder contains the files of
// one format: Parquet, else JSON Lines, else JSON. If the cache contains the data set, the hub is not contacted, so
// that a run always reads the same rows.
import { UserError } from '../common/user-error';
import { HubUnreachable, type HubModel } from './hub-call';
import { HubCache } from './hub-cache';
import { HubClient, type HubFile } from './hub-client';
import { checkRoom, damagedOffline, download, completeOrDiscarded, type FetchOptions } from './hub-model';

/** Parsed address `hf://datasets/organisation/name`, optionally with @revision and a folder after a slash. */
export interface HubDataSet {
  repo: string;
  revision: string;
  /** Folder without leading and trailing slashes; empty for the complete data set. */
  folder: string;
}

const forms = ['.parquet', '.jsonl', '.json'];
const description = /(^|\/)(dataset_infos?|state|dataset_dict)\.json$/;
const name = '[\\w.-]+/[\\w.-]+';
const address = new RegExp(`^hf://datasets/(${name})(?:@(refs/[^/]+/[^/]+|[^/]+))?(?:/(.*))?$`);

/** Parses an address; returns undefined for any other text. */
export function hubDataSet(text: string): HubDataSet | undefined {
  const found = address.exec(text);
  if (!found) return undefined;
  return { repo: found[1], revision: found[2] ?? 'main', folder: (found[3] ?? '').replace(/^\/+|\/+$/g, '') };
}

/**
 * Returns the data set's folder, downloading it if necessary. Throws a UserError if the hub refuses, cannot be reached,
 * or has no usable files. May be called again after a failure.
 */
export async function fetchHubDataSet(set: HubDataSet, options: FetchOptions = {}): Promise<string> {
  const { client = new HubClient() } = options;
  const { repo, revision, folder } = set;
  const model: HubModel = { repo, revision, type: 'dataset' };
  const cache = new HubCache(repo, undefined, 'dataset');
  const partOf = (commit: string) => (folder === '' ? commit : `${commit}-${encodeURIComponent(folder)}`);
  const known = await cache.commitOf(revision);
  const complete = known === null ? null : await cache.complete(partOf(known));
  const damaged = complete && (await cache.damagedFile(complete, options.signal));
  if (complete && !damaged) return complete.folder;
  try {
    if (client.options.offline) throw new HubUnreachable('hub: HF_HUB_OFFLINE is set', 'unset it');
    const { commit, files } = await client.list(damaged ? { ...model, revision: known! } : model, options.signal); // same commit
    const rows = rowFiles(files, folder);
    if (rows.length === 0)
      throw new UserError(
        `hub: the data set ${repo} has no ${forms.join(', ')} files${folder === '' ? '' : ` in ${folder}`} at ${revision}: choose the revision refs/convert/parquet, or another data set`,
      );
    await cache.prepare();
    await cache.keepRevision(revision, commit);
    await completeOrDiscarded(cache, partOf(commit), options.signal);
    await checkRoom(rows, model, cache);
    await download(rows, model, commit, cache, { ...options, client });
    const sources = rows.map(({ etag }) => cache.blob(etag));
    return (await cache.assemble(partOf(commit), rows, sources)).folder;
  } catch (error) {
    if (!(error instanceof HubUnreachable)) throw error;
    if (complete && damaged) throw damagedOffline(complete, damaged, error);
    throw new UserError(
      `${error.what}, and ${cache.root} does not contain the data set ${repo} at ${revision}: go online once to download it, or give the path of a folder with the data set's files`,
      { cause: error },
    );
  }
}

/** Returns the files that contain rows. Uses only the first format in `forms` that the data set has. */
function rowFiles(files: readonly HubFile[], folder: string): HubFile[] {
  const own = files.filter(({ name }) => (folder === '' || name.startsWith(`${folder}/`)) && !description.test(name));
  const form = forms.find(end => own.some(({ name }) => name.endsWith(end)));
  return form === undefined ? [] : own.filter(({ name }) => name.endsWith(form));
}
