// Where `model_path` leads: a bare name is a model that comes along (media/models/<name>), anything else a folder. The
// configuration keeps what was written, so that its hash does not depend on the machine.
import { statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { ConfigError, shown } from './config-error';

const isModel = (folder: string): boolean =>
  statSync(join(folder, 'config.json'), { throwIfNoEntry: false })?.isFile() ?? false;

/**
 * Absolute path of the model's folder (one with a config.json). Looks, in this order, at the path itself (from the workspace
 * where it is relative) and, for a bare name, in `modelFolders`. Throws a ConfigError where there is none, which names what was
 * `asked`: the key, unless a command's option took its place.
 */
export function resolveModelPath(
  modelPath: string,
  where: { workspace: string; modelFolders: readonly string[]; asked?: string },
): string {
  const bare = /^[\w.-]+$/.test(modelPath);
  const candidates = [
    isAbsolute(modelPath) ? modelPath : resolve(where.workspace, modelPath),
    ...(bare ? where.modelFolders.map(folder => join(resolve(folder), modelPath)) : []),
  ];
  const found = candidates.find(isModel);
  if (found !== undefined) return found;
  const message = `${where.asked ?? 'config: model_path'} is ${shown(modelPath)}, but none of ${candidates.join(', ')} has a config.json: give a folder with config.json, tokenizer.json and *.safetensors, or the name ragen-tiny`;
  throw new ConfigError([{ key: 'model_path', message }]);
}
