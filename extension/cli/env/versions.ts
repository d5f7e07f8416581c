// `ragen env versions RUN`: lists the code versions of a run's environments in order. For each version, the list shows
// the folder of the stored sources, and how the edit that created the version changed reward and success.
import type { Command } from 'commander';
import { environmentFile, environmentFiles, episodesFile, runFiles } from '../../run-data/run-file-names';
import { eventSchema } from '../../run-data/run-events';
import type { RunEvent } from '../../run-data/run-events';
import {
  comparedEpisodeSchema,
  comparedRange,
  formatEffect,
  ranVersions,
  versionEffect,
  type ComparedEpisode,
  type RanVersion,
  type VersionEffect,
} from '../../run-data/version-effect';
import { jsonOrNothing } from '../../common/json';
import { readLines } from '../../trainer/store/line-log';
import { RunFolder } from '../../trainer/store/run-folder';
import { answer } from '../output/answer';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { keptEnvironment } from '../../trainer/store/environment-store';

interface ListedVersion extends RanVersion {
  /** Folder of the stored sources; null if the run folder does not contain this version. */
  folder: string | null;
  sources: string[];
  /**
   * Effect relative to the previous version of the same environment tag. Null for the first version, or if one of the
   * two versions has no episodes.
   */
  effect: VersionEffect | null;
}

export function addEnvVersions(env: Command): void {
  withCommon(
    env.command('versions').description('list the code versions of a run’s environments, and the effect of each edit'),
  )
    .argument('<run>', 'id of the run')
    .action((run: string, flags: CommonFlags) =>
      answer(flags, async () => {
        const versions = versionsOf(RunFolder.find(workspaceOf(flags.workspace), run));
        return { document: versions, plainText: versions.map(formatVersion).join('\n') };
      }),
    );
}

/** Returns the versions that a run used, in order, with their stored sources and effects. */
export function versionsOf(folder: RunFolder): ListedVersion[] {
  const ran = ranVersions(folder.manifest, lines(folder, runFiles.events, eventSchema));
  const read = new Map<number, ComparedEpisode[]>();
  const episodesOf = (step: number): ComparedEpisode[] => {
    const known = read.get(step) ?? lines(folder, episodesFile('train', step), comparedEpisodeSchema);
    read.set(step, known);
    return known;
  };
  return ran.map((version, i) => {
    const before = ran.slice(0, i).findLast(({ tag }) => tag === version.tag);
    const effect = before
      ? versionEffect(comparedRange(before, version).flatMap(episodesOf), {
          tag: version.tag,
          from: before.version,
          to: version.version,
        })
      : undefined;
    const kept = keptEnvironment(folder, version.version)?.about;
    const sources = folder.file(environmentFile(version.version, environmentFiles.sources));
    return { ...version, folder: kept ? sources : null, sources: kept?.sources ?? [], effect: effect ?? null };
  });
}

/** Returns the parsed contents of a file's valid lines; empty if the file is missing. */
function lines<T extends ComparedEpisode | RunEvent>(
  folder: RunFolder,
  name: string,
  schema: { safeParse(value: unknown): { data?: T } },
): T[] {
  const found: T[] = [];
  for (const { text } of readLines(folder.file(name), 0, undefined, folder.path)) {
    const { data } = schema.safeParse(jsonOrNothing(text));
    if (data !== undefined) found.push(data);
  }
  return found;
}

function formatVersion({ tag, version, from, to, folder, effect }: ListedVersion): string {
  const steps = to === null ? `from step ${from}` : `steps ${from} to ${to}`;
  return [
    `${tag} ${version} ${steps}`,
    ...(effect ? [`  ${formatEffect(effect)}`] : []),
    ...(folder === null ? [] : [`  ${folder}`]),
  ].join('\n');
}
