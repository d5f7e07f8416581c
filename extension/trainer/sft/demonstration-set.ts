// The demonstrations of a fine-tuning: solved episodes of every tag, some for training and some for validation.
// Converts these episodes to training samples, and to trajectory lines for the output folder.
import { appendAll } from '../../common/lists';
import type { PictureOptions } from '../../engine/load-options';
import { UserError } from '../../common/user-error';
import { loadConfig } from '../config/load-config';
import type { RunConfig } from '../config/schema';
import { roleEpisodes } from '../../run-data/trajectories/role-episodes';
import { trajectoryLine } from '../evaluation/trajectory-line';
import { readTokenizer } from '../../models/weights/model-folder';
import { PictureStore } from '../../node/picture-store';
import { ObservedPictures } from '../rollout/observed-pictures';
import { logNotice, openEnvironments } from '../run/run-environments';
import { pictureOptions, pixelLimits } from '../run/run-pictures';
import { episodeRecord } from '../rollout/episode-record';
import { sampledMask } from '../rollout/rollout-sample';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { demonstrations } from './demonstration-episodes';
import type { SftSample } from './fine-tune';
import type { SftRequest } from './sft-request';

export interface DemonstrationSet {
  train: RolloutEpisode[];
  val: RolloutEpisode[];
  /** Where the pictures of the episodes are, and the limits of their sizes. */
  pictures: PictureOptions;
}

/**
 * Returns solved episodes for training and for validation. The validation episodes of a tag have higher seeds than its
 * training episodes.
 * @param folder folder of the fine-tuning, in which the pictures of the episodes are stored
 */
export async function demonstrationSet(request: SftRequest, folder: string): Promise<DemonstrationSet> {
  const { config, workspace, presetFolders, modelFolder, signal, printLine, onProgress } = request;
  const { demonstrations: asked, data } = config;
  const loaded = loadConfig({
    configName: asked.config_name,
    overrides: [...asked.overrides],
    presetFolders,
    workspace,
  }).config;
  const run = withLength(loaded, data.max_length);
  const tags = asked.tags ?? run.es_manager.train.env_configs.tags;
  const unknown = tags.find(tag => !Object.hasOwn(run.custom_envs, tag));
  if (unknown !== undefined)
    throw new UserError(
      `config: demonstrations.tags names ${unknown}, which custom_envs of ${asked.config_name} does not have: use one of ${Object.keys(run.custom_envs).join(', ')}`,
    );
  const { environments, loaded: environmentsLoaded } = await openEnvironments(run, tags, workspace, logNotice, signal);
  try {
    const tokenizer = readTokenizer(modelFolder, { pixels: pixelLimits(run) });
    const pictures = tokenizer.pictures
      ? new ObservedPictures(new PictureStore(folder), size => tokenizer.fitsPicture(size))
      : undefined;
    const tools = { environments, loaded: environmentsLoaded, tokenizer, pictures };
    const train: RolloutEpisode[] = [];
    const val: RolloutEpisode[] = [];
    for (const [i, tag] of tags.entries()) {
      const part = (size: number): number => Math.floor(size / tags.length) + Number(i < size % tags.length);
      const own = { train: part(data.train_size), val: part(data.val_size) };
      if (own.train + own.val === 0) continue;
      const episodes = await demonstrations(
        {
          config: run,
          tag,
          count: own.train + own.val,
          seed: asked.seed,
          maxDepth: asked.max_depth,
          signal,
          onProgress: solved => onProgress?.(`demonstrations of ${tag}`, solved, own.train + own.val),
        },
        tools,
      );
      printLine(`${tag}: ${episodes.length} demonstrations, seeds ${episodes[0].seed} to ${episodes.at(-1)!.seed}`);
      appendAll(train, episodes.slice(0, own.train));
      appendAll(val, episodes.slice(own.train));
    }
    return { train, val, pictures: pictureOptions(run, folder) };
  } finally {
    await environments.stop();
  }
}

const withLength = (config: RunConfig, max_model_len: number): RunConfig => {
  const { actor_rollout_ref: policy } = config;
  return { ...config, actor_rollout_ref: { ...policy, rollout: { ...policy.rollout, max_model_len } } };
};

/** Returns the training samples of an episode; with roles, each role has samples of its own. */
export const samplesOf = ({ samples }: RolloutEpisode): SftSample[] =>
  samples.map(sample => ({
    ids: sample.ids,
    mask: sampledMask(sample),
    ...(sample.shows && { shows: sample.shows }),
  }));

/** Returns one line per episode or, with roles, one line for each role that had a turn. */
export function demonstrationLines(episodes: readonly RolloutEpisode[]): Uint8Array[] {
  const parts = episodes.flatMap(episode => roleEpisodes(episodeRecord(episode)));
  return parts.map((part, index) => {
    const n_tokens = part.turns.reduce((sum, { span: [from, to] }) => sum + to - from, 0);
    const line = trajectoryLine(index, part, { metrics: {}, entropy: null, n_tokens }, 'workbench');
    return Buffer.from(`${JSON.stringify(line)}\n`);
  });
}
