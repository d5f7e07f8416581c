// Builds a graph, runs it once and returns its outputs as plain arrays, for tests of operations.
import { Graph } from '../../../../extension/engine/graph/graph';
import type { Lowering, Value } from '../../../../extension/engine/graph/graph';
import { Session } from '../../../../extension/engine/session/session';
import type { Tensor } from '../../../../extension/engine/session/session';

/** Declares an input of the graph and feeds it. */
export type Feed = (name: string, tensor: Tensor, dims?: Value['dims']) => Value;

export async function runGraph(
  build: (g: Graph, feed: Feed) => Record<string, Value>,
  lowering: Lowering = 'cpu',
): Promise<Record<string, number[]>> {
  const g = new Graph('test', lowering);
  const feeds: Record<string, Tensor> = {};
  const outputs = build(g, (name, tensor, dims = tensor.dims) => {
    feeds[name] = tensor;
    return g.input(name, tensor.type, dims);
  });
  for (const [name, value] of Object.entries(outputs)) g.output(name, value);
  const session = await Session.create(g, { threads: 1 });
  try {
    const result = await session.run(feeds);
    return Object.fromEntries(Object.entries(result).map(([name, { data }]) => [name, Array.from(data, Number)]));
  } finally {
    await session.release();
  }
}
