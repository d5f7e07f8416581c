// Measures the gradients of a policy update. The mini-batches are divided into buckets. For each bucket and each part
// of the policy loss, the norm and the noise of the gradient are measured. The cosines between these gradients are
// measured too. The gradients are not applied to the weights. A gradient has as many numbers as there are trained
// weights. With more than 2²⁰ trained weights, only sketches of the gradients are stored. A sketch (count sketch) adds
// each coordinate of the gradient, with a random sign, to one of 2²⁰ cells. Inner products of sketches have an error of
// about 1/√cells times the product of the two gradients' norms. The norms of mini-batch gradients are always exact. The
// analysis does not change the optimizer state.
import type {
  GradientAnalysis,
  LossPart,
  PartGradient,
  PolicyLossOptions,
  UpdateMetrics,
} from '../engine/loss-options';
import type { PassBudget, WeightedSample } from '../engine/training-samples';
import { RandomStream } from '../engine/sampling/random-stream';
import { unwatched } from '../engine/work-units';
import type { WorkUnits } from '../engine/work-units';
import { lossMetrics, noSums } from './loss-sums';
import type { LossSums } from './loss-sums';
import type { ImageFeatures, Policy } from './policy';

/** Maximum number of values stored per gradient. */
const cells = 2 ** 20;
/** Number of slices of each mini-batch. The variance over samples is estimated from the gradients of the slices. */
const slicesPerBatch = 4;

/** Implements `analyseGradients` of engine.ts; `maxCells` is for tests. */
export async function analyseGradients(
  policy: Pick<Policy, 'bank' | 'addGradient'>,
  buckets: readonly (readonly (readonly WeightedSample[])[])[],
  budget: PassBudget,
  loss: PolicyLossOptions,
  seed: number,
  maxCells = cells,
  units = unwatched,
  images?: ImageFeatures,
): Promise<GradientAnalysis> {
  const parts = lossParts(loss);
  const means: Float64Array[] = [];
  const measured: GradientAnalysis['buckets'] = [];
  const total = parts.length * buckets.reduce((sum, batches) => sum + batches.length, 0);
  let done = 0;
  for (const batches of buckets) {
    const gradients: PartGradient[] = [];
    const batchMetrics: UpdateMetrics[] = [];
    for (const part of parts) {
      const slices = new SliceStatistics();
      let norms = 0;
      for (const batch of batches) {
        const within = { next: (): void => units.next(done, total) };
        const { norm, sums } = await measureBatch(
          policy,
          batch,
          budget,
          loss,
          part,
          seed,
          maxCells,
          slices,
          within,
          images,
        );
        done++;
        norms += norm;
        if (part === 'task') batchMetrics.push(lossMetrics(sums, loss));
      }
      means.push(slices.mean);
      gradients.push({ norm: norms / batches.length, snr: slices.signalToNoise() });
    }
    measured.push({ gradients, metrics: averages(batchMetrics) });
  }
  policy.bank.clearGradient();
  return { parts, buckets: measured, cosines: means.map(a => means.map(b => cosine(a, b))) };
}

/** Returns the parts that the loss contains. */
const lossParts = ({ entropy_coeff, use_kl_loss }: PolicyLossOptions): LossPart[] => [
  'task',
  ...(entropy_coeff !== 0 ? (['entropy'] as const) : []),
  ...(use_kl_loss ? (['kl'] as const) : []),
];

/**
 * Returns the norm of a mini-batch's gradient. Multiplies the gradient of each slice by the number of slices and adds
 * the product to `slices`. The mean over the slices is then the gradient of the mini-batch.
 */
async function measureBatch(
  policy: Pick<Policy, 'bank' | 'addGradient'>,
  batch: readonly WeightedSample[],
  budget: PassBudget,
  loss: PolicyLossOptions,
  part: LossPart,
  seed: number,
  maxCells: number,
  slices: SliceStatistics,
  units: WorkUnits,
  images: ImageFeatures | undefined,
): Promise<{ norm: number; sums: LossSums }> {
  const { bank } = policy;
  const count = Math.min(slicesPerBatch, batch.length);
  const noise = new RandomStream(seed); // same dropout for every part
  const sums = { ...noSums };
  let before: Float64Array | undefined;
  bank.clearGradient();
  for (let slice = 0; slice < count; slice++) {
    const samples = batch.filter((_, i) => i % count === slice);
    const added = await policy.addGradient(samples, budget, loss, noise, part, units, images);
    for (const name of Object.keys(sums) as (keyof LossSums)[]) sums[name] += added[name];
    const sketch = sketchOf((await bank.readGradient()).flat, maxCells);
    slices.add(sketch.map((x, i) => count * (x - (before?.[i] ?? 0))));
    before = sketch;
  }
  const { flat } = await bank.readGradient();
  return { norm: Math.sqrt(flat.reduce((sum, x) => sum + x * x, 0)), sums };
}

/** Running mean of vectors, and the variance of this mean. */
class SliceStatistics {
  private count = 0;
  private total = new Float64Array(0);
  private squares = 0;

  add(vector: Float64Array): void {
    if (this.count === 0) this.total = new Float64Array(vector.length);
    for (let i = 0; i < vector.length; i++) this.total[i] += vector[i];
    this.squares += inner(vector, vector);
    this.count++;
  }

  get mean(): Float64Array {
    return this.total.map(x => x / this.count);
  }

  /** Returns ‖mean‖² / variance of the mean; null for fewer than two vectors, or if all vectors are equal. */
  signalToNoise(): number | null {
    const signal = inner(this.total, this.total) / this.count ** 2;
    const noise = (this.squares / this.count - signal) / (this.count - 1);
    return this.count > 1 && noise > 1e-12 * signal ? signal / noise : null;
  }
}

/** Returns the gradient, or a sketch of `size` cells if the gradient has more than `size` numbers. */
function sketchOf(gradient: Float32Array, size: number): Float64Array {
  if (gradient.length <= size) return Float64Array.from(gradient);
  const sketch = new Float64Array(size);
  for (let i = 0; i < gradient.length; i++) {
    // MurmurHash3 finaliser (Appleby, public domain): the low bits select the cell, and the highest bit selects the
    // sign.
    let h = Math.imul(i ^ (i >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    h ^= h >>> 16;
    const cell = (h & 0x7fffffff) % size;
    sketch[cell] += h < 0 ? -gradient[i] : gradient[i];
  }
  return sketch;
}

function cosine(a: Float64Array, b: Float64Array): number | null {
  const norms = Math.sqrt(inner(a, a) * inner(b, b));
  return norms > 0 ? inner(a, b) / norms : null;
}

const inner = (a: Float64Array, b: Float64Array): number => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** Returns the mean of each metric, by name. */
function averages(all: readonly UpdateMetrics[]): UpdateMetrics {
  const sum = (key: string): number => all.reduce((total, metrics) => total + metrics[key], 0);
  return Object.fromEntries(Object.keys(all[0]).map(key => [key, sum(key) / all.length]));
}
