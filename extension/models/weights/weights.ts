// All parameters of a model in one flat float32 array, with a named view per parameter. The views are fed to graphs,
// the optimizer updates the flat array in place, and a checkpoint stores the array as one tensor file. Views start at
// multiples of 16 elements.
import { float32 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { elements } from '../decoder/decoder-config';
import type { ParameterSpec } from '../decoder/decoder-config';

const alignment = 16;

export class Weights {
  readonly flat: Float32Array;
  private readonly views: ReadonlyMap<string, Tensor>;

  constructor(
    readonly specs: readonly ParameterSpec[],
    flat?: Float32Array,
  ) {
    const offsets: number[] = [];
    let size = 0;
    for (const { dims } of specs) {
      offsets.push(size);
      size += Math.ceil(elements(dims) / alignment) * alignment;
    }
    if (flat && flat.length !== size)
      throw new Error(`weights: the flat array has ${flat.length} elements, not ${size}`);
    this.flat = flat ?? new Float32Array(size);
    this.views = new Map(
      specs.map(({ name, dims }, i) => [
        name,
        float32(this.flat.subarray(offsets[i], offsets[i] + elements(dims)), dims),
      ]),
    );
  }

  /** Number of parameters, excluding the padding of the flat array. */
  get count(): number {
    return this.specs.reduce((n, { dims }) => n + elements(dims), 0);
  }

  view(name: string): Float32Array {
    const tensor = this.views.get(name);
    if (!tensor) throw new Error(`weights: no parameter ${name}`);
    return tensor.data as Float32Array;
  }

  /** Returns new weights with the layout of these weights, filled with zeros. Used for gradients. */
  like(): Weights {
    return new Weights(this.specs);
  }

  /** Returns the views as session inputs, by parameter name. */
  feeds(): Record<string, Tensor> {
    return Object.fromEntries(this.views);
  }
}

/** Initialises weights like transformers: matrices with normal(0, deviation), norms with 1, biases with 0. */
export function initialize(weights: Weights, stream: RandomStream, deviation = 0.02): void {
  for (const { name, dims } of weights.specs) {
    const view = weights.view(name);
    if (dims.length === 1) view.fill(name.endsWith('.weight') ? 1 : 0);
    else for (let i = 0; i < view.length; i++) view[i] = deviation * stream.normal();
  }
}
