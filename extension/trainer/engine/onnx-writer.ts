// Writes a Graph as an ONNX ModelProto (onnx.proto is ONNX's official schema, loaded by protobufjs).
// Weights never enter the file: they are graph inputs, fed at each run and updated in place by the optimizer.
import { parse } from 'protobufjs';
import onnxSchema from './onnx.proto';
import type { Attribute, Graph, Value } from './graph';

const modelProto = parse(onnxSchema, { keepCase: true }).root.lookupType('onnx.ModelProto');

const elementCode = { float32: 1, int64: 7, bool: 9 } as const;
const attributeCode = { float: 1, int: 2, string: 3, ints: 7 } as const;
const irVersion = 10;
const opset = 21;

/** The graph as bytes of an ONNX model (IR 10, opset 21, plus onnxruntime's contrib operators). */
export function writeOnnx(graph: Graph): Uint8Array {
  const message = modelProto.create({
    ir_version: irVersion,
    producer_name: 'ragen-workbench',
    opset_import: [
      { domain: '', version: opset },
      { domain: 'com.microsoft', version: 1 },
    ],
    graph: {
      name: graph.name,
      node: graph.nodes.map(node => ({
        op_type: node.op,
        domain: node.domain,
        name: node.outputs[0],
        input: node.inputs,
        output: node.outputs,
        attribute: Object.entries(node.attributes).map(([name, value]) => attribute(name, value)),
      })),
      input: graph.inputs.map(valueInfo),
      output: graph.outputs.map(valueInfo),
      initializer: graph.constants.map(({ value, data }) => ({
        name: value.name,
        data_type: elementCode[value.type],
        dims: value.dims,
        raw_data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      })),
    },
  });
  return modelProto.encode(message).finish();
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
