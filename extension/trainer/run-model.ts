// The folder of a run's model: the one that `model_path` names, or, for a model of the hub, its place in the cache, fetched first where
// need be. The trainer fetches, and not whoever starts it, so that an editor or terminal may go away meanwhile, sees how far it
// is in the status, and can stop it as it stops a run.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runFiles } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { modelSource } from './config/model-path';
import { storedConfig } from './stored-config';
import { installation } from './installation';
import type { Journal } from './journal';
import { RunStopped } from './engine/run-stopped';
import type { RunControl } from './run-control';
import { replaceFile, storeError } from './store/files';
import { findHubModel, fetchHubModel } from './store/hub-model';
import type { HubProgress } from './store/hub-model';
import { readRegular } from './store/regular-file';
import type { RunFolder } from './store/run-folder';

/** The status is told and written so often, and at each file. */
const tellMs = 1000;
/** Tells over which the speed is taken. */
const speedOver = 10;

/**
 * Absolute path of the model's folder. A model of the hub is taken at the commit that the manifest names, so that a resume has
 * the weights of the start.
 * @throws RunStopped when the run is asked to stop meanwhile; what came so far is kept
 */
export async function runModelFolder(
  folder: RunFolder,
  workspace: string,
  control: RunControl,
  journal: Journal,
): Promise<string> {
  const { model } = folder.manifest;
  const path = storedConfig(folder).model_path;
  const source = modelSource(path, { workspace, modelFolders: [installation.models] });
  if ('folder' in source) return source.folder;
  const hub = { ...source.hub, revision: model.revision ?? source.hub.revision };
  const signal = control.stopped;
  try {
    const facts = await findHubModel(hub, { signal });
    if (facts.folder !== null) return facts.folder;
    const fetched = await fetchHubModel(hub, { signal, onProgress: teller(journal) });
    journal.update({ phase: 'idle', download: undefined, eta_s: null });
    const total = fetched.files.reduce((sum, { bytes }) => sum + bytes, 0);
    journal.event('download', `fetched ${path} (${Math.ceil(total / 1e6)} MB) at commit ${fetched.commit}`);
    return fetched.folder;
  } catch (error) {
    throw signal.aborted ? new RunStopped() : error;
  }
}

/** Leaves the model's tokenizer.json in the run folder, where the ids of its episodes can be read from then on. */
export async function keepTokenizer(folder: RunFolder, modelFolder: string): Promise<void> {
  const kept = folder.file(runFiles.tokenizer);
  if (existsSync(kept)) return;
  try {
    await replaceFile(kept, [await readRegular(join(modelFolder, runFiles.tokenizer))]);
  } catch (error) {
    throw storeError('write', kept, error);
  }
}

/** As `runModelFolder`, of a model that is here; nothing is fetched. Throws a UserError where it is gone. */
export async function presentModelFolder(folder: RunFolder, workspace: string): Promise<string> {
  const { model } = folder.manifest;
  const path = storedConfig(folder).model_path;
  const source = modelSource(path, { workspace, modelFolders: [installation.models] });
  if ('folder' in source) return source.folder;
  const found = await findHubModel({ ...source.hub, revision: model.revision ?? source.hub.revision });
  if (found.folder !== null) return found.folder;
  throw new UserError(
    `${path} is no longer in the cache: fetch it with ragen generate --model ${path}, or resume the run`,
  );
}

/** Shows progress in the status, with the time left at the speed of the last seconds. */
function teller(journal: Journal): (progress: HubProgress) => void {
  const told: { at: number; file: string; bytes: number }[] = [];
  return download => {
    const { file, bytes, total } = download;
    const now = { at: performance.now(), file, bytes };
    const last = told.at(-1);
    if (last?.file === file && now.at - last.at < tellMs) return;
    if (told.push(now) > speedOver) told.shift();
    const speed = (bytes - told[0].bytes) / (now.at - told[0].at);
    const eta_s = speed > 0 ? Math.round((total - bytes) / speed / 1000) : null;
    journal.update({ phase: 'download', download, eta_s }, bytes / total);
  };
}
