// The image features that samples and rows of the engine show. A picture is read from the run's store by its name. Its
// features have the same bits whatever is shown with it: it is encoded alone, or, in a narrow encoder, with pictures of its
// size. Features are kept by name, up to a limit, so one picture is encoded once for all turns, group members and calls; if
// the encoder is trained, they are kept until its weights change.
import { join } from 'node:path';
import { appendAll } from '../../common/lists';
import { UserError } from '../../common/user-error';
import type { PicturedTokens } from '../../engine/generation-calls';
import { float32 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { ShownFeatures, ShownPicture } from '../../engine/training-samples';
import { readBoundedSync } from '../../node/bounded-file';
import type { ImageFeatures } from '../policy';
import type { ParameterBank } from '../weights/parameter-bank';
import { featureWidth } from './encoder-config';
import { maxPictureBytes, PictureError } from './picture';
import { decodePicture } from './picture-decoder';
import { mostTogether } from './picture-encoder';
import type { PictureEncoder } from './picture-encoder';
import { patchWidth } from './encoder-shape';
import type { FeatureLayout } from './picture-attribution';
import { pictureGrids } from './picture-grids';
import { picturePatches } from './patches';
import type { PicturePatches } from './patches';
import type { ProcessorOptions } from './processor-options';
import { showFeatures } from './shown-features';
import type { PlacedPicture } from './shown-features';
import { tilePatches } from './tile-patches';
import { pictureTiles } from './tiles';
import type { TileGrid } from './tiles';
import type { VisionConfig } from './vision-config';

/**
 * Values of the memory in which pictures are cut into patches, for several small pictures; larger ones get their own. New
 * memory for each picture would make the garbage collector run a tenth of the time.
 */
const scratchValues = 2 ** 19;

/** Maximum bytes of the features that are kept. */
export const keptFeatureBytes = 512 * 2 ** 20;

interface Encoded {
  layout: FeatureLayout;
  /** Number of features. */
  count: number;
  /** [count, width] */
  values: Float32Array;
}

/** A kept picture. */
interface Kept {
  encoded: Promise<Encoded>;
  /** Bytes of its features; undefined while it is being encoded. */
  bytes: number | undefined;
}

/** A picture that is to be encoded. */
interface Asked {
  name: string;
  resolve(encoded: Encoded): void;
  reject(error: unknown): void;
}

/** The patches of a picture, or of each of its tiles. */
interface Cut {
  asked: Asked;
  patches: PicturePatches[];
  tiles: TileGrid;
}

/** Tokens that may show pictures. */
export interface Showing {
  ids: ArrayLike<number>;
  shows?: readonly ShownPicture[] | undefined;
}

export class PictureFeatures {
  private readonly kept = new Map<string, Kept>();
  /** Bytes of the kept features of pictures whose encoding is done. */
  private bytes = 0;
  /** Pictures that nobody has begun to encode, in the order in which they were asked for. */
  private readonly waiting: Asked[] = [];
  /** The encoding of the pictures that were asked for until now; never rejected. */
  private last: Promise<void> = Promise.resolve();
  /** Patches of the pictures that are being encoded. */
  private scratch: Float32Array | undefined;
  /** Version of the encoder's weights that encoded the kept features. */
  private version = 0;

  /**
   * @param folder absolute path of the folder that contains the pictures
   * @param bank the encoder's trained parameters; undefined if it is frozen
   */
  constructor(
    private readonly folder: string,
    private readonly config: VisionConfig,
    private readonly processor: ProcessorOptions,
    private readonly encoder: Pick<PictureEncoder, 'features' | 'addGradient'>,
    private readonly bank?: Pick<ParameterBank, 'version'>,
    private readonly mostBytes = keptFeatureBytes,
  ) {}

  /** Returns the samples with what their tokens show, and the features of all their pictures; none without pictures. */
  async ofSamples<S extends Showing>(
    samples: readonly S[],
  ): Promise<{ samples: (S & { pictures?: ShownFeatures })[]; images?: ImageFeatures }> {
    const names = [...new Set(samples.flatMap(({ shows = [] }) => shows.map(({ picture }) => picture)))];
    if (names.length === 0) return { samples: [...samples] };
    const { encoded, first, values } = await this.joined(names);
    const width = featureWidth(this.config.encoder);
    return {
      samples: samples.map(sample => ({
        ...sample,
        ...(sample.shows && sample.shows.length > 0 && { pictures: this.shown(sample, encoded, first) }),
      })),
      images: {
        values: float32(values, [values.length / width, width]),
        ...(this.bank && { backward: gradient => this.addGradients(names, first, gradient) }),
      },
    };
  }

  /**
   * Returns what a sample's tokens show, with own features for each entry of its `shows`, even if two of them show the same
   * picture, so that the gradients of the two differ.
   */
  async ofShowings(
    sample: Showing & { shows: readonly ShownPicture[] },
  ): Promise<{ pictures: ShownFeatures; values: Tensor; layouts: FeatureLayout[] }> {
    const encoded = await Promise.all(sample.shows.map(({ picture }) => this.encoded(picture)));
    const width = featureWidth(this.config.encoder);
    const values = new Float32Array(encoded.reduce((sum, { count }) => sum + count, 0) * width);
    const placed: PlacedPicture[] = [];
    let feature = 0;
    sample.shows.forEach(({ at }, i) => {
      values.set(encoded[i].values, feature * width);
      appendAll(placed, this.placed(sample.ids, at, encoded[i], feature));
      feature += encoded[i].count;
    });
    return {
      pictures: showFeatures(sample.ids.length, placed),
      values: float32(values, [feature, width]),
      layouts: encoded.map(({ layout }) => layout),
    };
  }

  /**
   * Returns what appended ids show, per row; undefined for rows without pictures. Rows that show the same pictures share
   * their features.
   * @param starts position of each row's first id
   */
  async ofRows(rows: readonly Showing[], starts: readonly number[]): Promise<(PicturedTokens | undefined)[]> {
    const shared = new Map<string, ReturnType<PictureFeatures['joined']>>();
    return Promise.all(
      rows.map(async (row, i) => {
        const names = [...new Set((row.shows ?? []).map(({ picture }) => picture))];
        if (names.length === 0) return undefined;
        const key = names.join();
        const joined = shared.get(key) ?? this.joined(names);
        shared.set(key, joined);
        const { encoded, first, values } = await joined;
        const { features, positions } = this.shown(row, encoded, first);
        return { values, features, positions: positions.map(position => position + starts[i]) };
      }),
    );
  }

  /**
   * Encodes a blank picture and discards its features.
   * @returns the number of its image tokens
   */
  async tryEncoding(size: { width: number; height: number }): Promise<number> {
    const { encoder } = this.config;
    const blank = pictureGrids(size, encoder, this.processor).map(({ rows, columns }): PicturePatches => ({
      rows,
      columns,
      values: new Float32Array(rows * columns * patchWidth(encoder)),
    }));
    const { values } = await this.encoder.features(blank);
    return values.dims[0];
  }

  /** Returns the pictures' features one after the other, and the index of the first feature of each picture. */
  private async joined(
    names: readonly string[],
  ): Promise<{ encoded: Map<string, Encoded>; first: Map<string, number>; values: Float32Array }> {
    const all = await Promise.all(names.map(name => this.encoded(name)));
    const encoded = new Map(names.map((name, i) => [name, all[i]]));
    const first = new Map<string, number>();
    const width = featureWidth(this.config.encoder);
    let count = 0;
    for (const [name, picture] of encoded) {
      first.set(name, count);
      count += picture.count;
    }
    const values = new Float32Array(count * width);
    for (const [name, picture] of encoded) values.set(picture.values, first.get(name)! * width);
    return { encoded, first, values };
  }

  /** Places the pictures of tokens; the tokens of a part are consecutive, and the parts of a picture follow each other. */
  private shown(
    { ids, shows = [] }: Showing,
    encoded: ReadonlyMap<string, Encoded>,
    first: ReadonlyMap<string, number>,
  ): ShownFeatures {
    const placed = shows.flatMap(({ at, picture }) => this.placed(ids, at, encoded.get(picture)!, first.get(picture)!));
    return showFeatures(ids.length, placed);
  }

  /** Places the parts of a picture whose first token is at index `at` or later, and whose first feature is `feature`. */
  private placed(ids: ArrayLike<number>, at: number, { layout }: Encoded, feature: number): PlacedPicture[] {
    const { imageToken, decoder } = this.config;
    let start = at;
    return layout.parts.map(({ rows, columns }): PlacedPicture => {
      while (start < ids.length && ids[start] !== imageToken) start++;
      const count = rows * columns;
      const part = { start, feature, count, columns: decoder.rotaryAxes ? columns : undefined };
      feature += count;
      start += count;
      return part;
    });
  }

  private encoded(name: string): Promise<Encoded> {
    if (this.bank && this.bank.version !== this.version) {
      this.kept.clear();
      [this.bytes, this.version] = [0, this.bank.version];
    }
    const known = this.kept.get(name);
    if (known) {
      this.kept.delete(name); // the least recently used picture is the first
      this.kept.set(name, known);
      return known.encoded;
    }
    const kept: Kept = { encoded: this.encodeNext(name), bytes: undefined };
    this.kept.set(name, kept);
    kept.encoded.then(
      ({ values }) => this.keep(kept, name, values.byteLength),
      () => this.kept.get(name) === kept && this.kept.delete(name),
    );
    return kept.encoded;
  }

  /** Counts the bytes of a picture whose encoding is done, and drops the least recently used ones beyond the limit. */
  private keep(kept: Kept, name: string, bytes: number): void {
    if (this.kept.get(name) !== kept) return; // the encoder's weights have changed
    kept.bytes = bytes;
    this.bytes += bytes;
    for (const [other, { bytes: freed }] of this.kept) {
      if (this.bytes <= this.mostBytes) return;
      if (other === name || freed === undefined) continue;
      this.kept.delete(other);
      this.bytes -= freed;
    }
  }

  /** Encodes a picture after those that were asked for earlier, so only a few pictures' patches are in memory. */
  private encodeNext(name: string): Promise<Encoded> {
    const encoded = new Promise<Encoded>((resolve, reject) => this.waiting.push({ name, resolve, reject }));
    this.last = this.last.then(() => this.encodeWaiting());
    return encoded;
  }

  /** Encodes the pictures that have waited longest; a picture that fails does not affect the others. */
  private async encodeWaiting(): Promise<void> {
    const cuts: Cut[] = [];
    let used = 0;
    const allocate = (length: number): Float32Array => {
      if (used + length > scratchValues) return new Float32Array(length);
      this.scratch ??= new Float32Array(scratchValues);
      return this.scratch.subarray(used, (used += length));
    };
    for (const asked of this.waiting.splice(0, mostTogether(this.config.encoder)))
      try {
        cuts.push({ asked, ...(await this.patches(asked.name, allocate)) });
      } catch (error) {
        asked.reject(error);
      }
    for (const group of ofOneSize(cuts))
      try {
        await this.encode(group);
      } catch (error) {
        for (const { asked } of group) asked.reject(error);
      }
  }

  /** Encodes pictures in one call of the encoder. */
  private async encode(group: readonly Cut[]): Promise<void> {
    const { mergeSize } = this.config.encoder;
    const width = featureWidth(this.config.encoder);
    const { values } = await this.encoder.features(group.flatMap(({ patches }) => patches));
    let at = 0;
    for (const { asked, patches, tiles } of group) {
      const parts = patches.map(part => ({ rows: part.rows / mergeSize, columns: part.columns / mergeSize }));
      const count = parts.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
      // A copy, so that the features of other pictures can be freed.
      const own = (values.data as Float32Array).slice(at * width, (at += count) * width);
      asked.resolve({ layout: { parts, tiles }, count, values: own });
    }
  }

  /** Returns the patches of a stored picture, or of each of its tiles. `allocate` returns memory for patches. */
  private async patches(
    name: string,
    allocate?: (length: number) => Float32Array,
  ): Promise<{ patches: PicturePatches[]; tiles: TileGrid }> {
    const { encoder } = this.config;
    const file = join(this.folder, name);
    try {
      // onnxruntime blocks this thread for seconds, so a read with a deadline would fail although the disk responds.
      const picture = await decodePicture(readBoundedSync(file, { most: maxPictureBytes, within: this.folder }));
      if (this.processor.kind === 'patches')
        return { patches: [picturePatches(picture, this.processor, allocate)], tiles: { rows: 0, columns: 0 } };
      if (encoder.kind !== 'siglip') throw new Error('pictures: an encoder of tiles must be SigLIP');
      const tiles = pictureTiles(picture, this.processor);
      return { patches: tilePatches(tiles, encoder), tiles: { rows: tiles.rows, columns: tiles.columns } };
    } catch (error) {
      const reason = error instanceof PictureError ? error.message : (error as Error).message;
      throw new UserError(
        `engine: the picture ${file} cannot be read (${reason}): put it back, or go back to an earlier checkpoint`,
      );
    }
  }

  private async addGradients(
    names: readonly string[],
    first: ReadonlyMap<string, number>,
    gradient: Float32Array,
  ): Promise<void> {
    const width = featureWidth(this.config.encoder);
    for (const [i, name] of names.entries()) {
      const end = i + 1 < names.length ? first.get(names[i + 1])! * width : gradient.length;
      const own = gradient.subarray(first.get(name)! * width, end);
      // A picture that no sample of a part of the batch shows has no gradient.
      if (own.some(x => x !== 0)) await this.encoder.addGradient((await this.patches(name)).patches, own);
    }
  }
}

/**
 * Splits pictures, in their order, wherever the size changes. A picture of one merged square is alone: its product of one
 * row and a matrix is computed otherwise than that of several rows.
 */
function ofOneSize(cuts: readonly Cut[]): Cut[][] {
  const groups: Cut[][] = [];
  const size = ({ patches }: Cut): string => patches.map(({ rows, columns }) => `${rows}×${columns}`).join();
  for (const cut of cuts) {
    const group = groups.at(-1);
    const isSquare = cut.patches.some(({ rows, columns }) => rows * columns <= 4);
    if (group && !isSquare && size(group[0]) === size(cut)) group.push(cut);
    else groups.push([cut]);
  }
  return groups;
}
