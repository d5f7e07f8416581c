// Sessions of a vision encoder: encode pictures, and add the gradients of the encoder's parameters to a bank. Pictures
// are processed in batches with a bounded number of attention scores. A session is created when it is first needed.
import { float32, loweringOf, Session } from '../../engine/session/session';
import type { SessionOptions } from '../../engine/session/session';
import type { ImageFeatures } from '../policy';
import type { ParameterBank } from '../weights/parameter-bank';
import { featureWidth } from './encoder-config';
import { encoderFeeds, featureCount } from './encoder-feeds';
import { encodeGraph, encoderGradientGraph } from './encoder-graphs';
import type { EncoderNetwork } from './encoder-graphs';
import type { EncoderShape } from './encoder-shape';
import type { PatchGrid, PicturePatches } from './patches';

const defaultScores = 2 ** 22;
/** With narrower hidden states, an operator is faster on one thread than divided among several; its results are the same. */
const narrowest = 256;

/**
 * Returns how many pictures of one size may be encoded in one call without changing a bit of their features. Calls of
 * narrow encoders are short, so that their fixed cost counts. Such a call has one thread, and each activation has a
 * multiple of 64 elements per picture (a picture has at least four patches). Vector instructions therefore process the same
 * elements, whichever pictures are before them.
 */
export const mostTogether = ({ hiddenSize, intermediateSize, mergeSize }: EncoderShape): number =>
  isNarrow(hiddenSize) && mergeSize === 2 && hiddenSize % 16 === 0 && intermediateSize % 16 === 0 ? 8 : 1;

const isNarrow = (hiddenSize: number): boolean => hiddenSize < narrowest;

export interface PictureEncoderOptions extends SessionOptions {
  /** Whether the layers' intermediate values are recomputed in the backward pass instead of being kept in memory. */
  checkpointed?: boolean;
  /** Maximum number of attention scores of one head in a batch of several pictures; 2²² by default. */
  maxScores?: number;
}

export class PictureEncoder {
  private encoding?: Promise<Session>;
  private training?: Promise<Session>;

  /** `bank` contains the encoder's trained parameters, if it has any. */
  constructor(
    private readonly network: EncoderNetwork,
    private readonly bank: Pick<ParameterBank, 'feeds' | 'accumulate'> | undefined,
    private readonly options: PictureEncoderOptions,
  ) {}

  /**
   * Encodes pictures, or tiles of pictures. The features of each are consecutive, in the order of `parts`. If the encoder
   * is trained, the result's `backward` adds the gradients of its parameters to the bank.
   */
  async features(parts: readonly PicturePatches[]): Promise<ImageFeatures> {
    const { bank, network, options } = this;
    const width = featureWidth(network.config);
    const total = parts.reduce((sum, part) => sum + featureCount(part, network.config), 0);
    const values = new Float32Array(total * width);
    let at = 0;
    for (const batch of encoderBatches(parts, options.maxScores)) {
      const { feeds, counts } = encoderFeeds(network.config, batch);
      const session = await (this.encoding ??= this.encodingSession());
      const { features } = await session.run({ ...bank?.feeds(), ...feeds });
      const own = width * counts.reduce((sum, count) => sum + count, 0);
      values.set((features.data as Float32Array).subarray(0, own), at);
      at += own;
    }
    return {
      values: float32(values, [total, width]),
      ...(bank && { backward: gradient => this.addGradient(parts, gradient) }),
    };
  }

  async release(): Promise<void> {
    const sessions = [this.encoding, this.training];
    [this.encoding, this.training] = [undefined, undefined];
    for (const session of sessions) await (await session)?.release();
  }

  /**
   * Adds the gradients of the encoder's parameters to the bank.
   * @param gradient of the features of `parts`, [features, width]
   */
  async addGradient(parts: readonly PicturePatches[], gradient: Float32Array): Promise<void> {
    const { bank, network, options } = this;
    if (!bank) throw new Error('picture encoder: a frozen encoder has no gradient');
    const width = featureWidth(network.config);
    let at = 0;
    for (const batch of encoderBatches(parts, options.maxScores)) {
      const { feeds, counts } = encoderFeeds(network.config, batch);
      const session = await (this.training ??= this.session(
        encoderGradientGraph(network, loweringOf(options), options.checkpointed ?? false),
      ));
      const own = width * counts.reduce((sum, count) => sum + count, 0);
      const rows = feeds.patches.dims[0] / network.config.mergeSize ** 2;
      const given = new Float32Array(rows * width); // the dummy square has no gradient
      given.set(gradient.subarray(at, at + own));
      at += own;
      await bank.accumulate(
        await session.run({ ...bank.feeds(), ...feeds, feature_gradients: float32(given, [rows, width]) }),
      );
    }
  }

  private encodingSession(): Promise<Session> {
    const { network, options } = this;
    const threads = isNarrow(network.config.hiddenSize) ? 1 : options.threads;
    return this.session(encodeGraph(network, loweringOf(options)), threads);
  }

  private session(graph: ReturnType<typeof encodeGraph>, threads = this.options.threads): Promise<Session> {
    return Session.create(graph, { ...this.options, threads, folder: this.network.folder });
  }
}

/** Splits pictures into batches whose attention scores, padded to the largest picture, stay within the limit. */
export function encoderBatches<Grid extends PatchGrid>(parts: readonly Grid[], maxScores = defaultScores): Grid[][] {
  const all: Grid[][] = [];
  let longest = 0;
  for (const part of parts) {
    const patches = part.rows * part.columns;
    const batch = all.at(-1);
    longest = Math.max(longest, patches);
    if (batch && (batch.length + 1) * longest ** 2 <= maxScores) {
      batch.push(part);
    } else {
      all.push([part]);
      longest = patches;
    }
  }
  return all;
}
