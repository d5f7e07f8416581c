// Opens the environments of a run: downloads their data sets, starts their processes, and builds and loads the code of
// each tag. If one of these operations fails, the processes are stopped and the first error is thrown.
import { availableParallelism } from 'node:os';
import type { EnvironmentNotice, EnvironmentSpec, LoadedEnvironment } from '../../protocol/environment-link';
import { UserError } from '../../common/user-error';
import { abortable } from '../../node/abortable';
import type { RunConfig, TagConfig } from '../config/schema';
import { withDataSets } from '../../hub/data-sets';
import { installation } from '../../node/installation';
import { EnvironmentProcessPool } from '../../environments/client/process-pool';
import { secrets } from '../../node/secrets';
import { environmentSpecs } from '../../environments/client/environment-specs';
import { requireComponents } from '../rewards/component-check';
import { environmentVariables, variablesOf } from '../../environments/client/environment-variables';

export interface OpenEnvironments {
  environments: EnvironmentProcessPool;
  /** The requested environments, one per tag. */
  specs: EnvironmentSpec[];
  /** The loaded environments, one per tag. */
  loaded: LoadedEnvironment[];
}

/**
 * Opens the environments of the given tags.
 * @param tags tags in any order, duplicates allowed
 * @param workspace base folder for paths of the user's own environments
 * @param signal when it aborts, the processes are stopped and its abort reason is thrown
 * @throws UserError if an environment cannot be built or a data set cannot be downloaded
 */
export async function openEnvironments(
  { custom_envs, workbench }: Pick<RunConfig, 'custom_envs' | 'workbench'>,
  tags: readonly string[],
  workspace: string,
  onNotice: (notice: EnvironmentNotice) => void,
  signal?: AbortSignal,
): Promise<OpenEnvironments> {
  secrets.nameAllIn(custom_envs);
  for (const { mcp_servers } of Object.values(custom_envs))
    for (const name of Object.values(mcp_servers).flatMap(variablesOf)) secrets.name(name);
  const asked = environmentSpecs(tags, custom_envs, installation.environments, workspace, workbench.tools);
  const fetched = withDataSets(asked, workspace, line => process.stderr.write(`${line}\n`));
  const specs = await abortable(signal, fetched);
  const starting = EnvironmentProcessPool.start(
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
    requireComponents(loaded, { custom_envs });
    return { environments, specs, loaded };
  } catch (error) {
    await environments.stop();
    throw error;
  }
}

/**
 * Number of environment processes for a tag, at most the number of cores. More processes would not help environments
 * that wait for I/O, because the calls of such environments overlap within one process.
 */
export const workersOf = ({ parallel_friendly, max_workers }: TagConfig): number =>
  parallel_friendly ? Math.min(max_workers, availableParallelism()) : 1;

/** Writes a notice to standard error, which goes to the run's trainer.log. */
export function logNotice({ tag, stream, text }: EnvironmentNotice): void {
  process.stderr.write(`[${tag || 'environment'} ${stream}] ${text}\n`);
}
