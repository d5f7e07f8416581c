// The environments of a run: their data sets fetched, their processes started, and each tag's code built and loaded, or the processes ended
// again and the first mistake told.
import { availableParallelism } from 'node:os';
import type { EnvironmentNotice, EnvironmentSpec, LoadedEnvironment } from '../protocol/environment-link';
import { UserError } from '../protocol/user-error';
import { abortable } from './abortable';
import type { RunConfig, TagConfig } from './config/schema';
import { withDataSets } from './data-sets';
import { installation } from './installation';
import { EnvironmentProcesses } from './rollout/environment-processes';
import { secrets } from './secrets';
import { environmentSpecs } from './rollout/environment-specs';
import { environmentVariables } from './rollout/environment-variables';

export interface OpenEnvironments {
  environments: EnvironmentProcesses;
  /** What was asked for, one a tag. */
  specs: EnvironmentSpec[];
  /** One a tag. */
  loaded: LoadedEnvironment[];
}

/**
 * @param tags whose environments are opened, in any order and number
 * @param workspace from which paths of the user's own environments lead
 * @param signal ends the opening at once, and the processes with it: what is thrown is its reason
 * @throws UserError where an environment cannot be built or a data set cannot be had
 */
export async function openEnvironments(
  { custom_envs, workbench }: Pick<RunConfig, 'custom_envs' | 'workbench'>,
  tags: readonly string[],
  workspace: string,
  onNotice: (notice: EnvironmentNotice) => void,
  signal?: AbortSignal,
): Promise<OpenEnvironments> {
  secrets.nameAllIn(custom_envs);
  const asked = environmentSpecs(tags, custom_envs, installation.environments, workspace);
  const fetched = withDataSets(asked, workspace, line => process.stderr.write(`${line}\n`));
  const specs = await abortable(signal, fetched);
  const starting = EnvironmentProcesses.start(
    {
      entry: installation.environmentHost,
      variables: environmentVariables(specs, installation.environments),
      stepTimeoutMs: workbench.step_timeout_ms,
      memoryBytes:
        workbench.max_environment_memory_gb === null ? undefined : workbench.max_environment_memory_gb * 2 ** 30,
      onNotice,
    },
    Object.fromEntries(specs.map(({ tag }) => [tag, workersOf(custom_envs[tag])])),
  );
  const environments = await abortable(signal, starting).catch((error: unknown) => {
    void starting.then(late => late.stop()).catch(() => undefined);
    throw error;
  });
  try {
    const { environments: loaded, error } = await abortable(signal, environments.load(specs));
    if (error) throw new UserError(error.message);
    return { environments, specs, loaded };
  } catch (error) {
    await environments.stop();
    throw error;
  }
}

/** Processes of a tag: more than there are cores would only wait for each other, since calls that wait for something overlap in each. */
export const workersOf = ({ parallel_friendly, max_workers }: TagConfig): number =>
  parallel_friendly ? Math.min(max_workers, availableParallelism()) : 1;

/** To the run's log, which is where the trainer's standard error goes. */
export function logNotice({ tag, stream, text }: EnvironmentNotice): void {
  process.stderr.write(`[${tag || 'environment'} ${stream}] ${text}\n`);
}
