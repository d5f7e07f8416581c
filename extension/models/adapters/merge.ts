// Merges an adapter into its base: computes W + alpha/rank · B·A in single precision. Works on blocks of rows, so that
// the model need not fit into memory. Each block is computed by one Gemm of onnxruntime on a single thread, so the
// result is bit-reproducible.
import { Graph } from '../../engine/graph/graph';
import { Session, float32 } from '../../engine/session/session';
import { factorName, loraScale } from './lora';
import type { Adapter } from './peft-adapter';

export class AdapterMerge {
  private constructor(
    private readonly session: Session,
    private readonly factors: ReadonlyMap<string, Float32Array>,
    private readonly rank: number,
  ) {}

  static async create({ lora, factors }: Adapter): Promise<AdapterMerge> {
    const g = new Graph('merge');
    const w = g.input('w', 'float32', ['out', 'in']);
    const a = g.input('a', 'float32', [lora.rank, 'in']);
    const b = g.input('b', 'float32', ['out', lora.rank]);
    const alpha = { float: loraScale(lora) };
    g.output('merged', g.emit('Gemm', [b, a, w], 'float32', w.dims, { alpha }));
    const views = new Map(factors.specs.map(({ name }) => [name, factors.view(name)]));
    return new AdapterMerge(await Session.create(g, { threads: 1 }), views, lora.rank);
  }

  /** Returns whether the adapter changes the parameter. */
  changes(parameter: string): boolean {
    return this.factors.has(factorName(moduleOf(parameter), 'A'));
  }

  /**
   * Returns the given rows [n, in] of an adapted parameter with the adapter merged into them. `first` is the index of
   * the first row.
   */
  async rows(parameter: string, rows: Float32Array, first: number): Promise<Float32Array> {
    const { rank } = this;
    const module = moduleOf(parameter);
    const [a, b] = [this.factors.get(factorName(module, 'A')), this.factors.get(factorName(module, 'B'))];
    if (!a || !b) throw new Error(`merge: the adapter has no factors for ${parameter}`);
    const width = a.length / rank;
    const count = rows.length / width;
    const { merged } = await this.session.run({
      w: float32(rows, [count, width]),
      a: float32(a, [rank, width]),
      b: float32(b.subarray(first * rank, (first + count) * rank), [count, rank]),
    });
    return merged.data as Float32Array;
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

const moduleOf = (parameter: string): string => parameter.replace(/\.weight$/, '');
