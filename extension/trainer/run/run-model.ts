// The folder of a run's model: the folder that `model_path` names, or the cached copy of a hub model, which is
// downloaded if missing. The trainer downloads the model, because the editor or terminal that started the trainer may
// close during the download. The status shows the progress, and stopping the run stops the download.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { modelSource } from '../config/model-path';
import { storedConfig } from './stored-config';
import { installation } from '../../node/installation';
import type { Journal } from './journal';
import { RunStopped } from '../../engine/run-stopped';
import type { RunControl } from './run-control';
import { replaceFile, storeError } from '../../node/files';
import type { HubModel } from '../../hub/hub-call';
import { fetchHubModel, fetchHubTexts, findHubModel } from '../../hub/hub-model';
import type { HubProgress } from '../../hub/hub-model';
import { readRegular } from '../../node/regular-file';
import type { RunFolder } from '../store/run-folder';

/** Minimum milliseconds between status updates for the same file. A new file causes an update immediately. */
const updateMs = 1000;
/** Number of status updates over which the download speed is averaged. */
const speedOver = 10;

/**
 * Returns the absolute path of the model's folder. A hub model is read at the commit in the manifest, so that a resume
 * uses the same weights as the start of the run. If a server holds the weights of a hub model, only the model's other
 * files are downloaded.
 * @throws RunStopped if the run is stopped during the download; downloaded data is kept
 */
export async function runModelFolder(
  folder: RunFolder,
  workspace: string,
  control: RunControl,
  journal: Journal,
): Promise<string> {
  const { model } = folder.manifest;
  const { model_path: path, workbench } = storedConfig(folder);
  const source = modelSource(path, { workspace, modelFolders: [installation.models] });
  if ('folder' in source) return source.folder;
  const hub = { ...source.hub, revision: model.revision ?? source.hub.revision };
  if (workbench.engine !== 'tinker') return fetchedHubModel(hub, path, control, journal);
  const signal = control.stopped;
  try {
    return (await fetchHubTexts(hub, { signal })).folder;
  } catch (error) {
    throw signal.aborted ? new RunStopped() : error;
  }
}

/**
 * Returns the folder of a hub model, which is downloaded if it is not in the cache. The status shows the progress.
 * @param name the model's name in the configuration, for the journal
 * @throws RunStopped if the run is stopped during the download; downloaded data is kept
 */
export async function fetchedHubModel(
  hub: HubModel,
  name: string,
  { stopped: signal }: Pick<RunControl, 'stopped'>,
  journal: Pick<Journal, 'event' | 'update'>,
): Promise<string> {
  try {
    const facts = await findHubModel(hub, { signal });
    if (facts.folder !== null) return facts.folder;
    const fetched = await fetchHubModel(hub, { signal, onProgress: progressReporter(journal) });
    journal.update({ phase: 'idle', download: undefined, eta_s: null });
    const total = fetched.files.reduce((sum, { bytes }) => sum + bytes, 0);
    journal.event('download', `fetched ${name} (${Math.ceil(total / 1e6)} MB) at commit ${fetched.commit}`);
    return fetched.folder;
  } catch (error) {
    throw signal.aborted ? new RunStopped() : error;
  }
}

/**
 * Copies the model's tokenizer.json into the run folder, so that the token ids in the run's episodes can always be
 * decoded.
 */
export async function keepTokenizer(folder: RunFolder, modelFolder: string): Promise<void> {
  const kept = folder.file(runFiles.tokenizer);
  if (existsSync(kept)) return;
  try {
    await replaceFile(kept, [await readRegular(join(modelFolder, runFiles.tokenizer))]);
  } catch (error) {
    throw storeError('write', kept, error);
  }
}

/** Like `runModelFolder`, but downloads nothing. @throws UserError if the hub model is no longer in the cache */
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

/**
 * Returns a function that shows download progress in the status. The remaining time is computed from the average speed
 * of the last updates.
 */
function progressReporter(journal: Pick<Journal, 'update'>): (progress: HubProgress) => void {
  const updates: { at: number; file: string; bytes: number }[] = [];
  return download => {
    const { file, bytes, total } = download;
    const now = { at: performance.now(), file, bytes };
    const last = updates.at(-1);
    if (last?.file === file && now.at - last.at < updateMs) return;
    if (updates.push(now) > speedOver) updates.shift();
    const speed = (bytes - updates[0].bytes) / (now.at - updates[0].at);
    const eta_s = speed > 0 ? Math.round((total - bytes) / speed / 1000) : null;
    journal.update({ phase: 'download', download, eta_s }, bytes / total);
  };
}
