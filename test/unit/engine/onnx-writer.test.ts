// The written bytes, decoded again by ONNX's own schema: nodes, attributes of every kind, symbols, constants.
import { readFileSync } from 'node:fs';
import { parse } from 'protobufjs';
import { expect, it } from 'vitest';
import { Graph, contrib } from '../../../extension/trainer/engine/graph';
import { writeOnnx } from '../../../extension/trainer/engine/onnx-writer';

const schema = parse(readFileSync('extension/trainer/engine/onnx.proto', 'utf8'), { keepCase: true });
const modelProto = schema.root.lookupType('onnx.ModelProto');

function written(g: Graph): Record<string, unknown> {
  const options = { longs: Number, enums: String, bytes: Array, defaults: false } as const;
  return modelProto.toObject(modelProto.decode(writeOnnx(g)), options);
}

function example(): Graph {
  const g = new Graph('example');
  const x = g.input('x', 'float32', ['b', 3]);
  const at = g.input('at', 'int64', [2]);
  const picked = g.emit('Gather', [x, at], 'float32', ['b', 2], { axis: -1 });
  const rest = g.emit('Clip', [picked, null, g.scalar(0.5)], 'float32', picked.dims);
  const [first] = g.emitMany(
    'Example',
    [rest],
    [
      { type: 'float32', dims: ['b'] },
      { type: 'bool', dims: [] },
    ],
    { mode: 'linear', perm: [1, 0], alpha: { float: 2 } },
    contrib,
  );
  const numbers = Float32Array.of(9, 8, 7, 6).subarray(1, 3); // a view into a larger buffer
  g.output('sum', g.emit('Add', [first, g.constant('float32', [2], numbers)], 'float32', ['b', 2]));
  g.integers([3, -1]);
  return g;
}

const info = (name: string, elem_type: number, dim: object[]): object => ({
  name,
  type: { tensor_type: { elem_type, shape: { dim } } },
});
const floats = (...xs: number[]): number[] => [...new Uint8Array(Float32Array.from(xs).buffer)];

it('is what the schema says', () => {
  expect(written(example())).toEqual({
    ir_version: 10,
    producer_name: 'ragen-workbench',
    opset_import: [
      { domain: '', version: 21 },
      { domain: contrib, version: 1 },
    ],
    graph: {
      name: 'example',
      input: [info('x', 1, [{ dim_param: 'b' }, { dim_value: 3 }]), info('at', 7, [{ dim_value: 2 }])],
      output: [info('sum', 1, [{ dim_param: 'b' }, { dim_value: 2 }])],
      node: [
        {
          op_type: 'Gather',
          domain: '',
          name: 'Gather_0',
          input: ['x', 'at'],
          output: ['Gather_0'],
          attribute: [{ name: 'axis', type: 'INT', i: -1 }],
        },
        { op_type: 'Clip', domain: '', name: 'Clip_2', input: ['Gather_0', '', 'const_1'], output: ['Clip_2'] },
        {
          op_type: 'Example',
          domain: contrib,
          name: 'Example_0_3',
          input: ['Clip_2'],
          output: ['Example_0_3', 'Example_1_4'],
          attribute: [
            { name: 'mode', type: 'STRING', s: [...Buffer.from('linear')] },
            { name: 'perm', type: 'INTS', ints: [1, 0] },
            { name: 'alpha', type: 'FLOAT', f: 2 },
          ],
        },
        { op_type: 'Add', domain: '', name: 'Add_6', input: ['Example_0_3', 'const_5'], output: ['Add_6'] },
        { op_type: 'Identity', domain: '', name: 'sum', input: ['Add_6'], output: ['sum'] },
      ],
      initializer: [
        { name: 'const_1', data_type: 1, raw_data: floats(0.5) },
        { name: 'const_5', data_type: 1, dims: [2], raw_data: floats(8, 7) },
        { name: 'const_7', data_type: 7, dims: [2], raw_data: [...new Uint8Array(BigInt64Array.of(3n, -1n).buffer)] },
      ],
    },
  });
});

it('is the same bytes each time', () => {
  expect(writeOnnx(example())).toEqual(writeOnnx(example()));
});
