// The environments of a run: their data sets fetched, their process started, and each tag's code built and loaded, or the process ended
// again and the first mistake told.
import type { EnvironmentNotice, LoadedEnvironment } from '../protocol/environment-link';
import { UserError } from '../protocol/user-error';
import type { RunConfig } from './config/schema';
import { withDataSets } from './data-sets';
import { installation } from './installation';
import { EnvironmentProcess } from './rollout/environment-process';
import { environmentSpecs } from './rollout/environment-specs';

export interface OpenEnvironments {
  environments: EnvironmentProcess;
  /** One a tag. */
  loaded: LoadedEnvironment[];
}

/**
 * @param tags whose environments are opened, in any order and number
 * @param workspace from which paths of the user's own environments lead
 * @throws UserError where an environment cannot be built or a data set cannot be had
 */
export async function openEnvironments(
  { custom_envs, workbench }: Pick<RunConfig, 'custom_envs' | 'workbench'>,
  tags: readonly string[],
  workspace: string,
  onNotice: (notice: EnvironmentNotice) => void,
): Promise<OpenEnvironments> {
  const asked = environmentSpecs(tags, custom_envs, installation.environments, workspace);
  const specs = await withDataSets(asked, workspace, line => process.stderr.write(`${line}\n`));
  const environments = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    stepTimeoutMs: workbench.step_timeout_ms,
    onNotice,
  });
  try {
    const { environments: loaded, error } = await environments.load(specs);
    if (error) throw new UserError(error.message);
    return { environments, loaded };
  } catch (error) {
    await environments.stop();
    throw error;
  }
}

/** To the run's log, which is where the trainer's standard error goes. */
export function logNotice({ tag, stream, text }: EnvironmentNotice): void {
  process.stderr.write(`[${tag || 'environment'} ${stream}] ${text}\n`);
}
