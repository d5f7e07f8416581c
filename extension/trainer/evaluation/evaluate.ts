// An evaluation: plays the validation episodes of a configuration once with a model. Each episode is written to the run
// folder when it finishes, and a resumed evaluation plays only the missing episodes. An episode's tokens depend only on
// weights, seed and env_id, so with a local model an interrupted evaluation gives the same results as an uninterrupted
// one. Metrics, trajectories and summary are written at the end.
import { basename, dirname, join, resolve } from 'node:path';
import { appendAll } from '../../common/lists';
import { episodeSchema } from '../../run-data/episode';
import { episodesFile, runFiles } from '../../run-data/run-file-names';
import type { Episode } from '../../run-data/episode';
import { secrets } from '../../node/secrets';
import { UserError } from '../../common/user-error';
import { trajectoriesName } from '../config/output-notes';
import type { RunConfig } from '../config/schema';
import type { Journal } from '../run/journal';
import { episodeSlots } from '../rollout/group-layout';
import type { EpisodeSlot } from '../rollout/group-layout';
import { validationSuccess } from '../loop/metric-statistics';
import { makeFolder, replaceFile } from '../../node/files';
import { readValues } from '../store/line-log';
import type { RunFolder } from '../store/run-folder';
import { evaluationMetrics, summarizeEvaluation, trajectoryFacts } from './evaluation-summary';
import type { EvaluationSummary } from './evaluation-summary';
import { trajectoryLine } from './trajectory-line';

/**
 * An episode to be played. `round` is the number of its validation batch (from 0), and `first` is the seed of this
 * batch's first group.
 */
export interface ValidationSlot extends EpisodeSlot {
  round: number;
  first: number;
}

/** Plays the episodes of an evaluation, either with a local model or with a model behind an API. */
export interface Player {
  /** Prices per million tokens; undefined if the configuration sets none. */
  readonly prices?: { input: number; output: number };
  /**
   * Plays episodes to their end. `finished` receives episodes as soon as they finish, in any order. The player adds its
   * own measurements (`entropy`, `n_generated_tokens`, …) to the metrics of these episodes.
   * @throws RunStopped if the run is stopped
   */
  play(slots: readonly ValidationSlot[], finished: (episodes: readonly Episode[]) => void): Promise<void>;
}

export interface EvaluationRun {
  config: RunConfig;
  folder: RunFolder;
  journal: Journal;
  /** Base folder for relative paths of the configuration. */
  workspace: string;
}

/**
 * Plays the remaining validation episodes of a run and writes the results.
 * @throws UserError if too many episodes failed
 */
export async function evaluate(run: EvaluationRun, player: Player): Promise<EvaluationSummary> {
  const { config, folder, journal } = run;
  const slots = validationSlots(config);
  const episodes = readFinished(folder);
  const done = new Set(episodes.map(({ env_id }) => env_id));
  if (done.size > 0)
    journal.event('resume', `${done.size} of ${slots.length} episodes were played in earlier sessions`);
  const report = () => {
    const progress = { done: episodes.length, of: slots.length };
    journal.update({ phase: 'validation', episodes: progress }, progress.done / progress.of);
  };
  report();
  const left = slots.filter(({ env_id }) => !done.has(env_id));
  await player.play(left, finished => {
    journal.addEpisodes('val', 0, finished);
    appendAll(episodes, finished);
    report();
    refuseFailures(episodes, slots.length, config);
  });

  await journal.settled();

  episodes.sort((a, b) => a.env_id - b.env_id);
  const metrics = evaluationMetrics(episodes, config);
  const files = resultFiles(run);
  const summary = summarizeEvaluation(
    { manifest: folder.manifest, config, wall_s: journal.wallSeconds, prices: player.prices, files },
    episodes,
    metrics,
  );
  const form = config.workbench.compat === 'ragen' ? 'ragen' : 'workbench';
  const lines = episodes.map((episode, i) => trajectoryLine(i, episode, trajectoryFacts(episode), form));
  const written = lines.map(line => Buffer.from(`${secrets.json(line)}\n`));
  await journal.retryUntilWritable(async () => {
    await makeFolder(dirname(files.trajectories));
    await replaceFile(files.trajectories, written);
    for (const file of [files.summary, folder.file(runFiles.evaluation)])
      await replaceFile(file, `${secrets.json(summary, 1)}\n`);
  });
  journal.metrics(0, metrics);
  journal.update({ phase: 'idle', success: validationSuccess(metrics), success_of: 'val' });
  return summary;
}

/**
 * Returns the episodes of all `trainer.validation_steps` validation batches. No two batches share a seed, except that
 * with `workbench.compat: ragen` all batches have the same seeds.
 */
function validationSlots({ es_manager, seed, trainer, workbench }: RunConfig): ValidationSlot[] {
  const { env_groups, group_size } = es_manager.val;
  return Array.from({ length: trainer.validation_steps }, (_, round) => {
    const before = round * env_groups;
    const first = workbench.compat === 'ragen' ? seed.val : seed.val + before;
    return episodeSlots(es_manager.val, first).map(slot => ({
      ...slot,
      group_id: slot.group_id + before,
      env_id: slot.env_id + before * group_size,
      round,
      first,
    }));
  }).flat();
}

/** Reads the episodes that were finished before the evaluation was interrupted. */
function readFinished(folder: RunFolder): Episode[] {
  const file = folder.file(episodesFile('val', 0));
  return [...readValues(file, line => episodeSchema.parse(line))].map(({ value }) => value);
}

/**
 * Throws if the share of failed episodes, among all episodes of the evaluation, exceeds `max_failed_episodes_share`.
 */
function refuseFailures(episodes: readonly Episode[], total: number, { workbench }: RunConfig): void {
  const failed = episodes.filter(({ error }) => error !== undefined);
  if (failed.length > workbench.max_failed_episodes_share * total)
    throw new UserError(
      `${failed[0].error} (${failed.length} of ${total} episodes failed; workbench.max_failed_episodes_share is ${workbench.max_failed_episodes_share})`,
    );
}

/**
 * Returns the absolute paths of the results. The timestamp in the names is the run's creation time, so a resumed
 * evaluation writes the same files.
 */
function resultFiles({ config, folder, workspace }: EvaluationRun): { trajectories: string; summary: string } {
  const { dir, filename, append_timestamp } = config.output;
  const name = basename(trajectoriesName(filename), '.jsonl');
  const [day, time] = folder.manifest.created.split(/[T.]/).map(part => part.replace(/[-:]/g, ''));
  const own = dir === null ? join(config.trainer.local_log_dir, folder.id) : dir;
  const base = join(
    resolve(workspace, own),
    dir !== null && append_timestamp ? `${name}_${day}_${time.slice(0, 6)}` : name,
  );
  return { trajectories: `${base}.jsonl`, summary: `${base}_summary.json` };
}
