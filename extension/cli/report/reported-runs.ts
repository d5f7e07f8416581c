// Reads the runs of a report from their folders: metrics, events, labels, notes, and the chosen episodes.
import { withPictures } from '../../node/episode-pictures';
import { hasRunFile, readRunFileSync } from '../../node/read-run-file';
import { UserError } from '../../common/user-error';
import { numbersOf, type MetricNumbers } from '../../run-data/metric-segments';
import { pickEpisodes } from '../../run-data/picked-episodes';
import type { ChosenEpisode, ReportedRun } from '../../run-data/report/reported-run';
import { eventSchema } from '../../run-data/run-events';
import { runFiles } from '../../run-data/run-file-names';
import { readLease } from '../../trainer/store/held-lease';
import { readValues } from '../../trainer/store/line-log';
import type { RunFolder } from '../../trainer/store/run-folder';
import { episodeTable, findEpisode } from '../../trainer/store/stored-episodes';
import { parseEpisodeId } from '../input/episode-id';

/** Which episodes a report shows: the best, the worst and the most changed of each run, these ids, or none. */
export type EpisodeChoice = 'picked' | 'none' | readonly string[];

/**
 * Returns the runs of a report, oldest first, with the pictures of their episodes as data URLs. Throws a UserError for
 * damaged files and unknown episodes.
 */
export async function reportedRuns(folders: readonly RunFolder[], choice: EpisodeChoice): Promise<ReportedRun[]> {
  const runs: { run: ReportedRun }[] = [];
  for (const folder of folders) {
    const run = reportedRun(folder, choice);
    const episodes: ChosenEpisode[] = [];
    for (const chosen of run.episodes)
      episodes.push({ ...chosen, episode: await withPictures(folder.path, chosen.episode) });
    runs.push({ run: { ...run, episodes } });
  }
  if (Array.isArray(choice))
    for (const id of choice as readonly string[])
      if (!runs.some(({ run }) => run.episodes.some(({ episode }) => episode.id === id)))
        throw new UserError(`report: no run of the report has the episode ${id}: see ragen episodes for the ids`);
  return runs.map(({ run }) => run).sort((a, b) => (a.manifest.created < b.manifest.created ? -1 : 1));
}

function reportedRun(folder: RunFolder, choice: EpisodeChoice): ReportedRun {
  const { manifest } = folder;
  const { name = manifest.name, colour } = folder.readLabels();
  const lease = readLease(folder.path);
  const status = folder.readStatus();
  return {
    ...{ id: manifest.id, manifest, name, colour, status },
    ...{ state: status?.state ?? null, config: manifest.config },
    live: lease !== null && lease.life !== 'gone',
    events: [...readValues(folder.file(runFiles.events), value => eventSchema.parse(value))].map(({ value }) => value),
    metrics: metricsOf(folder),
    checkpoints: folder.checkpointSteps().map(step => `step-${String(step).padStart(6, '0')}`),
    episodes: episodesOf(folder, choice),
    notes: hasRunFile(folder.path, runFiles.notes) ? readRunFileSync(folder.path, runFiles.notes).toString('utf8') : '',
  };
}

function metricsOf(folder: RunFolder): MetricNumbers[] {
  const lines = readValues(folder.file(runFiles.metrics), value => {
    const numbers = numbersOf(value);
    if (!numbers) throw new Error('not a line of metrics');
    return numbers;
  });
  return [...lines].map(({ value }) => value);
}

function episodesOf(folder: RunFolder, choice: EpisodeChoice): ChosenEpisode[] {
  if (choice === 'none') return [];
  const wanted =
    choice === 'picked'
      ? pickEpisodes(episodeTable(folder)).map(({ kind, change, episode }) => ({ kind, change, ref: episode }))
      : choice.map(id => ({ kind: 'chosen' as const, change: null, ref: parseEpisodeId('report', id) }));
  return wanted.flatMap(({ kind, change, ref }) => {
    const episode = findEpisode(folder, ref);
    return episode ? [{ kind, change, episode }] : [];
  });
}
