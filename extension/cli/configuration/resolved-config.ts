// Resolves a configuration as a run would, with the context length limited to what the model supports. Reads only files
// that are on this machine, so the answer does not wait for a download.
import { UserError } from '../../common/user-error';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { installation } from '../../node/installation';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { fitLength } from '../../trainer/config/model-length';
import { modelSource } from '../../trainer/config/model-path';
import type { RunConfig } from '../../trainer/config/schema';

/**
 * Returns the validated configuration that `load` returns for these overrides. Throws a ConfigError that lists all
 * problems.
 */
export function resolvedConfig(
  overrides: readonly string[],
  workspace: string,
  load: (overrides: readonly string[]) => LoadedConfig,
): LoadedConfig {
  const given = load(overrides);
  return fitLength(given, positionsAtHand(given.config, workspace), override => load([...overrides, override]));
}

/**
 * Returns the maximum number of token positions of the model that the configuration names. Returns Infinity if the
 * model is behind an API, has not been fetched, or is unusable.
 */
function positionsAtHand({ model_path, model_config, trainer }: RunConfig, workspace: string): number {
  if (model_config !== null && trainer.val_only) return Infinity;
  try {
    const source = modelSource(model_path, { workspace, modelFolders: [installation.models] });
    return 'folder' in source ? readDecoderConfig(source.folder).maxPositions : Infinity;
  } catch (error) {
    if (error instanceof UserError) return Infinity; // the error is reported when a run starts
    throw error;
  }
}
