// The sessions of one network over packed tokens, made when they are first needed: one for each kind of graph, with and without shared
// beginnings. Gradients stay where they are computed; a parameter bank takes them over.
// On the host each session has an arena of its own, which gives nothing back: one for another number of parts of the output head is closed
// before the next is made, and where passes are large, one session is open at a time. Sessions compute the same bits when they are made anew.
import type { Graph } from '../engine/graph';
import { Session, loweringOf } from '../engine/session';
import type { SessionOptions, Tensor } from '../engine/session';
import type { DecoderConfig } from './decoder-config';
import { isGradient } from './policy-graphs';
import type { Network, PackedShape } from './policy-graphs';

/** Arenas are kept side by side while their passes take no more than this together, by `passBytes`: making a session takes some 0.1 s. */
export const arenasKept = 512 * 2 ** 20;

/** Numbers of a token and layer, besides attention's, that a pass holds; in multiples of the hidden size. */
const perToken = 16;

/** What the attention of a pass is computed over. */
export interface PassSize {
  tokens: number;
  /** Queries × keys of a head, over all rows. */
  scores: number;
}

/** About how many bytes the values of a pass take: of all layers where they are kept for a way back, else of one. */
export function passBytes(
  { heads, hiddenSize, layers }: Pick<DecoderConfig, 'heads' | 'hiddenSize' | 'layers'>,
  { tokens, scores }: PassSize,
  kept: boolean,
): number {
  return 4 * (kept ? layers : 1) * (heads * scores + perToken * hiddenSize * tokens);
}

/** The size of a pass by its feeds (packing.ts). */
export function passSize(feeds: Readonly<Record<string, Tensor>>, { heads }: Pick<DecoderConfig, 'heads'>): PassSize {
  const queries = feeds.query_rows.dims.reduce((product, size) => product * size, 1) / heads;
  const keys = feeds.key_rows.dims.at(-1)! + (feeds.key_prefixes?.dims.at(-1) ?? 0);
  return { tokens: feeds.ids.dims[0], scores: queries * keys };
}

interface Held {
  session: Promise<Session>;
  chunks: number;
  /** Of the largest pass so far. */
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
   * The session of a graph, for a pass of this size (`kept` where it has a way back); sessions got before may be closed by it, so that
   * nothing of theirs must be in use. `kind` tells graphs of one network apart.
   */
  async get(
    kind: string,
    { shared, chunks }: Pick<PackedShape, 'shared' | 'chunks'>,
    build: (network: Network, shape: PackedShape) => Graph,
    { kept = false, ...size }: PassSize & { kept?: boolean } = { tokens: 0, scores: 0 },
  ): Promise<Session> {
    const { network, options, checkpointed } = this;
    const onDevice = options.provider === 'webgpu'; // whose memory is not in question, and whose outputs outlive their session's use
    const key = [kind, shared, ...(onDevice ? [chunks] : [])].join();
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
    const graph = build(network, { lowering: loweringOf(options), shared, chunks, checkpointed });
    const session = Session.create(graph, { ...options, folder: network.folder, resident: isGradient });
    this.sessions.set(key, { session, chunks, bytes });
    return session;
  }

  /** Others of the same network, of which none is made yet. */
  likewise(): PackedSessions {
    return new PackedSessions(this.network, this.options, this.checkpointed);
  }

  /** Closes all sessions and gives their memory back. */
  async release(): Promise<void> {
    for (const [name, held] of this.sessions) await this.close(name, held);
  }

  private async close(name: string, held: Held): Promise<void> {
    this.sessions.delete(name);
    await (await held.session).release();
  }
}
