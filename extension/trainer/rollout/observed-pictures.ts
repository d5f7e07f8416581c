// Admits the pictures of observations to a run: checks that each can be decoded and that the observation has one mark
// per picture, and stores each picture once. A mistake is the environment's and fails its episode.
import { plainMark, plainMarks, type MarkedPicture } from '../../common/picture-mark';
import { decodePicture } from '../../models/vision/picture-decoder';
import { PictureError } from '../../models/vision/picture';
import { mostStatePictures } from '../../run-data/episode';
import { pictureName, type PictureStore } from '../../node/picture-store';

/** Maximum number of pictures whose sizes are remembered. */
const rememberedSizes = 65_536;

export class ObservedPictures {
  private readonly sizes = new Map<string, { width: number; height: number }>();

  /**
   * @param fits throws a PictureError if the model cannot read a picture of this size
   */
  constructor(
    private readonly store: Pick<PictureStore, 'add'>,
    private readonly fits: (size: { width: number; height: number }) => void = () => undefined,
  ) {}

  /**
   * Stores the pictures of an observation.
   * @returns the pictures in the order of the marks
   * @throws PictureError if the number of marks differs from that of the pictures, or a picture cannot be read; its
   * message is a clause without a subject; UserError if a picture cannot be written
   */
  async admit(text: string, images: readonly Uint8Array[]): Promise<MarkedPicture[]> {
    if (images.length === 0) return [];
    if (images.length > mostStatePictures)
      throw new PictureError(`has ${images.length} pictures, and at most ${mostStatePictures} are kept: send fewer`);
    const marks = plainMarks(text);
    if (marks !== images.length)
      throw new PictureError(
        `has ${images.length} ${images.length === 1 ? 'picture' : 'pictures'}, but its text has ${marks} ${marks === 1 ? 'mark' : 'marks'} ${plainMark}: write one mark per picture`,
      );
    const pictures: MarkedPicture[] = [];
    for (const [index, bytes] of images.entries()) {
      const name = pictureName(bytes);
      const size = await this.sizeOf(name, bytes, index);
      pictures.push({ name: await this.store.add(bytes, name), ...size });
    }
    return pictures;
  }

  private async sizeOf(name: string, bytes: Uint8Array, index: number): Promise<{ width: number; height: number }> {
    const known = this.sizes.get(name);
    if (known) return known;
    try {
      const { width, height } = await decodePicture(bytes);
      this.fits({ width, height });
      if (this.sizes.size >= rememberedSizes) this.sizes.clear();
      this.sizes.set(name, { width, height });
      return { width, height };
    } catch (error) {
      if (!(error instanceof PictureError)) throw error;
      throw new PictureError(`has a picture (number ${index + 1}) that ${error.message}`);
    }
  }
}
