// Serialises a Graph as an ONNX ModelProto (onnx.proto is ONNX's official schema, loaded by protobufjs). Trained
// weights are never written to the file. They are inputs that are fed to every run, and the optimizer updates them in
// place. Frozen weights may be constants that stay in their safetensors files. The order of the nodes determines
// onnxruntime's execution order, see `executionOrder`.
import { parse } from 'protobufjs';
import { minimum } from '../../common/lists';
import { once } from '../../common/once';
import onnxSchema from '../onnx.proto';
import { contrib } from './graph';
import type { Attribute, Constant, Graph, Node, Value } from './graph';

const modelProto = once(() => parse(onnxSchema, { keepCase: true }).root.lookupType('onnx.ModelProto'));

const elementCode = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  bfloat16: 16,
} as const;
const attributeCode = { float: 1, int: 2, string: 3, ints: 7 } as const;
const irVersion = 10;
const opset = 21;

/**
 * Returns the bytes of an ONNX model (IR 10, opset 21, plus onnxruntime's contrib operators). Outputs are named after
 * their graph values.
 */
export function writeOnnx(graph: Graph): Uint8Array {
  const domains = [
    { domain: '', version: opset },
    { domain: contrib, version: 1 },
  ];
  return encode(graph, domains, graph.constants, name => name);
}

/**
 * Returns the bytes of an ONNX model for other runtimes, with outputs under their public names and without unused
 * constants. Throws unless the graph's lowering is `onnx` (standard operators only).
 */
export function writePlainOnnx(graph: Graph): Uint8Array {
  const foreign = executionOrder(graph).find(({ domain }) => domain !== '');
  if (foreign) throw new Error(`graph ${graph.name}: ${foreign.domain}'s ${foreign.op} is not an ONNX operator`);
  const read = new Set(executionOrder(graph).flatMap(({ inputs }) => inputs));
  const constants = graph.constants.filter(({ value }) => read.has(value.name));
  const names = new Map([...graph.sources].map(([name, source]) => [source, name]));
  return encode(graph, [{ domain: '', version: opset }], constants, name => names.get(name) ?? name);
}

function encode(
  graph: Graph,
  domains: readonly { domain: string; version: number }[],
  constants: readonly Constant[],
  named: (name: string) => string,
): Uint8Array {
  const message = modelProto().create({
    ir_version: irVersion,
    producer_name: 'ragen-workbench',
    opset_import: domains,
    graph: {
      name: graph.name,
      node: executionOrder(graph).map(node => ({
        op_type: node.op,
        domain: node.domain,
        name: named(node.outputs[0]),
        input: node.inputs.map(named),
        output: node.outputs.map(named),
        attribute: Object.entries(node.attributes).map(([name, value]) => attribute(name, value)),
      })),
      input: graph.inputs.map(valueInfo),
      output: graph.outputs.map(output => valueInfo({ ...output, name: named(graph.sources.get(output.name)!) })),
      initializer: [
        ...constants.map(({ value, data }) => ({
          name: value.name,
          data_type: elementCode[value.type],
          dims: value.dims,
          raw_data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
        })),
        ...graph.mapped.map(({ value, file, offset, bytes }) => ({
          name: value.name,
          data_type: elementCode[value.type],
          dims: value.dims,
          data_location: 1, // EXTERNAL
          external_data: Object.entries({ location: file, offset, length: bytes }).map(([key, x]) => ({
            key,
            value: String(x),
          })),
        })),
      ],
    },
  });
  return modelProto().encode(message).finish();
}

/**
 * Returns the nodes in an order that lets onnxruntime free memory early. onnxruntime determines the execution order by
 * a depth-first search from the leaves, the nodes whose outputs no other node reads. The search begins at the leaf that
 * is last in the list. From each node, the search goes to the nodes that produce the node's inputs; it begins with the
 * one that is last in the list. Nodes that only read constants are first in the list; the executor then runs each of
 * these nodes directly before the first node that reads its output, instead of at the start. Leaves are last in the
 * list and in reverse order, so that outputs are computed in the order of their declaration.
 */
export function executionOrder(graph: Graph): Node[] {
  const nodes = neededNodes(graph);
  const read = new Set(nodes.flatMap(node => node.inputs));
  const known = new Set([...graph.constants, ...graph.mapped].map(({ value }) => value.name));
  const fixed: Node[] = [];
  const rest: Node[] = [];
  const leaves: Node[] = [];
  for (const node of nodes) {
    const isFixed = node.inputs.every(name => name === '' || known.has(name));
    if (isFixed) node.outputs.forEach(name => known.add(name));
    const isLeaf = !node.outputs.some(name => read.has(name));
    (isLeaf ? leaves : isFixed ? fixed : rest).push(node);
  }
  const declared = [...graph.sources.values()];
  const rank = (node: Node): number => minimum(node.outputs.map(name => declared.indexOf(name)).filter(i => i >= 0));
  return [...fixed, ...rest, ...leaves.sort((a, b) => rank(b) - rank(a))];
}

/**
 * Returns the nodes that the outputs depend on. A graph may have other nodes, because pullbacks also emit gradients
 * that nothing uses.
 */
function neededNodes({ nodes, sources }: Graph): Node[] {
  const wanted = new Set(sources.values());
  const needed: Node[] = [];
  for (const node of [...nodes].reverse()) {
    if (!node.outputs.some(name => wanted.has(name))) continue;
    node.inputs.forEach(name => wanted.add(name));
    needed.push(node);
  }
  return needed.reverse();
}

function attribute(name: string, value: Attribute): Record<string, unknown> {
  if (typeof value === 'number') return { name, type: attributeCode.int, i: value };
  if (typeof value === 'string') return { name, type: attributeCode.string, s: new TextEncoder().encode(value) };
  if ('float' in value) return { name, type: attributeCode.float, f: value.float };
  return { name, type: attributeCode.ints, ints: value };
}

function valueInfo(value: Value): Record<string, unknown> {
  const dim = value.dims.map(d => (typeof d === 'number' ? { dim_value: d } : { dim_param: d }));
  return { name: value.name, type: { tensor_type: { elem_type: elementCode[value.type], shape: { dim } } } };
}
