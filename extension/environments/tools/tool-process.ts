// The environment process for command-line tools. Environments are loaded independently, so the failure of one does not
// affect the others. Messages refer to the tool's input instead of a run's configuration.
import type { EnvironmentFailure, EnvironmentSpec, LoadedEnvironment } from '../../protocol/environment-link';
import { installation } from '../../node/installation';
import { secrets } from '../../node/secrets';
import { EnvironmentProcess } from '../client/environment-process';
import { environmentVariables } from '../client/environment-variables';

/** Time limit in milliseconds of a call into environment code; an environment's `patience` may raise it. */
const stepTimeoutMs = 10_000;

/**
 * Starts the process for these environments and prints their output to standard error. The caller must stop the
 * process.
 */
export function startToolProcess(
  specs: readonly Pick<EnvironmentSpec, 'env_type' | 'config'>[],
): Promise<EnvironmentProcess> {
  secrets.nameAllIn(specs);
  return EnvironmentProcess.start({
    entry: installation.environmentHost,
    variables: environmentVariables(specs, installation.environments),
    stepTimeoutMs,
    onNotice: notice => {
      if (notice.method === 'log') process.stderr.write(notice.text);
    },
  });
}

export type LoadOutcome = { environment: LoadedEnvironment } | { failure: EnvironmentFailure };

/** Loads environments, whose tags must be distinct. Returns outcomes in the order of the specifications. */
export async function loadEach(
  environments: EnvironmentProcess,
  specs: readonly EnvironmentSpec[],
): Promise<LoadOutcome[]> {
  const together = await environments.load([...specs]);
  const outcomes: LoadOutcome[] = [];
  for (const spec of specs) {
    const environment = together.environments.find(({ tag }) => tag === spec.tag);
    if (environment) outcomes.push({ environment });
    else {
      // `load` reports only its first failure.
      const alone = await environments.load([spec]);
      outcomes.push(alone.error ? { failure: alone.error } : { environment: alone.environments[0] });
    }
  }
  return outcomes;
}

/**
 * In a message, replaces keys of a run's configuration, such as `custom_envs.…`, by the location in the tool's input.
 * @param location the place where the user gave the configuration, such as `[3].config` or `--set`
 */
export function withLocation(message: string, tag: string, location: string): string {
  return message
    .replaceAll(`custom_envs.${tag}.env_config`, location)
    .replace(`config: custom_envs.${tag}.env_type is ${tag}, which `, `environment ${tag} `)
    .replace(`config: custom_envs.${tag}.env_type is ${tag}`, `environment ${tag}`);
}
