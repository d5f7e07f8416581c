// The seal of a run's manifest: a sha256 of all fields except name, tags and the seal. Checkpoints contain a copy of
// the seal, so a damaged manifest or a checkpoint of another run is detected before training. The seal also covers
// fields that are unknown to this version. The seal stays valid if the folder is moved or copied.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { readRunFileSync } from '../../node/read-run-file';
import { runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { canonicalJson, configHash } from '../config/config-hash';
import { storeError } from '../../node/files';

/** The run that a checkpoint belongs to. */
export interface RunSeal {
  /** The id in the run's manifest. */
  id: string;
  /** The seal of the run's manifest (`manifestSeal`). */
  manifest: string;
}

/** Returns the sha256 (hex) of a manifest without its name, its tags and the seal. */
export function manifestSeal(manifest: Readonly<Record<string, unknown>>): string {
  const { name: _name, tags: _tags, sha256: _seal, ...rest } = manifest;
  return createHash('sha256').update(canonicalJson(rest)).digest('hex');
}

/**
 * Reads the manifest of a run folder; compares its configuration with `config_hash`, and all sealed fields with the
 * seal. `sealed` is false for a manifest of an older version, which has no seal.
 * @throws UserError that names the difference
 */
export function verifiedSeal(runFolder: string): RunSeal & { sealed: boolean } {
  const file = join(runFolder, runFiles.manifest);
  let manifest: Record<string, unknown>;
  try {
    manifest = JSON.parse(readRunFileSync(runFolder, runFiles.manifest).toString('utf8')) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) throw damaged(file, 'is not JSON');
    throw storeError('read', file, error);
  }
  const { config, config_hash, sha256, id } = manifest;
  const hash = configHash(config);
  if (typeof config_hash === 'string' && config_hash !== '' && config_hash !== hash)
    throw damaged(
      file,
      `has a config whose hash is ${hash.slice(0, 12)}…, but config_hash is ${config_hash.slice(0, 12)}…`,
    );
  const seal = manifestSeal(manifest);
  if (sha256 !== undefined && sha256 !== seal) throw damaged(file, 'does not match its checksum (sha256)');
  return { id: String(id), manifest: seal, sealed: sha256 !== undefined };
}

const damaged = (file: string, how: string): UserError =>
  new UserError(
    `store: ${file} ${how}: restore it from a copy, or start a new run from a checkpoint with trainer.resume_mode=resume_path`,
  );
