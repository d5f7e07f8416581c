// The written bytes, decoded again with ONNX's own schema: nodes, attributes of every kind, symbols, constants.
import { readFileSync } from 'node:fs';
import { parse } from 'protobufjs';
import { expect, it } from 'vitest';
import { Graph, contrib } from '../../../../extension/engine/graph/graph';
import { writeOnnx } from '../../../../extension/engine/graph/onnx-writer';

const schema = parse(readFileSync('extension/engine/onnx.proto', 'utf8'), { keepCase: true });
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

it('matches the schema', () => {
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
      output: [info('Add_5', 1, [{ dim_param: 'b' }, { dim_value: 2 }])],
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
          name: 'Example_3',
          input: ['Clip_2'],
          output: ['Example_3', 'Example_3.1'],
          attribute: [
            { name: 'mode', type: 'STRING', s: [...Buffer.from('linear')] },
            { name: 'perm', type: 'INTS', ints: [1, 0] },
            { name: 'alpha', type: 'FLOAT', f: 2 },
          ],
        },
        { op_type: 'Add', domain: '', name: 'Add_5', input: ['Example_3', 'const_4'], output: ['Add_5'] },
      ],
      initializer: [
        { name: 'const_1', data_type: 1, raw_data: floats(0.5) },
        { name: 'const_4', data_type: 1, dims: [2], raw_data: floats(8, 7) },
        { name: 'const_6', data_type: 7, dims: [2], raw_data: [...new Uint8Array(BigInt64Array.of(3n, -1n).buffer)] },
      ],
    },
  });
});

it('leaves mapped constants in their file', () => {
  const g = new Graph('mapped');
  const w = g.map('w', 'bfloat16', [2, 3], { file: 'model.safetensors', offset: 99, bytes: 12 });
  g.output('y', g.emit('Cast', [w], 'float32', [2, 3], { to: 1 }));
  expect((written(g).graph as { initializer: object[] }).initializer).toEqual([
    {
      name: 'w',
      data_type: 16,
      dims: [2, 3],
      data_location: 'EXTERNAL',
      external_data: [
        { key: 'location', value: 'model.safetensors' },
        { key: 'offset', value: '99' },
        { key: 'length', value: '12' },
      ],
    },
  ]);
});

it('orders nodes that read only constants first and sink nodes last, with the first declared output at the end', () => {
  const g = new Graph('order');
  const x = g.input('x', 'float32', [2]);
  const early = g.emit('Neg', [x], 'float32', [2]);
  const fixed = g.emit('Abs', [g.scalar(-1)], 'float32', []);
  const late = g.emit('Add', [g.emit('Exp', [x], 'float32', [2]), fixed], 'float32', [2]);
  g.output('early', early);
  g.output('late', late);
  const { node } = written(g).graph as { node: { op_type: string }[] };
  expect(node.map(({ op_type }) => op_type)).toEqual(['Abs', 'Exp', 'Add', 'Neg']);
});

it('writes the same bytes each time', () => {
  expect(writeOnnx(example())).toEqual(writeOnnx(example()));
});
