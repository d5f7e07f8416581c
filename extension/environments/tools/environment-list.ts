// `ragen env list`: lists the built-in environments and the environments of the workspace. Each environment is loaded
// once to get its description.
import type { ListedEnvironment } from '../../protocol/environment-tools';
import { builtInTypes, environmentSpec, workspaceTypes } from './environment-sources';
import { loadEach, startToolProcess } from './tool-process';

/** Maximum number of environments that are loaded concurrently; limits threads and memory. */
const together = 4;

/**
 * Returns the built-in environments, followed by the environments of the workspace. A built-in environment is listed by
 * its name, and an environment of the workspace by its path.
 */
export async function listEnvironments(workspace: string): Promise<ListedEnvironment[]> {
  const types = [
    ...builtInTypes().map(env_type => ({ env_type, built_in: true })),
    ...workspaceTypes(workspace).map(env_type => ({ env_type, built_in: false })),
  ];
  const environments = await startToolProcess(types.map(({ env_type }) => ({ env_type, config: {} })));
  try {
    const listed: ListedEnvironment[] = [];
    for (let from = 0; from < types.length; from += together) {
      const some = types.slice(from, from + together);
      const specs = await Promise.all(some.map(({ env_type }) => environmentSpec(env_type, {}, workspace)));
      const outcomes = await loadEach(environments, specs);
      outcomes.forEach((outcome, i) => {
        const { source } = specs[i];
        const environment = 'environment' in outcome ? outcome.environment : undefined;
        const { config = null } = 'environment' in outcome ? outcome.environment : outcome.failure;
        const actions = environment?.actions;
        listed.push({
          ...some[i],
          name: environment?.name ?? some[i].env_type,
          source,
          config,
          actions: actions && Object.keys(actions).length > 0 ? actions : null,
          has_solver: environment?.has_solver ?? false,
          missing: 'failure' in outcome ? outcome.failure.message : null,
        });
      });
    }
    return listed;
  } finally {
    await environments.stop();
  }
}
