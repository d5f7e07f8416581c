// Decides which files of a run folder may be executed. Run folders are untrusted. A file may be executed only if this
// user's trainer has signed it, or if the user has accepted a file with exactly the same bytes. A signature is an
// HMAC-SHA256 with the key in the user's storage. A signature includes the run id, which is the name of the run folder.
// The signature is therefore invalid in any other folder. The run's `signature.json` covers the manifest; the
// `signature.json` of a saved environment covers the environment's files, version and tags. Callers read a file once,
// check the bytes here, and use the checked bytes. Must not import `vscode`: shared by editor, terminal and trainer.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { jsonOrNothing } from '../common/json';
import { environmentFile, environmentFiles, isVersionName, runFiles } from '../run-data/run-file-names';
import { acceptedFiles, signingKey, signingKeyOrNew, type AcceptedFile } from './user-storage';

/** Maximum bytes of a file that is executed or that determines which code is executed. */
const largest = 64 * 2 ** 20;

const signatureSchema = z.object({
  schema: z.literal(1),
  hmac: z.string().regex(/^[0-9a-f]{64}$/),
  tags: z
    .array(z.string())
    .optional()
    .describe('tags that use the environment, if the file is the code of a saved environment'),
});

/** A file of a run folder that is executed or that determines which code is executed. */
export interface RunCode {
  /** Path relative to the run folder, with forward slashes. */
  file: string;
  sha256: string;
  /** Whether this user's trainer signed the file for this run. */
  signed: boolean;
}

/** A file of a run folder with its content. */
export interface ReadCode extends RunCode {
  bytes: Buffer;
}

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Returns the content of `signature.json` for a run's manifest. @throws UserError if the user's key cannot be created
 */
export const manifestSignature = (run: string, sha256: string): string =>
  document({ hmac: manifestHmac(signingKeyOrNew(), run, sha256) });

/**
 * Returns the content of `signature.json` for a saved environment, whose files are given by their SHA-256.
 * @throws UserError if the user's key cannot be created
 */
export const environmentSignature = (run: string, kept: KeptCode): string =>
  document({ tags: kept.tags, hmac: environmentHmac(signingKeyOrNew(), run, kept) });

/** Content that the signature of a saved environment covers. */
export interface KeptCode {
  version: string;
  tags: string[];
  /** `bundle` is the SHA-256 of `environment.js`, and `about` is the SHA-256 of `version.json`. */
  bundle: string;
  about: string;
}

/** Returns the tags for which a saved environment is signed; undefined if it is not signed. */
export function signedTags(folder: string, run: string, kept: Omit<KeptCode, 'tags'>): string[] | undefined {
  const signature = readSignature(folder, environmentFile(kept.version, environmentFiles.signature));
  const key = signingKey();
  if (!signature?.tags || !key) return undefined;
  const { tags } = signature;
  return isEqual(signature.hmac, environmentHmac(key, run, { ...kept, tags })) ? tags : undefined;
}

/** Whether a run's manifest in `folder` is signed; `sha256` is the SHA-256 of the manifest's bytes. */
export function isManifestSigned(folder: string, run: string, sha256: string): boolean {
  const signature = readSignature(folder, runFiles.signature);
  const key = signingKey();
  return signature !== undefined && key !== undefined && isEqual(signature.hmac, manifestHmac(key, run, sha256));
}

/** Reads a run's manifest. Returns undefined if the manifest cannot be read. */
export function readManifestCode(folder: string, run: string): ReadCode | undefined {
  const bytes = readRegular(join(folder, runFiles.manifest));
  if (!bytes) return undefined;
  const sha256 = sha256Of(bytes);
  return { file: runFiles.manifest, bytes, sha256, signed: isManifestSigned(folder, run, sha256) };
}

/**
 * Reads the saved code and `version.json` of an environment version, and checks whether both are signed for `tag`.
 * Returns undefined if the run does not have these files.
 */
export function readKeptCode(
  folder: string,
  run: string,
  { version, tag }: { version: string; tag: string },
): { bundle: ReadCode; about: ReadCode } | undefined {
  if (!isVersionName(version)) return undefined;
  const names = {
    bundle: environmentFile(version, environmentFiles.bundle),
    about: environmentFile(version, environmentFiles.about),
  };
  const [bundle, about] = [names.bundle, names.about].map(name => readRegular(join(folder, name)));
  if (!bundle || !about) return undefined;
  const sums = { bundle: sha256Of(bundle), about: sha256Of(about) };
  const signed = signedTags(folder, run, { version, ...sums })?.includes(tag) ?? false;
  return {
    bundle: { file: names.bundle, bytes: bundle, sha256: sums.bundle, signed },
    about: { file: names.about, bytes: about, sha256: sums.about, signed },
  };
}

/**
 * Returns the files that are neither signed nor accepted.
 * @param once SHA-256 of files that the user has accepted for this call only
 */
export function untrusted<Code extends RunCode>(
  run: string,
  files: readonly Code[],
  once: readonly string[] = [],
): Code[] {
  const open = files.filter(({ signed, sha256 }) => !signed && !once.includes(sha256));
  if (open.length === 0) return [];
  const accepted = acceptedFiles();
  const isAccepted = ({ file, sha256 }: RunCode): boolean =>
    accepted.some((each: AcceptedFile) => each.run === run && each.file === file && each.sha256 === sha256);
  return open.filter(code => !isAccepted(code));
}

/**
 * Returns the HMAC of a JSON array. The array starts with a type, so that a signature is valid only for content of the
 * same type.
 */
const manifestHmac = (key: Buffer, run: string, sha256: string): string =>
  hmacOf(key, ['ragen-workbench', 'manifest', run, sha256]);

const environmentHmac = (key: Buffer, run: string, { version, tags, bundle, about }: KeptCode): string =>
  hmacOf(key, ['ragen-workbench', 'environment', run, version, tags, bundle, about]);

const hmacOf = (key: Buffer, content: unknown): string =>
  createHmac('sha256', key).update(JSON.stringify(content)).digest('hex');

const isEqual = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'));

const document = (signature: Omit<z.infer<typeof signatureSchema>, 'schema'>): string =>
  `${JSON.stringify({ schema: 1, ...signature })}\n`;

function readSignature(folder: string, name: string): z.infer<typeof signatureSchema> | undefined {
  const bytes = readRegular(join(folder, name));
  return bytes && signatureSchema.safeParse(jsonOrNothing(bytes.toString('utf8'))).data;
}

/** Returns the bytes of a regular file that is not a link; undefined if it is missing or too large. */
function readRegular(path: string): Buffer | undefined {
  let file: number;
  try {
    // If a pipe has replaced the file, opening does not block, and the check below refuses it. Windows lacks these
    // flags and such pipes.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch {
    return undefined;
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile() || found.size > largest) return undefined;
    const bytes = Buffer.alloc(found.size);
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(file, bytes, length, bytes.length - length, length);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  } catch {
    return undefined;
  } finally {
    closeSync(file);
  }
}
