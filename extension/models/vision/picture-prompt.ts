// How a vision-language model writes pictures in a prompt: the text of its image token, and the text that the family's
// processor puts in the token's place, which depends on the size of the picture (transformers' Qwen2_5_VLProcessor,
// Qwen3VLProcessor, Idefics3Processor).
import { UserError } from '../../common/user-error';
import type { AddedToken } from '../tokenizer/added-tokens';
import { gridTokens, pictureGrids } from './picture-grids';
import type { ProcessorOptions } from './processor-options';
import { tileGrid, tilePrompt } from './tiles';
import type { VisionConfig } from './vision-config';

interface Size {
  width: number;
  height: number;
}

export interface PicturePrompt {
  /** Id and text of the token that stands for an image feature. */
  imageToken: number;
  imageText: string;
  /** The text around the image token in a template that does not know pictures. */
  before: string;
  after: string;
  /** Returns the text that replaces a picture's image token. @throws PictureError if the model cannot read the size */
  expansion(size: Size): string;
  /** Returns the number of image tokens of a picture. @throws PictureError if the model cannot read the size */
  tokens(size: Size): number;
}

/**
 * Returns how a model writes pictures.
 * @param tokenizer content of tokenizer.json
 * @param folder used only in errors
 */
export function picturePrompt(
  { imageToken, encoder, family }: VisionConfig,
  options: ProcessorOptions,
  tokenizer: object,
  folder: string,
): PicturePrompt {
  const { added_tokens: added = [] } = tokenizer as { added_tokens?: AddedToken[] };
  const imageText = added.find(({ id }) => id === imageToken)?.content;
  if (imageText === undefined)
    throw new UserError(
      `${folder}: tokenizer.json has no added token with the id ${imageToken}, which config.json names as image token: use both files of the same model`,
    );
  const tokens = (size: Size): number => gridTokens(pictureGrids(size, encoder, options), encoder);
  if (options.kind === 'tiles') {
    const perTile = encoder.kind === 'siglip' ? (encoder.side / encoder.mergeSize) ** 2 : 0;
    return {
      ...{ imageToken, imageText, before: '', after: '', tokens },
      expansion: size => tilePrompt(tileGrid(size, options), perTile).replaceAll('<image>', imageText),
    };
  }
  const isQwen = family === 'qwen2_5_vl' || family === 'qwen3_vl';
  return {
    ...{ imageToken, imageText, tokens },
    before: isQwen ? '<|vision_start|>' : '',
    after: isQwen ? '<|vision_end|>' : '',
    expansion: size => imageText.repeat(tokens(size)),
  };
}
