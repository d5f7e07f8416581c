// Plans what a run shows to a vision-language model: the image tokens of each tag's pictures, by the size of the pictures
// and the limits of the model's image processor, and the share of the context that they take.
import { join } from 'node:path';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { builtInFiles } from '../../environments/client/environment-specs';
import type { PicturePlan } from '../../models/memory/plan-input';
import { elements } from '../../models/decoder/decoder-config';
import { encoderSpecs } from '../../models/vision/encoder-config';
import { readJson } from '../../models/weights/folder-json';
import { readsPictures } from '../../models/weights/model-folder';
import { gridTokens, pictureGrids } from '../../models/vision/picture-grids';
import type { PatchGrid } from '../../models/vision/patches';
import { readProcessorOptions } from '../../models/vision/processor-folder';
import { withPixels } from '../../models/vision/processor-options';
import { parseVisionConfig } from '../../models/vision/vision-config';
import { installation } from '../../node/installation';
import type { RunConfig } from '../config/schema';
import { windowTurns } from '../rollout/context-window';
import { pixelLimits } from '../run/run-pictures';
import { pictureSizeOf } from './environment-pictures';

/** The pictures of a tag. Sizes are in pixels. */
export interface TagPictures {
  tag: string;
  width: number;
  height: number;
  /** Whether the size is assumed, because the environment has not been played. */
  assumed: boolean;
  /** Image tokens of a picture. */
  tokens: number;
  /** Maximum number of pictures in a prompt; 0 if not even one fits. */
  shown: number;
}

/** Pictures of a step, each encoded once. */
export interface PictureWork {
  /** Maximum number of image tokens of an episode. */
  tokens: number;
  /** Patches of an episode's pictures. */
  patches: number;
  /** Parameters of the encoder. */
  parameters: number;
}

/** A tag's pictures with their patch grids. */
type GriddedTag = TagPictures & { grids: PatchGrid[] };

type Pictured = Pick<
  RunConfig,
  'agent_proxy' | 'actor_rollout_ref' | 'custom_envs' | 'es_manager' | 'trainer' | 'data'
>;

/** Returns the tags of a configuration whose states are pictures, or may be. */
function pictureTags(
  { custom_envs, es_manager: { train, val }, trainer }: Pictured,
  isBuiltIn: (env_type: string) => boolean,
) {
  const tags = [...(trainer.val_only ? [] : train.env_configs.tags), ...val.env_configs.tags];
  return [...new Set(tags)].flatMap(tag => {
    const found = custom_envs[tag] && pictureSizeOf(custom_envs[tag], isBuiltIn);
    return found ? [{ tag, ...found }] : [];
  });
}

/** Number of turns whose states a prompt can show. */
const shownTurns = ({ agent_proxy: { context_window_mode, max_context_window, max_turn } }: Pictured): number =>
  context_window_mode === 'full' ? max_turn : Math.min(max_turn, windowTurns(max_context_window));

function griddedTags(config: Pictured, folder: string): { tags: GriddedTag[]; encoder: PicturePlan['encoder'] } {
  const { encoder } = parseVisionConfig(readJson(folder, 'config.json'), join(folder, 'config.json'));
  const options = withPixels(readProcessorOptions(folder, encoder), pixelLimits(config));
  const { max_model_len, response_length } = config.actor_rollout_ref.rollout;
  const builtIn = builtInFiles(installation.environments);
  const tags = pictureTags(config, type => Object.hasOwn(builtIn, type)).map(({ tag, size, isAssumed }): GriddedTag => {
    const grids = pictureGrids(size, encoder, options);
    const tokens = gridTokens(grids, encoder);
    const fitting = Math.max(0, Math.floor((max_model_len - response_length) / tokens));
    return { tag, ...size, assumed: isAssumed, tokens, shown: Math.min(fitting, shownTurns(config)), grids };
  });
  return { tags, encoder };
}

/**
 * Returns what the memory plan needs of a run's pictures; undefined if the model reads text only or all states are texts.
 * @param folder the model's folder; its weights may be missing
 * @param stored element type of the encoder's weights
 * @throws UserError if config.json or the processor's options cannot be used
 */
export function plannedPictures(
  config: Pictured,
  folder: string,
  stored: PicturePlan['stored'],
): PicturePlan | undefined {
  if (!readsPictures(folder)) return undefined;
  const { encoder, tags } = griddedTags(config, folder);
  // A picture that does not fit into the context is never encoded.
  const [largest] = tags.filter(({ shown }) => shown > 0).sort((a, b) => b.tokens - a.tokens);
  if (!largest) return undefined;
  const { agent_proxy, es_manager, trainer } = config;
  const { train, val } = es_manager;
  const played = trainer.val_only ? 0 : trainer.total_training_steps * train.env_groups * train.group_size;
  return {
    encoder,
    stored,
    grids: largest.grids,
    tokens: largest.tokens,
    perSequence: maximum(tags.map(({ tokens, shown }) => tokens * shown)),
    pictures: agent_proxy.max_turn * (played + val.env_groups * val.group_size),
  };
}

/**
 * Returns the pictures that each tag shows, in the order of the configuration; empty for a model that reads text only
 * and if all states are texts.
 */
export const shownPictures = (config: Pictured, folder: string): TagPictures[] =>
  readsPictures(folder) ? griddedTags(config, folder).tags.map(({ grids: _, ...tag }) => tag) : [];

/**
 * Returns one sentence per tag about its image tokens.
 * @throws UserError if a tag's states are pictures and the model reads text only
 */
export function pictureNotes(config: Pictured, folder: string): string[] {
  // Whether other environments show pictures is unknown.
  const refused = readsPictures(folder)
    ? undefined
    : pictureTags(config, () => true).find(({ isAssumed }) => !isAssumed);
  if (refused)
    throw new UserError(
      `config: custom_envs.${refused.tag} returns images, which the model cannot read: use a vision-language model, or set custom_envs.${refused.tag}.env_config.render_mode=text`,
    );
  const { max_model_len, response_length } = config.actor_rollout_ref.rollout;
  const turns = readsPictures(folder) ? shownTurns(config) : 0;
  return shownPictures(config, folder).map(({ tag, width, height, assumed, tokens, shown }) => {
    const size = `${width} × ${height} pixels${assumed ? ' (assumed: this environment has not been played)' : ''}`;
    const picture = `config: custom_envs.${tag}: a picture of ${size} takes ${tokens} image tokens`;
    if (shown === 0)
      return `${picture}, which with response_length ${response_length} exceed actor_rollout_ref.rollout.max_model_len ${max_model_len}: lower data.max_pixels or raise max_model_len`;
    const inPrompt = `${picture}, and ${shown} of them in a prompt take ${shown * tokens} of max_model_len ${max_model_len}`;
    return shown < turns
      ? `${inPrompt}; a prompt cannot show all ${turns} turns, and the oldest are left out: lower data.max_pixels or raise max_model_len to show more`
      : inPrompt;
  });
}

/** Returns the pictures of a step as work of the encoder; null without pictures. */
export function pictureWork({ agent_proxy }: Pictured, pictures: PicturePlan | undefined): PictureWork | null {
  if (!pictures) return null;
  const { encoder, grids, perSequence } = pictures;
  const patches = grids.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  return {
    tokens: perSequence,
    patches: agent_proxy.max_turn * patches,
    parameters: encoderSpecs(encoder).reduce((sum, { dims }) => sum + elements(dims), 0),
  };
}
