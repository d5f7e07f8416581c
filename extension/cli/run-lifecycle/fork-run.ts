// Forks of runs: a new run that starts from a checkpoint of another run, its parent. The parent stays unchanged. The
// fork has the configuration that was in effect at the checkpoint, and its manifest names the parent and the step.
import { relative } from 'node:path';
import { configInEffect, valueAt } from '../../run-data/changeable-settings';
import { runFiles } from '../../run-data/run-file-names';
import type { Manifest } from '../../run-data/run-manifest';
import { UserError } from '../../common/user-error';
import { configHash } from '../../trainer/config/config-hash';
import { checkpointFor } from '../../trainer/run/run-checkpoint';
import { readableEvents } from '../../trainer/run/stored-config';
import type { StoredCheckpoint } from '../../trainer/store/checkpoint';
import type { RunFolder } from '../../trainer/store/run-folder';

/**
 * Returns the configuration and the parent of a fork of `folder`, for `start`. `checkpoint` is the name of the
 * checkpoint; by default, the newest is used.
 * @throws UserError if the run has no such checkpoint, or if the checkpoint is damaged
 */
export async function forkOf(
  folder: RunFolder,
  workspace: string,
  checkpoint: string | undefined,
): Promise<{ from: Manifest; parent: Required<Manifest>['parent'] }> {
  const found = await checkpointFor(folder, checkpoint, `ragen resume ${folder.id} --fork`);
  if (!found)
    throw new UserError(
      `run ${folder.id} has no checkpoint yet: start another run with ragen train --from ${folder.id}`,
    );
  const { from, step } = configOfFork(folder, workspace, found);
  return { from, parent: { run: folder.id, step } };
}

/** Returns the run's manifest with the configuration of a fork from the checkpoint `found`, and the checkpoint's step. */
export function configOfFork(
  folder: RunFolder,
  workspace: string,
  found: StoredCheckpoint,
): { from: Manifest; step: number } {
  const { step, offsets } = found.manifest;
  const events = readableEvents(folder.file(runFiles.events), { end: offsets[runFiles.events] ?? 0 });
  const before = configInEffect(folder.manifest.config, events);
  const config = {
    ...before,
    trainer: {
      ...(valueAt(before, 'trainer') as Record<string, unknown>),
      experiment_name: `${folder.manifest.name}-from-${step}`,
      resume_mode: 'resume_path',
      resume_from_path: relative(workspace, found.folder).replaceAll('\\', '/'),
    },
  };
  return { from: { ...folder.manifest, config, config_hash: configHash(config) }, step };
}
