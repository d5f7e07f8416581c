// Parameter sources of a decoder graph, and the operations of its linear layers. Trained weights are graph inputs.
// Frozen weights are constants that are mapped from files or stored in memory. 8-bit weights are constants that were
// quantised from frozen weights. Any linear layer may have a trained low-rank adapter (lora.ts). Full training, LoRA,
// scoring under the base model and quantised rollouts therefore share the decoder code (decoder.ts).
import { evenLinear } from '../../engine/graph/even-products';
import { dequantized, frozenLinear, int8Linear, quantizeRows } from '../../engine/graph/frozen-ops';
import type { Int8Weight, QuantizedRows } from '../../engine/graph/frozen-ops';
import type { ElementType, FloatType, Graph, Value } from '../../engine/graph/graph';
import { linear } from '../../engine/graph/layer-ops';
import { cast, gatherRows, mul, reshape, scale } from '../../engine/graph/ops';
import type { ParameterSpec } from './decoder-config';
import { factorName, loraScale } from '../adapters/lora';
import type { LoraOptions } from '../adapters/lora';

/** A tensor stored in a safetensors file. */
export interface FileTensor {
  kind: 'file';
  dtype: 'F32' | 'F16' | 'BF16';
  /** File name within the model folder, byte offset and length. */
  file: string;
  offset: number;
  bytes: number;
}

type FileLocation = Pick<FileTensor, 'file' | 'offset' | 'bytes'>;

/** The weight of a linear layer as int8 [in, out] with a float32 scale per column, both stored in files. */
export interface Int8Tensor {
  kind: 'int8';
  weight: FileLocation;
  scale: FileLocation;
}

/** A tensor copied into the graph as a constant. */
export interface MemoryTensor {
  kind: 'memory';
  data: Float32Array;
}

export type TensorSource = { kind: 'input' } | MemoryTensor | FileTensor | Int8Tensor;

export interface Adapter extends LoraOptions {
  /** Names of the linear layers that have adapter factors. */
  modules: ReadonlySet<string>;
}

/** How a network's parameters are stored, and in which types its matmuls are computed. */
export interface ParameterPlan {
  specs: readonly ParameterSpec[];
  source(name: string): TensorSource;
  adapter?: Adapter;
  /**
   * If true (rollouts), 8-bit weights are multiplied with 8-bit activations. If false (training), the weights are
   * dequantised to float32.
   */
  int8Products?: boolean;
  /**
   * Float type in which matmuls with weights are computed; float32 by default. All other operations compute in float32.
   */
  products?: FloatType;
  /**
   * Set for sampling on the CPU: the result of a row then has the same bits in every batch. Not for training, because
   * the graph has no gradient.
   */
  evenRows?: EvenRows;
}

export interface EvenRows {
  /** Number of threads of the session, at least 1. */
  threads: number;
  /** Whether onnxruntime packs constants for matmuls, which makes their products even. */
  packed: boolean;
}

const castCode: Record<FloatType, number> = { float32: 1, float16: 10 };
const fileTypes: Record<FileTensor['dtype'], ElementType> = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' };

export class DecoderParameters {
  /** Loss scale that prevents float16 gradients from underflowing; 1 for float32. */
  readonly gradientScale: number;
  /** Graph inputs of the trained parameters, by parameter name. */
  readonly trained = new Map<string, Value>();
  private readonly dims: ReadonlyMap<string, readonly number[]>;
  private readonly constants = new Map<string, Value>();
  private readonly quantized = new Map<string, QuantizedRows>();
  private dropoutNoise?: { row: Value; column: Value };

  constructor(
    private readonly g: Graph,
    private readonly plan: ParameterPlan,
  ) {
    this.gradientScale = plan.products === 'float16' ? 2 ** 12 : 1;
    this.dims = new Map(plan.specs.map(({ name, dims }) => [name, dims]));
  }

  has(name: string): boolean {
    return this.dims.has(name);
  }

  /** Returns the norm weight or bias `name` as float32. */
  vector(name: string): Value {
    return this.float(name);
  }

  /** Returns the embedding rows [n, hidden] for ids [n]. */
  embed(name: string, ids: Value): Value {
    const table = this.stored(name);
    if (table.type === 'float32') return gatherRows(this.g, table, ids);
    // Only the gathered rows are converted to float32.
    const rows = this.g.emit('Gather', [table, ids], table.type, [...ids.dims, table.dims[1]], { axis: 0 });
    return this.g.emit('Cast', [rows], 'float32', rows.dims, { to: 1 });
  }

  /**
   * Applies the linear layer `module` to x [n, in]: weight, optional bias, optional adapter. If x contains only some of
   * the tokens, `tokens` (int64 [n]) has the index of each.
   */
  linear(module: string, x: Value, tokens?: Value): Value {
    const biasName = `${module}.bias`;
    const bias = this.has(biasName) ? this.vector(biasName) : null;
    const y = this.product(`${module}.weight`, x, bias);
    return cast(this.g, this.plan.adapter?.modules.has(module) ? this.adapted(module, x, y, tokens) : y, 'float32');
  }

  /** Returns x [n, in] · Wᵀ for the weight `name`, without adapter. Used for the output head. */
  base(name: string, x: Value): Value {
    return cast(this.g, this.product(name, x, null), 'float32');
  }

  /**
   * Returns x [n, in] · Wᵀ (+ bias), computed in `products`. Each matmul casts its weight again, so that the converted
   * copy is freed after the matmul.
   */
  private product(name: string, x: Value, bias: Value | null): Value {
    const { g } = this;
    const { products = 'float32' } = this.plan;
    const source = this.plan.source(name);
    const isInput = source.kind === 'input';
    const even = this.plan.evenRows;
    if (even && products === 'float32' && source.kind !== 'int8' && (isInput || !even.packed))
      return evenLinear(g, x, this.float(name), bias, even.threads);
    if (isInput) return linear(g, cast(g, x, products), this.float(name, products), bias && cast(g, bias, products));
    if (source.kind !== 'int8')
      return frozenLinear(g, cast(g, x, products), () => this.float(name, products), bias && cast(g, bias, products));
    const weight = this.int8(name, source);
    if (!this.plan.int8Products) return frozenLinear(g, x, () => dequantized(g, weight), bias, false);
    let rows = this.quantized.get(x.name);
    if (!rows) this.quantized.set(x.name, (rows = quantizeRows(g, x)));
    return int8Linear(g, rows, weight, bias);
  }

  /** Returns y + alpha/rank · B·A·x. */
  private adapted(module: string, x: Value, y: Value, tokens?: Value): Value {
    const { g } = this;
    const adapter = this.plan.adapter!;
    const type = y.type as FloatType;
    const [a, b] = [this.float(factorName(module, 'A'), type), this.float(factorName(module, 'B'), type)];
    const input = cast(g, adapter.dropout > 0 ? this.dropped(x, adapter.dropout, tokens) : x, type);
    const even = type === 'float32' ? this.plan.evenRows : undefined;
    const factor = even ? evenLinear(g, input, a, null, even.threads) : linear(g, input, a);
    const scaled = scale(g, factor, loraScale(adapter));
    return even ? evenLinear(g, scaled, b, y, even.threads) : linear(g, scaled, b, y);
  }

  /**
   * Applies dropout. For each run of the graph, the host draws one random number per token and one per feature. Each
   * entry of the mask is a hash of the numbers of its token and its feature. The mask is therefore the same on every
   * machine, and the same when activations are recomputed or computed for some of the tokens only.
   */
  private dropped(x: Value, share: number, tokens?: Value): Value {
    const { g } = this;
    this.dropoutNoise ??= {
      row: g.input('dropout_rows', 'float32', ['tokens']),
      column: g.input('dropout_columns', 'float32', ['channels']),
    };
    const width = x.dims[1];
    const column = g.emit(
      'Slice',
      [this.dropoutNoise.column, g.integers([0]), g.integers([Number(width)]), g.integers([0])],
      'float32',
      [width],
    );
    const all = this.dropoutNoise.row;
    const rows = tokens ? g.emit('Gather', [all, tokens], 'float32', tokens.dims, { axis: 0 }) : all;
    const row = reshape(g, rows, [x.dims[0], 1]);
    const product = g.emit('Mul', [row, column], 'float32', x.dims);
    const wave = g.emit('Mul', [g.emit('Sin', [product], 'float32', x.dims), g.scalar(43758.547)], 'float32', x.dims);
    const uniform = g.emit('Sub', [wave, g.emit('Floor', [wave], 'float32', x.dims)], 'float32', x.dims);
    const kept = g.emit('GreaterOrEqual', [uniform, g.scalar(share)], 'bool', x.dims);
    const factor = g.emit('Where', [kept, g.scalar(1 / (1 - share)), g.scalar(0)], 'float32', x.dims);
    return mul(g, x, factor);
  }

  /**
   * Returns the parameter in a float type. If the parameter is stored in another type, each call of this method emits
   * another cast (frozen-ops.ts gives the reason).
   */
  private float(name: string, type: FloatType = 'float32'): Value {
    const value = this.stored(name);
    if (this.trained.has(name)) return cast(this.g, value, type);
    return value.type === type ? value : this.g.emit('Cast', [value], type, value.dims, { to: castCode[type] });
  }

  /** Returns the parameter in its stored type. */
  private stored(name: string): Value {
    const known = this.trained.get(name) ?? this.constants.get(name);
    if (known) return known;
    const dims = this.dims.get(name);
    if (!dims) throw new Error(`decoder: no parameter ${name}`);
    const source = this.plan.source(name);
    if (source.kind === 'input') {
      const value = this.g.input(name, 'float32', dims);
      this.trained.set(name, value);
      return value;
    }
    if (source.kind === 'int8')
      throw new Error(`decoder: ${name} is stored in 8 bits and cannot be read as a float tensor`);
    const value =
      source.kind === 'memory'
        ? this.g.constant('float32', dims, source.data)
        : this.g.map(name, fileTypes[source.dtype], dims, source);
    this.constants.set(name, value);
    return value;
  }

  private int8(name: string, { weight, scale }: Int8Tensor): Int8Weight {
    const held = (key: string, make: () => Value): Value => {
      let value = this.constants.get(key);
      if (!value) this.constants.set(key, (value = make()));
      return value;
    };
    const [out, from] = this.dims.get(name)!;
    return {
      weight: held(`${name}:int8`, () => this.g.map(`${name}:int8`, 'int8', [from, out], weight)),
      scale: held(`${name}:scale`, () => this.g.map(`${name}:scale`, 'float32', [out], scale)),
    };
  }
}
