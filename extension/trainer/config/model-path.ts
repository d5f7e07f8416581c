// Where `model_path` leads: a bare name is a model that comes along (media/models/<name>), a path is a folder, and
// `organisation/name`, where no such folder is in sight, a model of the Hugging Face hub, at a revision with `@revision`. The
// configuration keeps what was written, so that its hash does not depend on the machine.
import { statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { HubModel } from '../store/hub-call';
import { ConfigError, shown } from './config-error';

/** A folder with a config.json, by its absolute path, or a model of the hub, which may have to be fetched. */
export type ModelSource = { folder: string } | { hub: HubModel };

/** The hub's own rule for names; a revision is a branch, a tag or a commit. */
const hubId = /^(?<repo>[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?:@(?<revision>[\w.][\w./-]*))?$/;

/** Undefined for what is not there or cannot be looked at, such as a link to itself. */
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
 * The model that `modelPath` names. Looks, in this order, at the path itself (from the workspace where it is relative), for a bare
 * name in `modelFolders`, and then takes `organisation/name` for a model of the hub, unless the workspace has a folder
 * `organisation`: then it is a path gone wrong, and nothing is asked of the network. Throws a ConfigError where it can be none of these,
 * which names what was `asked`: the key, unless a command's option took its place.
 */
export function modelSource(
  modelPath: string,
  where: { workspace: string; modelFolders: readonly string[]; asked?: string },
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
  const ofHub = id ? `${modelPath}@main for the hub's model of that name` : 'organisation/name of a model of the hub';
  const message = `${where.asked ?? 'config: model_path'} is ${shown(modelPath)}, but none of ${candidates.join(', ')} has a config.json: give a folder with config.json, tokenizer.json and *.safetensors, the name ragen-tiny, or ${ofHub}`;
  throw new ConfigError([{ key: 'model_path', message }]);
}
