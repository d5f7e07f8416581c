// The sessions of one network over packed tokens. For each kind of graph, there is one session for each combination of
// three properties: whether a pass has shared prefixes, whether its last layer is trimmed, and whether it shows pictures. A session is created when it is first needed. Gradients stay on
// their device, and a parameter bank takes ownership of them. On the host, each session has its own memory pool of
// onnxruntime (arena), which never shrinks. If a pass needs another number of output-head chunks than the session was
// created for, the session is closed and a new session is created. With large passes, only one session is open at a
// time. Recreated sessions compute bit-identical results.
import type { Graph } from '../../engine/graph/graph';
import { Session, loweringOf } from '../../engine/session/session';
import type { SessionOptions, Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import { featuresInput } from './picture-feeds';
import { gradientName, isGradient } from './policy-graphs';
import type { Network, PackedShape } from './policy-graphs';

/**
 * Several sessions stay open if the sum of their pass sizes (`passBytes`) is at most this number of bytes; otherwise
 * only one session stays open. Creating a session takes about 0.1 s.
 */
export const arenasKept = 512 * 2 ** 20;

/** Number of values that a pass stores per token and layer, as a multiple of the hidden size; attention is excluded. */
const perToken = 16;

export interface PassSize {
  tokens: number;
  /** Number of query-key pairs of one head, summed over all rows. */
  scores: number;
}

/**
 * Returns the approximate bytes of the values that a pass computes. With `kept`, the values of all layers stay in
 * memory until the backward pass; otherwise only the values of one layer are counted.
 */
export function passBytes(
  { heads, hiddenSize, layers }: Pick<DecoderConfig, 'heads' | 'hiddenSize' | 'layers'>,
  { tokens, scores }: PassSize,
  kept: boolean,
): number {
  return 4 * (kept ? layers : 1) * (heads * scores + perToken * hiddenSize * tokens);
}

/** Returns the size of a pass from its feeds (packing.ts). */
export function passSize(feeds: Readonly<Record<string, Tensor>>, { heads }: Pick<DecoderConfig, 'heads'>): PassSize {
  const queries = feeds.query_rows.dims.reduce((product, size) => product * size, 1) / heads;
  const keys = feeds.key_rows.dims.at(-1)! + (feeds.key_prefixes?.dims.at(-1) ?? 0);
  return { tokens: feeds.ids.dims[0], scores: queries * keys };
}

/** Gradients stay on the device, except those of image features, which the encoder's graph reads. */
const isResident = (output: string): boolean => isGradient(output) && output !== gradientName(featuresInput);

interface Held {
  session: Promise<Session>;
  chunks: number;
  /** Bytes of the largest pass run so far. */
  bytes: number;
}

export class PackedSessions {
  private readonly sessions = new Map<string, Held>();

  constructor(
    private readonly network: Network,
    private readonly options: SessionOptions,
    private readonly checkpointed: boolean,
  ) {}

  /**
   * Returns the session of a graph for a pass of this size. `kept` is true if a backward pass follows. The call may
   * close sessions that were returned earlier, so the outputs of these sessions must no longer be in use. `kind`
   * distinguishes the graphs of a network.
   */
  async get(
    kind: string,
    { shared, trimmed = false, pictures, chunks }: Pick<PackedShape, 'shared' | 'trimmed' | 'pictures' | 'chunks'>,
    build: (network: Network, shape: PackedShape) => Graph,
    { kept = false, ...size }: PassSize & { kept?: boolean } = { tokens: 0, scores: 0 },
  ): Promise<Session> {
    const { network, options, checkpointed } = this;
    const onDevice = options.provider === 'webgpu'; // needs no arena limit; outputs may outlive the call
    const key = [kind, shared, trimmed, pictures, ...(onDevice ? [chunks] : [])].join();
    const bytes = passBytes(network.config, size, kept && !checkpointed);
    const known = this.sessions.get(key);
    const own = known?.chunks === chunks ? known : undefined;
    if (!onDevice) {
      const others = [...this.sessions].filter(([, held]) => held !== own);
      const together = others.reduce((sum, [, held]) => sum + held.bytes, Math.max(bytes, own?.bytes ?? 0));
      for (const [name, held] of others) if (name === key || together > arenasKept) await this.close(name, held);
    }
    if (own) {
      own.bytes = Math.max(own.bytes, bytes);
      return own.session;
    }
    const graph = build(network, { lowering: loweringOf(options), shared, trimmed, pictures, chunks, checkpointed });
    const session = Session.create(graph, { ...options, folder: network.folder, resident: isResident });
    this.sessions.set(key, { session, chunks, bytes });
    return session;
  }

  /** Returns a separate, empty set of sessions for the same network. */
  withSameOptions(): PackedSessions {
    return new PackedSessions(this.network, this.options, this.checkpointed);
  }

  /** Closes all sessions and frees their memory. */
  async release(): Promise<void> {
    for (const [name, held] of this.sessions) await this.close(name, held);
  }

  private async close(name: string, held: Held): Promise<void> {
    this.sessions.delete(name);
    await (await held.session).release();
  }
}
