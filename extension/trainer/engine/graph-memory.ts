// How much memory running a graph takes, without running it: the graph's nodes in the order in which onnxruntime's sequential executor
// runs them, each value's bytes from its shape, and the most bytes alive at a time. A value lives from the node that makes it to its last
// reader; an output lives to the end. Inputs and constants are not counted: they are there before.
// The order is onnxruntime's GraphViewer's: depth first from the leaves, the last leaf first, the latest input first.
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

/** Operations whose result is their first input under another shape, in the same memory. */
const aliases = new Set(['Reshape', 'Squeeze', 'Unsqueeze', 'Identity']);
/** Operations whose result may overwrite an input. */
const inPlace = new Set([
  ...['Add', 'Sub', 'Mul', 'Div', 'Neg', 'Exp', 'Sqrt', 'Abs', 'Sigmoid', 'Clip', 'Softmax', 'Sin', 'Floor', 'Cast'],
]);
/** Operations whose result's shape depends on the content of an input. */
const measured = new Set(['Split', 'Concat', 'Expand', 'Slice']);

/** Number of elements of symbolic dimensions: a symbol by its own name, or sums of products of symbols and numbers. */
export type Sizes = (symbol: string) => number | undefined;

/** Nodes in the order in which they run. */
export function runOrder(graph: Graph): Node[] {
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
  /** The most bytes that onnxruntime holds at a time. */
  peak: number;
  /** Bytes of the outputs, which live to the end. */
  outputs: number;
}

/**
 * How much memory a graph takes at given sizes. What does not depend on them, the order and who shares a buffer with whom, is worked out
 * once. The function throws where a dimension has no size; what it gives never falls where a size grows.
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
  /** For each node the buffers that are there from it on, and those that are gone after it. */
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
 * The buffer of each value, named after the value it was made for: onnxruntime decides before it runs which values share one. A
 * result takes the buffer of an input that it may overwrite, else of a value that is read no more, where both have the same
 * shape as far as onnxruntime knows shapes; such a buffer is held until its last user is done, also while nobody uses it.
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
  const free = new Map<string, string[]>(); // by shape: buffers that nobody reads any more, the newest last
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

/** Values whose shapes onnxruntime can tell before it runs, up to the names of symbols. */
function knownShapes({ inputs, constants, mapped, values }: Graph, order: readonly Node[]): Set<string> {
  const known = new Set([...inputs, ...[...constants, ...mapped].map(({ value }) => value)].map(({ name }) => name));
  known.add(''); // an input that is left out
  for (const node of order) {
    const [first, second] = node.inputs;
    const from = values.get(first);
    const kept = (name: string): boolean =>
      values.get(name)!.dims.every((dim, i) => typeof dim === 'number' || dim === from?.dims[i]);
    for (const name of node.outputs) {
      if (node.op === 'Reshape' && !(known.has(first) && kept(name))) continue;
      if (node.op === 'Gather' && !known.has(second)) continue; // the rows that are taken decide
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
