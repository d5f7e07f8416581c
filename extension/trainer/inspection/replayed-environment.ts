// Opens the environment of a stored episode. The episode is replayed with the environment code that the run stored when
// it played the episode. If the run stored no code, the current code is used, and a note says so. Code of an untrusted
// run is never executed. The caller must stop the environment process.
import type { EnvironmentSpec, LoadedEnvironment } from '../../protocol/environment-link';
import type { Episode } from '../../run-data/episode';
import { UserError } from '../../common/user-error';
import { withDataSets } from '../../hub/data-sets';
import { installation } from '../../node/installation';
import { EnvironmentProcess } from '../../environments/client/environment-process';
import { environmentSpecs, placedConfig, withPrograms } from '../../environments/client/environment-specs';
import { environmentVariables, variablesOf } from '../../environments/client/environment-variables';
import { logNotice } from '../run/run-environments';
import { secrets } from '../../node/secrets';
import { requireNoLinks, requireTrustedCode } from '../run/trusted-run';
import type { InspectedRun } from './inspected-run';

export interface ReplayedEnvironment {
  process: EnvironmentProcess;
  loaded: LoadedEnvironment;
  notes: string[];
}

/**
 * Opens the environment of an episode.
 * @param accepted sha256 of files of the run that the user has accepted for this request only
 * @throws UserError if the environment does not load, or its code is not trusted
 */
export async function openReplayed(
  run: InspectedRun,
  { tag, environment }: Pick<Episode, 'tag' | 'environment'>,
  accepted: readonly string[] = [],
): Promise<ReplayedEnvironment> {
  const { config, workspace } = run;
  requireTrustedCode(run.folder, [run.folder.manifestCode], accepted); // the manifest may name programs to start
  requireNoLinks(run.folder);
  const settings = config.custom_envs[tag];
  if (!settings) throw new UserError(`run ${run.folder.id} has no environment ${tag}: choose an episode of this run`);
  if (withPrograms.has(settings.env_type))
    throw new UserError(
      `run ${run.folder.id}: episodes of ${tag} are played by a program or a server, which decides itself how it continues: train or evaluate with a changed program instead`,
    );
  const { memory } = config.workbench.plugins;
  if (memory !== null)
    throw new UserError(
      `run ${run.folder.id}: its prompts are written by the plug-in ${memory}, which what-if episodes do not call: train or evaluate with a changed plug-in instead`,
    );
  const kept = run.keptEnvironment({ version: environment.version, tag }, accepted);
  const spec: EnvironmentSpec = kept
    ? {
        tag,
        env_type: settings.env_type,
        source: kept.source,
        config: placedConfig(settings.env_type, settings.env_config, workspace),
        built: { bundle: kept.bundle, files: [] },
        tools: { ...config.workbench.tools, servers: settings.mcp_servers },
      }
    : environmentSpecs([tag], config.custom_envs, installation.environments, workspace, config.workbench.tools)[0];
  secrets.nameAllIn(spec.config);
  secrets.name(...Object.values(spec.tools?.servers ?? {}).flatMap(variablesOf));
  const [ready] = await withDataSets([spec], workspace, line => process.stderr.write(`${line}\n`));
  const started = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    variables: environmentVariables([spec], installation.environments),
    stepTimeoutMs: config.workbench.step_timeout_ms,
    onNotice: logNotice,
  });
  try {
    const { environments, error } = await started.load([ready]);
    if (error) throw new UserError(error.message);
    const [loaded] = environments;
    if (loaded.roles)
      throw new UserError(
        `run ${run.folder.id}: episodes of ${tag} have roles with contexts of their own, which what-if episodes cannot continue: train or evaluate with changed settings instead`,
      );
    const other = loaded.version !== environment.version;
    const note = `The episode was played with version ${environment.version} of ${tag}. The run has no copy of this code, so the episode is replayed with the current version, ${loaded.version}.`;
    return { process: started, loaded, notes: other ? [note] : [] };
  } catch (error) {
    await started.stop();
    throw error;
  }
}

/** Returns the names of the actions that an episode permits; empty if the environment accepts any text as an action. */
export async function actionsOf(
  { process: environments, loaded }: ReplayedEnvironment,
  episode: Episode,
): Promise<string[]> {
  const { id, tag, seed, member, mode } = episode;
  const [state] = await environments.reset([{ episode: id, tag, seed, member, mode }]);
  await environments.closeEpisodes([id]);
  if (state.error) throw new UserError(state.error.message);
  return Object.values(state.actions ?? loaded.actions ?? {});
}
