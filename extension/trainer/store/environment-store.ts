// The environment code of a run folder, `environments/<version>/`: bundle, sources, signature and line coverage. The
// code is signed when it is stored, so that later sessions may execute it (node/run-trust.ts).
import { dirname } from 'node:path';
import { environmentFile, environmentFiles, isVersionName } from '../../run-data/run-file-names';
import { keptEnvironmentSchema } from '../../run-data/environment-snapshot';
import type { CoverageLine, KeptEnvironment } from '../../run-data/environment-snapshot';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { UserError } from '../../common/user-error';
import { fileSystem, makeFolder, replaceFile } from '../../node/files';
import { hasRunFile } from '../../node/read-run-file';
import { environmentSignature, readKeptCode, sha256Of, signedTags } from '../../node/run-trust';
import type { ReadCode } from '../../node/run-trust';
import { bytesIn, json, readJson, writeSignature } from './run-documents';
import type { RunFolder } from './run-folder';
import { sourceSnapshots } from './source-snapshots';

/** Number of newest steps for which coverage is stored, per environment version. */
const coveredSteps = 100;

/**
 * Stores and signs the bundle and the sources of an environment version. Comments in the sources do not affect the
 * version. If a version is stored again with other comments, the new sources replace the old ones.
 */
export async function keepEnvironment(
  folder: RunFolder,
  { tag, version, name, source, bundle }: LoadedEnvironment,
): Promise<void> {
  if (!isVersionName(version))
    throw new UserError(`store: ${version} is not an environment version: give the sha256 of a version`);
  const file = (part: string) => folder.file(environmentFile(version, part));
  const sign = (tags: string[], about: string) =>
    writeSignature(file(environmentFiles.signature), () =>
      environmentSignature(folder.id, { version, tags, bundle: sha256Of(Buffer.from(bundle)), about }),
    );
  const kept = readKeptCode(folder.path, folder.id, { version, tag });
  const signed =
    kept && signedTags(folder.path, folder.id, { version, bundle: kept.bundle.sha256, about: kept.about.sha256 });
  const tags = [...new Set([...(signed ?? []), tag])];
  if (kept && signed && kept.bundle.bytes.equals(Buffer.from(bundle)))
    return signed.includes(tag) ? undefined : sign(tags, kept.about.sha256);
  const { root, sources } = sourceSnapshots(source, bundle);
  const about = { version, name, kept: new Date().toISOString(), root, entry: sources[0].name };
  const texts = sources.map(({ name, text }) => ({ path: file(`${environmentFiles.sources}/${name}`), text }));
  const written = json({ ...about, sources: sources.map(({ name }) => name) });
  // The bundle is written last, so if the bundle exists, the other files are complete.
  const files = [
    ...texts,
    { path: file(environmentFiles.about), text: written },
    { path: file(environmentFiles.bundle), text: bundle },
  ];
  for (const { path, text } of files) {
    await makeFolder(dirname(path), fileSystem, folder.path);
    await replaceFile(path, text);
  }
  await sign(tags, sha256Of(Buffer.from(written)));
}

/**
 * Returns the stored code of an environment version with its signature state, which must be checked before the code is
 * executed. Returns undefined if the run has no code of this version.
 */
export function keptCode(
  folder: RunFolder,
  version: string,
  tag: string,
): { bundle: ReadCode; about: ReadCode } | undefined {
  return readKeptCode(folder.path, folder.id, { version, tag });
}

/** Returns the bundle's path and the description of a stored environment version; undefined if none is stored. */
export function keptEnvironment(
  folder: RunFolder,
  version: string,
): { bundle: string; about: KeptEnvironment } | undefined {
  if (!isVersionName(version)) return undefined;
  const [bundle, about] = [environmentFiles.bundle, environmentFiles.about].map(part => environmentFile(version, part));
  return hasRunFile(folder.path, bundle) && hasRunFile(folder.path, about)
    ? { bundle: folder.file(bundle), about: readJson(folder.path, about, keptEnvironmentSchema) }
    : undefined;
}

/** Appends a line to the coverage of an environment version. Only the lines of the newest 100 steps are kept. */
export async function noteCoverage(folder: RunFolder, version: string, line: CoverageLine): Promise<void> {
  const file = environmentFile(version, environmentFiles.coverage);
  const known = hasRunFile(folder.path, file)
    ? bytesIn(folder.path, file).toString('utf8').split('\n').slice(0, -1)
    : [];
  const newest = [...known.slice(1 - coveredSteps), JSON.stringify(line)];
  await replaceFile(folder.file(file), `${newest.join('\n')}\n`);
}
