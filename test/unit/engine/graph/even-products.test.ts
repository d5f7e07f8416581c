// A row of a linear layer has the same bits among any number of rows and with any number of threads, which onnxruntime's
// own matmul does not give; with one thread, they are the bits of that matmul.
import { describe, expect, it } from 'vitest';
import { evenLinear } from '../../../../extension/engine/graph/even-products';
import { Graph } from '../../../../extension/engine/graph/graph';
import { linear } from '../../../../extension/engine/graph/layer-ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session, float32 } from '../../../../extension/engine/session/session';

const mostRows = 128;
const stream = new RandomStream(5);
const normals = (length: number): Float32Array => Float32Array.from({ length }, () => stream.normal());

/** The rows of a layer [out, inputs], computed among `rows` rows; rows 0…rows − 1 are the same in every call. */
async function layer(
  inputs: number,
  out: number,
  threads: number,
  build: typeof evenLinear,
): Promise<(rows: number) => Promise<Float32Array>> {
  const g = new Graph('layer');
  const x = g.input('x', 'float32', ['n', inputs]);
  const weight = g.input('weight', 'float32', [out, inputs]);
  g.output('y', build(g, x, weight, g.input('bias', 'float32', [out]), threads));
  const session = await Session.create(g, { threads });
  const [data, w, bias] = [normals(mostRows * inputs), normals(out * inputs), normals(out)];
  return async rows => {
    const result = await session.run({
      x: float32(data.subarray(0, rows * inputs), [rows, inputs]),
      weight: float32(w, [out, inputs]),
      bias: float32(bias, [out]),
    });
    return result.y.data as Float32Array;
  };
}

/** The numbers of rows for which a row has other bits than among all rows. */
async function uneven(inputs: number, out: number, threads: number, build: typeof evenLinear): Promise<number[]> {
  const run = await layer(inputs, out, threads, build);
  const all = await run(mostRows);
  const found: number[] = [];
  // A single row is never computed alone (packChunks).
  for (let rows = 2; rows < mostRows; rows += 3) {
    const some = await run(rows);
    if (some.some((value, i) => !Object.is(value, all[i]))) found.push(rows);
  }
  return found;
}

const plain: typeof evenLinear = (g, x, weight, bias) => linear(g, x, weight, bias);

describe('a row of a linear layer', () => {
  it.each([
    [256, 96],
    [800, 96],
    [800, 130],
    [300, 24],
    [896, 128],
    [96, 256],
  ])('%i → %i has the same bits among any rows, with 1, 2 and 4 threads', async (inputs, out) => {
    for (const threads of [1, 2, 4]) expect(await uneven(inputs, out, threads, evenLinear)).toEqual([]);
  });

  it("has other bits with onnxruntime's own matmul on two threads", async () => {
    expect(await uneven(256, 96, 2, plain)).not.toEqual([]);
  });

  it.each([
    [256, 96],
    [800, 96],
  ])('%i → %i has the bits of one thread', async (inputs, out) => {
    const seeded = async (threads: number, build: typeof evenLinear): Promise<Float32Array> => {
      const at = structuredClone(stream.state);
      const result = await (await layer(inputs, out, threads, build))(50);
      stream.state = at;
      return result;
    };
    expect(await seeded(2, evenLinear)).toEqual(await seeded(1, plain));
  });
});
