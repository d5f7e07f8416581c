// Typed builder of ONNX graphs. A value has an element type and dimensions; a dimension is a number or a symbol ("B",
// "T") that gets its size at run time. Emitting an operation checks types and dimensions, so an invalid graph fails at
// the call that builds it. Differentiable operations (ops.ts) record their pullbacks on the graph's tape, from which
// autodiff.ts derives the backward pass.
import { toHalf } from '../half-precision';
export type ElementType = 'float32' | 'float16' | 'bfloat16' | 'int64' | 'int32' | 'int8' | 'uint8' | 'bool';
/** Float types that operations compute in. */
export type FloatType = 'float32' | 'float16';
export type Dim = number | string;

/**
 * Set of kernels that a graph may use. `cpu`: kernels of onnxruntime's CPU provider. `cuda`: like `cpu`, but with other
 * 8-bit matmuls (see docs/OperatorKernels.md in onnxruntime). `webgpu`: the smaller set of onnxruntime's WebGPU
 * provider. `onnx`: standard ONNX operators only, for other runtimes.
 */
export type Lowering = 'cpu' | 'cuda' | 'webgpu' | 'onnx';

export interface Value {
  readonly name: string;
  readonly type: ElementType;
  readonly dims: readonly Dim[];
}

export type Attribute = number | string | readonly number[] | { readonly float: number };

export interface Node {
  readonly op: string;
  readonly domain: string;
  /** Names of the input values; an empty name stands for an omitted optional input. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface Constant {
  readonly value: Value;
  /** Content of the constant; float16 numbers as their bit patterns. */
  readonly data: Float32Array | BigInt64Array | Int32Array | Uint16Array | Int8Array | Uint8Array;
}

/** A constant that is not copied into the graph; onnxruntime maps it from a file. */
export interface MappedConstant {
  readonly value: Value;
  /** File name within the session's folder, byte offset and length. */
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Maps the gradients of an operation's outputs to the gradients of its inputs. For an output that is not used, and for
 * an input that has no gradient, the gradient is null.
 */
export type Vjp = (gradients: readonly (Value | null)[]) => (Value | null)[];

export interface TapeRecord {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly vjp: Vjp;
}

/** Domain of onnxruntime's contrib operators. */
export const contrib = 'com.microsoft';

export class Graph {
  readonly nodes: Node[] = [];
  readonly values = new Map<string, Value>();
  readonly inputs: Value[] = [];
  /** Outputs under their public names; `sources` maps each name to the value in the graph that the output exposes. */
  readonly outputs: Value[] = [];
  readonly sources = new Map<string, string>();
  readonly constants: Constant[] = [];
  readonly mapped: MappedConstant[] = [];
  tape: TapeRecord[] = [];
  private readonly literals = new Map<string, Value>();
  private readonly symbolSource = new Map<string, { value: Value; axis: number }>();
  private count = 0;

  constructor(
    readonly name: string,
    readonly lowering: Lowering = 'cpu',
  ) {}

  get hasFusedKernels(): boolean {
    return this.lowering === 'cpu' || this.lowering === 'cuda';
  }

  /** Declares an input. Later reshapes can then use the input's symbolic dimensions. */
  input(name: string, type: ElementType, dims: readonly Dim[]): Value {
    if (this.inputs.some(other => other.name === name)) throw new Error(`graph ${this.name}: has two inputs ${name}`);
    const value: Value = { name, type, dims };
    this.inputs.push(value);
    dims.forEach((dim, axis) => {
      if (typeof dim === 'string' && !this.symbolSource.has(dim)) this.symbolSource.set(dim, { value, axis });
    });
    return value;
  }

  /**
   * Exposes `value` as an output under a public name. Usually emits no node, so onnxruntime writes directly into the
   * output. An input, a constant, or a value that is already an output under another name is copied by an extra node.
   */
  output(name: string, value: Value): void {
    const made = this.values.has(value.name);
    const taken = [...this.sources.values()].includes(value.name);
    const source = made && !taken ? value : this.emit('Identity', [value], value.type, value.dims);
    this.outputs.push({ ...value, name });
    this.sources.set(name, source.name);
  }

  /** Declares a constant that onnxruntime reads from a file. */
  map(name: string, type: ElementType, dims: readonly number[], location: Omit<MappedConstant, 'value'>): Value {
    const value: Value = { name, type, dims };
    this.mapped.push({ value, file: location.file, offset: location.offset, bytes: location.bytes });
    return value;
  }

  constant(type: ElementType, dims: readonly number[], data: Constant['data']): Value {
    if (data.length !== dims.reduce((n, d) => n * d, 1))
      throw new Error(`graph ${this.name}: a constant [${dims.join(', ')}] was given ${data.length} numbers`);
    const value: Value = { name: this.fresh('const'), type, dims };
    this.constants.push({ value, data });
    return value;
  }

  /** Returns a float scalar constant. Calls with equal number and type return the same constant. */
  scalar(x: number, type: FloatType = 'float32'): Value {
    const data = (): Float32Array | Uint16Array =>
      type === 'float32' ? Float32Array.of(x) : toHalf(Float32Array.of(x));
    return this.literal(`${type}:${x}`, () => this.constant(type, [], data()));
  }

  /** Returns a uint8 scalar constant. */
  bytes(x: number): Value {
    return this.literal(`u${x}`, () => this.constant('uint8', [], new Uint8Array([x])));
  }

  /** Returns an int64 vector constant; equal vectors return the same constant. */
  integers(xs: readonly number[]): Value {
    return this.literal(`i${xs.join()}`, () =>
      this.constant(
        'int64',
        [xs.length],
        BigInt64Array.from(xs, x => BigInt(x)),
      ),
    );
  }

  /** Emits a node with one output of the given type and dimensions. */
  emit(
    op: string,
    inputs: readonly (Value | null)[],
    type: ElementType,
    dims: readonly Dim[],
    attributes: Record<string, Attribute> = {},
    domain = '',
  ): Value {
    const [value] = this.emitMany(op, inputs, [{ type, dims }], attributes, domain);
    return value;
  }

  /** Emits a node with several outputs. */
  emitMany(
    op: string,
    inputs: readonly (Value | null)[],
    outputs: readonly { type: ElementType; dims: readonly Dim[] }[],
    attributes: Record<string, Attribute> = {},
    domain = '',
  ): Value[] {
    const name = this.fresh(op);
    const values = outputs.map(({ type, dims }, i): Value => ({ name: i === 0 ? name : `${name}.${i}`, type, dims }));
    for (const value of values) this.values.set(value.name, value);
    this.nodes.push({
      op,
      domain,
      inputs: inputs.map(v => v?.name ?? ''),
      outputs: values.map(v => v.name),
      attributes,
    });
    return values;
  }

  /** Records a differentiable operation on the tape. */
  record(inputs: readonly Value[], outputs: readonly Value[], vjp: Vjp): void {
    this.tape.push({ inputs, outputs, vjp });
  }

  /**
   * Returns the shape vector for reshaping `fromDims` to `dims`. If at most one dimension must be inferred, the vector
   * is a constant. Otherwise the graph computes it at run time from inputs whose dimensions contain the symbols.
   */
  shapeVector(dims: readonly Dim[], fromDims: readonly Dim[]): Value {
    const literal = dims.map((dim, i) => (typeof dim === 'number' ? dim : dim === fromDims[i] ? 0 : -1));
    if (literal.filter(d => d === -1).length <= 1) return this.integers(literal);
    const inferred = dims.filter(dim => typeof dim === 'string' && !this.symbolSource.has(dim));
    if (inferred.length > 1) throw new Error(`graph ${this.name}: cannot infer both ${inferred.join(' and ')}`);
    const parts = dims.map(dim => {
      if (typeof dim === 'number') return this.integers([dim]);
      return dim === inferred[0] ? this.integers([-1]) : this.symbolSize(dim);
    });
    return this.literal(`shape:${dims.join()}`, () => this.emit('Concat', parts, 'int64', [dims.length], { axis: 0 }));
  }

  /** Returns the run-time size of a symbol as an int64 vector of length 1. */
  symbolSize(symbol: string): Value {
    return this.literal(`size:${symbol}`, () => {
      const source = this.symbolSource.get(symbol);
      if (!source) throw new Error(`graph ${this.name}: no input carries the dimension ${symbol}`);
      return this.emit('Shape', [source.value], 'int64', [1], { start: source.axis, end: source.axis + 1 });
    });
  }

  private literal(key: string, make: () => Value): Value {
    let value = this.literals.get(key);
    if (!value) this.literals.set(key, (value = make()));
    return value;
  }

  private fresh(stem: string): string {
    return `${stem}_${this.count++}`;
  }
}
