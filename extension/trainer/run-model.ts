// The folder of a run's model: the one that `model_path` names, or, for a model of the hub, its place in the cache, fetched first where
// need be. The trainer fetches, and not whoever starts it, so that an editor or terminal may go away meanwhile, sees how far it
// is in the status, and can stop it as it stops a run.
import { modelSource } from './config/model-path';
import { runConfigSchema } from './config/schema';
import { installation } from './installation';
import type { Journal } from './journal';
import type { RunControl } from './run-control';
import { RunStopped } from './run-control';
import { findHubModel, fetchHubModel } from './store/hub-model';
import type { RunFolder } from './store/run-folder';

/** The status is told and written so often. */
const tellMs = 1000;

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
  const { config, model } = folder.manifest;
  const path = runConfigSchema.parse(config).model_path;
  const source = modelSource(path, { workspace, modelFolders: [installation.models] });
  if ('folder' in source) return source.folder;
  const hub = { ...source.hub, revision: model.revision ?? source.hub.revision };
  const signal = control.stopped;
  try {
    const facts = await findHubModel(hub, { signal });
    if (facts.folder !== null) return facts.folder;
    const started = performance.now();
    let first: number | undefined;
    let told = -Infinity;
    const fetched = await fetchHubModel(hub, {
      signal,
      onProgress: ({ file, bytes, total }) => {
        const now = performance.now();
        if (now - told < tellMs) return;
        told = now;
        first ??= bytes;
        const speed = (bytes - first) / (now - started);
        journal.update(
          {
            phase: 'download',
            download: { file, bytes, total },
            eta_s: speed > 0 ? Math.round((total - bytes) / speed / 1000) : null,
          },
          bytes / total,
        );
      },
    });
    journal.update({ phase: 'idle', download: undefined, eta_s: null });
    const total = fetched.files.reduce((sum, { bytes }) => sum + bytes, 0);
    journal.event('download', `fetched ${path} (${Math.ceil(total / 1e6)} MB) at commit ${fetched.commit}`);
    return fetched.folder;
  } catch (error) {
    throw signal.aborted ? new RunStopped() : error;
  }
}
