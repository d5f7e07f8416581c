// Creates the folder of a new run: an unused id, the folders of its files, and the sealed and signed manifest. The
// manifest is written last and never changed. A folder without a manifest is not a run.
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { runFiles, runsFolder } from '../../run-data/run-file-names';
import { manifestSchema } from '../../run-data/run-manifest';
import type { Manifest } from '../../run-data/run-manifest';
import { makeFolder, replaceFile, storeError } from '../../node/files';
import { manifestSignature, sha256Of } from '../../node/run-trust';
import { manifestSeal } from './manifest-seal';
import { json, writeSignature } from './run-documents';

const maxSlug = 40;

/** Converts a run's name to a part of the run's id: lower case, words joined by hyphens. */
function slug(name: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  return words.slice(0, maxSlug).replace(/^-+|-+$/g, '') || 'run';
}

/**
 * Returns the id `YYYYMMDD-HHMMSS-<slug>-<4 hex digits>` in UTC. The hex digits are taken from a hash of `hash` and
 * `counter`.
 */
function runId(name: string, created: Date, hash: string, counter: number): string {
  const [day, time] = created.toISOString().split(/[T.]/);
  const digits = createHash('sha256').update(`${hash}${counter}`).digest('hex').slice(0, 4);
  return `${day.replaceAll('-', '')}-${time.replaceAll(':', '')}-${slug(name)}-${digits}`;
}

/**
 * Creates the folder of a new run with its manifest. Also returns the hash of the manifest's bytes. If the creation
 * fails, the folder is removed.
 */
export async function createRunFolder(
  workspace: string,
  about: Omit<Manifest, 'schema' | 'id' | 'created'>,
  created: Date,
): Promise<{ path: string; manifest: Manifest; manifestSha256: string }> {
  const runs = resolve(workspace, runsFolder);
  let path: string | undefined;
  try {
    await makeFolder(runs);
    const id = await claim(runs, counter => runId(about.name, created, about.config_hash, counter));
    path = join(runs, id);
    const unsealed: Manifest = { schema: 1, id, created: created.toISOString(), ...about };
    const manifest: Manifest = { ...unsealed, sha256: manifestSeal(manifestSchema.parse(unsealed)) };
    for (const folder of [runFiles.episodes, runFiles.checkpoints, runFiles.environments])
      await mkdir(join(path, folder));
    const text = json(manifestSchema.parse(manifest));
    const sha256 = sha256Of(Buffer.from(text));
    await writeSignature(join(path, runFiles.signature), () => manifestSignature(id, sha256));
    await replaceFile(join(path, runFiles.manifest), text);
    return { path, manifest, manifestSha256: sha256 };
  } catch (error) {
    if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => undefined);
    throw storeError('make a run folder in', runs, error);
  }
}

/** Creates a folder with an unused name, trying counters from 0 on; returns the name. */
async function claim(runs: string, name: (counter: number) => string): Promise<string> {
  for (let counter = 0; ; counter++) {
    try {
      await mkdir(join(runs, name(counter)));
      return name(counter);
    } catch (error) {
      // For each second and slug there are only 65,536 names. If all of them are taken, the limit of attempts ends the
      // loop.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || counter > 1_000_000) throw error;
    }
  }
}
