// The pictures of a run: where they are stored, and how the engine and the rollout get them.
import { join } from 'node:path';
import type { PictureOptions } from '../../engine/load-options';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { PixelLimits } from '../../models/vision/processor-options';
import { PictureStore } from '../../node/picture-store';
import { runFiles } from '../../run-data/run-file-names';
import type { RunConfig } from '../config/schema';
import { ObservedPictures } from '../rollout/observed-pictures';

/** Returns the limits of a picture's size that the configuration sets. */
export const pixelLimits = ({ data }: Pick<RunConfig, 'data'>): PixelLimits => ({
  minPixels: data.min_pixels,
  maxPixels: data.max_pixels,
});

/** Returns the engine's options for the pictures of a run; `run` is the absolute path of the run folder. */
export const pictureOptions = (config: Pick<RunConfig, 'data'>, run: string): PictureOptions => ({
  folder: join(run, runFiles.pictures),
  ...pixelLimits(config),
});

/** Returns what receives the pictures of observations; nothing if the model reads text only. */
export const observedPictures = (
  { workbench: { engine } }: Pick<RunConfig, 'workbench'>,
  run: string,
  tokenizer: Pick<ChatTokenizer, 'pictures' | 'fitsPicture'>,
): { pictures?: ObservedPictures } =>
  engine === 'local' && tokenizer.pictures
    ? { pictures: new ObservedPictures(new PictureStore(run), size => tokenizer.fitsPicture(size)) }
    : {};
