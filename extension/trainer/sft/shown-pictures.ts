// The pictures of a model in the making: decoded once, kept in memory, and encoded together for each step, because the
// encoder is trained with the decoder and its features hold for one step only.
import type { MarkedPicture } from '../../common/picture-mark';
import { float32 } from '../../engine/session/session';
import type { PicturedTokens } from '../../engine/generation-calls';
import type { ShownFeatures, ShownPicture } from '../../engine/training-samples';
import type { ImageFeatures } from '../../models/policy';
import { featureCount } from '../../models/vision/encoder-feeds';
import { decodePicture } from '../../models/vision/picture-decoder';
import type { PictureEncoder } from '../../models/vision/picture-encoder';
import { picturePatches } from '../../models/vision/patches';
import type { PicturePatches } from '../../models/vision/patches';
import type { PatchOptions } from '../../models/vision/processor-options';
import { showFeatures } from '../../models/vision/shown-features';
import type { VisionConfig } from '../../models/vision/vision-config';
import { pictureName } from '../../node/picture-store';
import type { ObservedPictures } from '../rollout/observed-pictures';
import { plainMarks } from '../../common/picture-mark';

/** Maximum number of pictures that are kept; the oldest are forgotten. */
const mostPictures = 1000;

interface Showing {
  ids: ArrayLike<number>;
  shows?: readonly ShownPicture[] | undefined;
}

type Admitted = MarkedPicture & { patches: PicturePatches };

export class ShownPictures implements Pick<ObservedPictures, 'admit'> {
  private readonly known = new Map<string, Admitted>();

  constructor(
    private readonly config: VisionConfig,
    private readonly processor: PatchOptions,
    private readonly encoder: PictureEncoder,
  ) {}

  /** Decodes the pictures of an observation, whose text has one mark per picture. */
  async admit(text: string, images: readonly Uint8Array[]): Promise<MarkedPicture[]> {
    if (plainMarks(text) !== images.length) throw new Error('pictures: an observation has one mark per picture');
    return Promise.all(
      images.map(async bytes => {
        const name = pictureName(bytes);
        const admitted = this.known.get(name) ?? (await this.decoded(name, bytes));
        this.known.delete(name); // the least recently admitted picture is the first
        this.known.set(name, admitted);
        if (this.known.size > mostPictures) this.known.delete(this.known.keys().next().value!);
        return admitted;
      }),
    );
  }

  /** Returns the samples with what their tokens show, and the features of all their pictures. */
  async ofSamples<S extends Showing>(
    samples: readonly S[],
  ): Promise<{ samples: (S & { pictures: ShownFeatures })[]; images: ImageFeatures }> {
    const { first, images } = await this.encoded(samples);
    return { samples: samples.map(sample => ({ ...sample, pictures: this.shown(sample, first) })), images };
  }

  /**
   * Returns what appended ids show, per row; undefined for rows without pictures.
   * @param starts position of each row's first id
   */
  async ofRows(rows: readonly Showing[], starts: readonly number[]): Promise<(PicturedTokens | undefined)[]> {
    if (!rows.some(({ shows = [] }) => shows.length > 0)) return rows.map(() => undefined);
    const { first, images } = await this.encoded(rows);
    const values = images.values.data as Float32Array;
    return rows.map((row, i) => {
      if (!row.shows?.length) return undefined;
      const { features, positions } = this.shown(row, first);
      return { values, features, positions: positions.map(position => position + starts[i]) };
    });
  }

  private async decoded(name: string, bytes: Uint8Array): Promise<Admitted> {
    const picture = await decodePicture(bytes);
    return { name, width: picture.width, height: picture.height, patches: picturePatches(picture, this.processor) };
  }

  /** Encodes the pictures of samples together. Returns the index of each picture's first feature. */
  private async encoded(all: readonly Showing[]): Promise<{ first: Map<string, number>; images: ImageFeatures }> {
    const names = [...new Set(all.flatMap(({ shows = [] }) => shows.map(({ picture }) => picture)))];
    const patches = names.map(name => this.patchesOf(name));
    const first = new Map<string, number>();
    let count = 0;
    names.forEach((name, i) => {
      first.set(name, count);
      count += featureCount(patches[i], this.config.encoder);
    });
    if (names.length > 0) return { first, images: await this.encoder.features(patches) };
    return { first, images: { values: float32(new Float32Array(0), [0, this.config.encoder.outputSize]) } };
  }

  private shown({ ids, shows = [] }: Showing, first: ReadonlyMap<string, number>): ShownFeatures {
    const { encoder } = this.config;
    return showFeatures(
      ids.length,
      shows.map(({ at, picture }) => {
        const patches = this.patchesOf(picture);
        const columns = patches.columns / encoder.mergeSize;
        return { start: at, feature: first.get(picture)!, count: featureCount(patches, encoder), columns };
      }),
    );
  }

  private patchesOf(name: string): PicturePatches {
    const picture = this.known.get(name);
    if (!picture) throw new Error(`pictures: ${name} was not admitted`);
    return picture.patches;
  }
}
