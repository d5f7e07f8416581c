// Estimates the memory of a graph without running the graph. Visits the nodes in the order in which onnxruntime's
// sequential executor runs them. Computes the bytes of each value from its shape and finds the peak of live bytes. A
// value is live from the node that produces it to the last node that reads it; an output is live to the end. Inputs and
// constants are not counted, because they exist before the run. onnxruntime's GraphViewer determines the order of the
// nodes (see `executionOrder` in onnx-writer.ts).
import type { Dim, ElementType, Graph, Node } from './graph';
import { executionOrder } from './onnx-writer';

const elementBytes: Record<ElementType, number> = {
  float32: 4,
  float16: 2,
  bfloat16: 2,
  int64: 8,
  int32: 4,
  int8: 1,
  uint8: 1,
  bool: 1,
};

/** Operations whose result is their first input, possibly with another shape; the result uses the input's memory. */
const aliases = new Set(['Reshape', 'Squeeze', 'Unsqueeze', 'Identity']);
/** Operations whose result may overwrite an input. */
const inPlace = new Set([
  'Add',
  'Sub',
  'Mul',
  'Div',
  'Neg',
  'Exp',
  'Sqrt',
  'Abs',
  'Sigmoid',
  'Clip',
  'Softmax',
  'Sin',
  'Floor',
  'Cast',
]);
/** Operations whose output shape depends on the content of an input. */
const measured = new Set(['Split', 'Concat', 'Expand', 'Slice']);

/**
 * Returns the size of a symbolic dimension; undefined if unknown. For a sum of products such as `b*t+n`, the function
 * may return undefined; the size is then computed from the sizes of `b`, `t` and `n`.
 */
export type Sizes = (symbol: string) => number | undefined;

/** Returns the nodes in onnxruntime's execution order. */
function runOrder(graph: Graph): Node[] {
  const nodes = executionOrder(graph);
  const index = new Map(nodes.map((node, i) => [node, i]));
  const makerOf = new Map(nodes.flatMap(node => node.outputs.map(name => [name, node] as const)));
  const read = new Set(nodes.flatMap(node => node.inputs));
  const makers = (node: Node): Node[] => [...new Set(node.inputs.flatMap(name => makerOf.get(name) ?? []))];
  const order: Node[] = [];
  const visited = new Set<Node>();
  const stack = nodes.filter(node => !node.outputs.some(name => read.has(name))).map(node => ({ node, leave: false }));
  for (let entry = stack.pop(); entry; entry = stack.pop()) {
    const { node, leave } = entry;
    if (leave) order.push(node);
    else if (!visited.has(node)) {
      visited.add(node);
      stack.push({ node, leave: true });
      for (const maker of makers(node).sort((a, b) => index.get(a)! - index.get(b)!))
        if (!visited.has(maker)) stack.push({ node: maker, leave: false });
    }
  }
  return order;
}

export interface GraphMemory {
  /** Maximum bytes that onnxruntime has allocated at the same time. */
  peak: number;
  /** Bytes of the outputs, which are live to the end. */
  outputs: number;
}

/**
 * Returns a function that computes the memory of the graph for given sizes of its dimensions. Execution order and
 * buffer sharing do not depend on sizes and are computed once. The returned function throws if a dimension has no size.
 * A larger size never gives a smaller result.
 */
export function graphMemory(graph: Graph): (sizes: Sizes) => GraphMemory {
  const order = runOrder(graph);
  const bufferOf = planBuffers(graph, order);
  const lastUse = new Map<string, number>();
  order.forEach(({ inputs, outputs }, i) =>
    [...inputs, ...outputs].forEach(name => lastUse.set(bufferOf.get(name) ?? name, i)),
  );
  const results = [...graph.sources.values()];
  for (const name of results) lastUse.set(bufferOf.get(name) ?? name, Infinity);
  const made = new Set<string>();
  /** For each node: the buffers allocated at the node, and the buffers freed after the node. */
  const steps = order.map(({ inputs, outputs }, i) => {
    const begin = [...new Set(outputs.map(name => bufferOf.get(name)!))].filter(buffer => !made.has(buffer));
    for (const buffer of begin) made.add(buffer);
    const touched = new Set([...inputs, ...outputs].map(name => bufferOf.get(name) ?? name));
    return { begin, end: [...touched].filter(buffer => made.has(buffer) && lastUse.get(buffer)! === i) };
  });
  return sizes => {
    const bytesOf = (name: string): number => {
      const { type, dims } = graph.values.get(name)!;
      return dims.reduce<number>((product, dim) => product * sizeOf(dim, sizes), elementBytes[type]);
    };
    let alive = 0;
    let peak = 0;
    for (const { begin, end } of steps) {
      for (const buffer of begin) alive += bytesOf(buffer);
      peak = Math.max(peak, alive);
      for (const buffer of end) alive -= bytesOf(buffer);
    }
    return { peak, outputs: results.reduce((sum, name) => sum + bytesOf(bufferOf.get(name)!), 0) };
  };
}

/**
 * Returns the buffer of each value. A buffer has the name of the first value that is stored in it. onnxruntime decides
 * before the run which values share a buffer. A result is stored in the buffer of an input that it may overwrite, or
 * else in the buffer of a value that no later node reads. The result and the value that it replaces must have the same
 * shape, which onnxruntime must be able to infer. A shared buffer stays allocated from the node that produces its first
 * value to the last node that reads its last value.
 */
function planBuffers(graph: Graph, order: readonly Node[]): Map<string, string> {
  const known = knownShapes(graph, order);
  const shapes = new Map<string, string>();
  for (const name of known) {
    const value = graph.values.get(name);
    if (value && value.dims.length > 0) shapes.set(name, `${elementBytes[value.type]}:${value.dims.join()}`);
  }
  const outputs = new Set(graph.sources.values());
  const bufferOf = new Map<string, string>();
  const uses = new Map<string, number>();
  for (const { inputs } of order) for (const name of inputs) uses.set(name, (uses.get(name) ?? 0) + 1);
  for (const name of outputs) uses.set(name, (uses.get(name) ?? 0) + 1);
  const free = new Map<string, string[]>(); // by shape: buffers without remaining readers, newest last
  const setFree = (buffer: string): void => {
    const shape = shapes.get(buffer);
    if (shape === undefined) return;
    const others = free.get(shape);
    if (others) others.push(buffer);
    else free.set(shape, [buffer]);
  };
  const release = (name: string): void => {
    const buffer = bufferOf.get(name);
    if (buffer === undefined) return; // an input or a constant
    const left = uses.get(buffer)! - 1;
    uses.set(buffer, left);
    if (left === 0) setFree(buffer);
  };
  const reuse = (name: string, buffer: string): void => {
    bufferOf.set(name, buffer);
    uses.set(buffer, (uses.get(buffer) ?? 0) + (uses.get(name) ?? 0));
  };
  for (const { op, inputs, outputs: made } of order) {
    for (const name of made) {
      const shape = shapes.get(name);
      const first = bufferOf.get(inputs[0]);
      const overwritten =
        inPlace.has(op) && shape !== undefined
          ? inputs.find(input => {
              const buffer = bufferOf.get(input);
              return buffer !== undefined && uses.get(buffer) === 1 && shapes.get(input) === shape;
            })
          : undefined;
      if (outputs.has(name)) bufferOf.set(name, name);
      else if (aliases.has(op) && first !== undefined) reuse(name, first);
      else if (overwritten !== undefined) reuse(name, bufferOf.get(overwritten)!);
      else {
        const old = shape === undefined ? undefined : free.get(shape)?.pop();
        if (old === undefined) bufferOf.set(name, name);
        else reuse(name, old);
      }
    }
    for (const name of inputs) release(name);
    for (const name of made) if (!uses.get(bufferOf.get(name)!)) setFree(bufferOf.get(name)!);
  }
  return bufferOf;
}

/** Returns the values whose shapes onnxruntime can infer before the run, as numbers or symbols. */
function knownShapes({ inputs, constants, mapped, values }: Graph, order: readonly Node[]): Set<string> {
  const known = new Set([...inputs, ...[...constants, ...mapped].map(({ value }) => value)].map(({ name }) => name));
  known.add(''); // an omitted optional input
  for (const node of order) {
    const [first, second] = node.inputs;
    const from = values.get(first);
    const kept = (name: string): boolean =>
      values.get(name)!.dims.every((dim, i) => typeof dim === 'number' || dim === from?.dims[i]);
    for (const name of node.outputs) {
      if (node.op === 'Reshape' && !(known.has(first) && kept(name))) continue;
      if (node.op === 'Gather' && !known.has(second)) continue; // the output shape depends on the indices
      if (node.op !== 'Reshape' && node.op !== 'Gather') {
        if (measured.has(node.op) || !node.inputs.every(input => known.has(input))) continue;
      }
      known.add(name);
    }
  }
  return known;
}

function sizeOf(dim: Dim, sizes: Sizes): number {
  if (typeof dim === 'number') return dim;
  const whole = sizes(dim);
  if (whole !== undefined) return whole;
  const factor = (text: string): number => {
    const size = /^\d+$/.test(text) ? Number(text) : sizes(text);
    if (size === undefined) throw new Error(`graph memory: the dimension ${dim} has no size`);
    return size;
  };
  const product = (text: string): number => text.split('*').reduce((result, part) => result * factor(part), 1);
  return dim.split('+').reduce((sum, part) => sum + product(part), 0);
}
