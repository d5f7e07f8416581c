// The sessions of one network over packed tokens, made when they are first needed: one for each kind of graph, with and without shared
// beginnings, and for each number of parts of the output head. Gradients stay where they are computed; a parameter bank takes them over.
import type { Graph } from '../engine/graph';
import { Session, loweringOf } from '../engine/session';
import type { SessionOptions } from '../engine/session';
import { isGradient } from './policy-graphs';
import type { Network, PackedShape } from './policy-graphs';

export class PackedSessions {
  private readonly sessions = new Map<string, Promise<Session>>();

  constructor(
    private readonly network: Network,
    private readonly options: SessionOptions,
    private readonly checkpointed: boolean,
  ) {}

  /** The session of a graph; `kind` tells graphs of one network apart. */
  get(
    kind: string,
    { shared, chunks }: Pick<PackedShape, 'shared' | 'chunks'>,
    build: (network: Network, shape: PackedShape) => Graph,
  ): Promise<Session> {
    const key = [kind, shared, chunks].join();
    let session = this.sessions.get(key);
    if (!session) {
      const { network, options, checkpointed } = this;
      const graph = build(network, { lowering: loweringOf(options), shared, chunks, checkpointed });
      session = Session.create(graph, { ...options, folder: network.folder, resident: isGradient });
      this.sessions.set(key, session);
    }
    return session;
  }

  /** Others of the same network, of which none is made yet. */
  likewise(): PackedSessions {
    return new PackedSessions(this.network, this.options, this.checkpointed);
  }

  /** Closes all sessions and gives their memory back. */
  async release(): Promise<void> {
    for (const session of this.sessions.values()) await (await session).release();
    this.sessions.clear();
  }
}
