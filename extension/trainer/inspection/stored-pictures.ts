// The pictures of stored rollouts of another trainer, for a model that reads pictures: each word `[image]` of a message
// becomes the mark of the picture that the turn names. Sizes come from the headers of the files. A picture that is
// missing, refused, or of a size that the model cannot read stays the word `[image]`.
import { basename, join } from 'node:path';
import { mostPictureBytes, pictureType } from '../../common/picture-type';
import { plainMark, withMarks, type MarkedPicture } from '../../common/picture-mark';
import { UserError } from '../../common/user-error';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { PictureError } from '../../models/vision/picture';
import { isMissing, readBoundedSync } from '../../node/bounded-file';
import type { Episode } from '../../run-data/episode';
import { isPictureName, picturesFolder } from '../../run-data/run-file-names';

const words = /\[image\]|<image>/g;

export class StoredPictures {
  private readonly sizes = new Map<string, { width: number; height: number } | null>();

  /** @param runFolder absolute path of the run folder */
  constructor(
    private readonly runFolder: string,
    private readonly tokenizer: Pick<ChatTokenizer, 'fitsPicture'>,
  ) {}

  /**
   * Returns messages with the marks of their pictures. The engine reads the pictures from the run's folder of pictures.
   * @param names of the pictures of a turn, in the order of the words in its messages
   */
  marked(
    messages: readonly ChatMessage[],
    { mode, step }: Pick<Episode, 'mode' | 'step'>,
    names: readonly (string | null)[],
  ): ChatMessage[] {
    let next = 0;
    const mark = (word: string): string => {
      const picture = this.picture(picturesFolder(mode, step), names[next++] ?? null);
      return picture ? withMarks(plainMark, [picture]) : word;
    };
    return messages.map(message => ({ ...message, content: message.content.replace(words, mark) }));
  }

  private picture(folder: string, name: string | null): MarkedPicture | null {
    if (name === null || !isPictureName(name)) return null;
    const file = join(this.runFolder, folder, name);
    let size = this.sizes.get(file);
    if (size === undefined) this.sizes.set(file, (size = this.sizeOf(file)));
    return size && { name: `${basename(folder)}/${name}`, ...size };
  }

  private sizeOf(file: string): { width: number; height: number } | null {
    try {
      const found = pictureType(readBoundedSync(file, { most: mostPictureBytes, within: this.runFolder }));
      if (!found) return null;
      const { width, height } = found;
      this.tokenizer.fitsPicture({ width, height });
      return { width, height };
    } catch (error) {
      const isRefused = error instanceof PictureError || error instanceof UserError || isMissing(error);
      if (!isRefused) throw error;
      return null;
    }
  }
}
