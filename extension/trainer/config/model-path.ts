// Resolves `model_path`. A bare name is a bundled model (media/models/<name>); a path is a folder. `organisation/name`,
// with an optional `@revision`, is a model of the Hugging Face hub if no folder has this path. The configuration stores
// the text as written, so its hash does not depend on the machine.
import { statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { HubModel } from '../../hub/hub-call';
import { ConfigError, shown } from './config-error';

/** A folder with a config.json (absolute path), or a hub model, which may not be downloaded yet. */
export type ModelSource = { folder: string } | { hub: HubModel };

/** Matches model names that the hub permits, with an optional revision: a branch, a tag or a commit. */
const hubId = /^(?<repo>[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?:@(?<revision>[\w.][\w./-]*))?$/;

/** Returns undefined if the path does not exist or cannot be read, for example because it is a link to itself. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
const isModel = (folder: string): boolean => statOf(join(folder, 'config.json'))?.isFile() ?? false;
const isFolder = (path: string): boolean => statOf(path)?.isDirectory() ?? false;

/**
 * Resolves `modelPath`. Tries in order: the path itself (relative to the workspace), a bare name in `modelFolders`,
 * then `organisation/name` as a hub model. If the workspace has a folder `organisation`, a name without a revision is
 * treated as a mistyped path, and no network request is made.
 * @param where.asked source of the path in error messages: the key `model_path` by default, or a command-line option
 * @param where.key configuration key of the error; `model_path` by default
 * @throws ConfigError if none of these is found
 */
export function modelSource(
  modelPath: string,
  where: { workspace: string; modelFolders: readonly string[]; asked?: string; key?: string },
): ModelSource {
  const bare = /^[\w.-]+$/.test(modelPath);
  const candidates = [
    isAbsolute(modelPath) ? modelPath : resolve(where.workspace, modelPath),
    ...(bare ? where.modelFolders.map(folder => join(resolve(folder), modelPath)) : []),
  ];
  const found = candidates.find(isModel);
  if (found !== undefined) return { folder: found };
  const id = modelPath.includes('..') ? undefined : hubId.exec(modelPath)?.groups;
  const pathGoneWrong = id?.revision === undefined && isFolder(resolve(where.workspace, modelPath.split('/')[0]));
  if (id && !pathGoneWrong) return { hub: { repo: id.repo, revision: id.revision ?? 'main' } };
  const ofHub = id
    ? `${modelPath}@main for the Hugging Face model of that name`
    : 'the organisation/name of a Hugging Face model';
  const message = `${where.asked ?? 'config: model_path'} is ${shown(modelPath)}, but there is no config.json in ${candidates.join(' or ')}: give a folder (with config.json, tokenizer.json and *.safetensors), the name of a bundled model (ragen-tiny, ragen-small or ragen-tiny-vision), or ${ofHub}`;
  throw new ConfigError([{ key: where.key ?? 'model_path', message }]);
}
