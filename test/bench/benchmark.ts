// Defines a benchmark and its measurement. The product and the peer run alternately in rounds, so that they run under
// the same load of a shared machine; the result is the median over rounds. definitions.ts lists the benchmarks, which
// the product and the peer implement separately.
import { isAlone } from './definitions';
import type { Definition } from './definitions';

/** A benchmark prepared on our side: model loaded, data drawn. */
export interface Workload {
  /** Prepares what the next run needs and the peer does not; not measured. */
  prepare?(): Promise<void>;
  /**
   * Runs the work once; resolves to the number of completed units (tokens, iterations, steps, 10⁹ operations), from
   * which the rate is computed.
   */
  run(): Promise<number>;
  /** Returns results that must equal the peer's: features, log-probs, the norm of a gradient. Each list is compared alone. */
  evidence?(): Promise<number[][]>;
  /** Frees memory and sessions. */
  release(): Promise<void>;
}

/** A rate in units per second or a peak in MiB, with a note on how it was measured. */
export interface Reading {
  value: number;
  /** Units per second of processor time of all threads of the side's process. */
  ofProcessor?: number;
  how?: string;
}

/** One side of a comparison. */
export interface Side {
  /** Description of the side, with versions. */
  about: string;
  /** Measures once; null if a requirement of the benchmark is missing on this side. */
  measure(definition: Definition): Promise<Reading | null>;
  /** Returns results that must be equal on both sides; null if the benchmark has none. */
  evidence(definition: Definition): Promise<number[][] | null>;
  /** Frees the resources of the benchmark. */
  release(definition: Definition): Promise<void>;
  stop(): Promise<void>;
}

export interface Readings {
  median: number;
  runs: number[];
  /** Median of the units per second of processor time; null if it is not measured. */
  ofProcessor: number | null;
  how?: string;
}

export interface Measurement {
  definition: Definition;
  ours: Readings | null;
  peer: Readings | null;
  /** Our median divided by the peer's. */
  ratio: number | null;
  /** The same by processor time, which other programs of the machine affect less. */
  processorRatio: number | null;
  /** Relative difference of the results that must be equal; null if there are none. */
  difference: number | null;
  /**
   * Whether the ratio (or our value, if there is no peer) reaches the target; null if there is no target or no ratio.
   */
  reached: boolean | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Runs a warm-up on every side, then `rounds` rounds whose first side alternates. Memory varies little and is measured
 * in fresh processes, so it is measured once per side.
 */
export async function measure(
  definition: Definition,
  { ours, peer }: { ours: Side | null; peer: Side | null },
  rounds: number,
): Promise<Measurement> {
  const contenders: { side: Side; runs: number[]; processor: (number | undefined)[]; how?: string }[] = [];
  const taken = new Map<Side | null, Readings>();
  const sides = [ours, peer].filter(side => side !== null);
  const once = definition.kind === 'memory' || definition.kind === 'swap-memory';
  let difference: number | null = null;
  try {
    if (ours && peer) difference = await compared(definition, ours, peer);
    for (const side of sides) {
      const first = await side.measure(definition);
      if (first) contenders.push({ side, runs: once ? [first.value] : [], processor: [], how: first.how });
    }
    for (let round = 0; round < (once ? 0 : rounds); round++)
      for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const { value, ofProcessor } = (await contender.side.measure(definition))!;
        contender.runs.push(value);
        contender.processor.push(ofProcessor);
      }
  } finally {
    for (const side of sides) await side.release(definition);
  }
  for (const { side, runs, processor, how } of contenders) {
    const known = processor.filter(rate => rate !== undefined);
    const ofProcessor = known.length > 0 ? median(known) : null;
    taken.set(side, { median: median(runs), runs, ofProcessor, how });
  }
  const result = { definition, ours: taken.get(ours) ?? null, peer: taken.get(peer) ?? null };
  const ratio = result.ours && result.peer && result.ours.median / result.peer.median;
  const [own, other] = [result.ours?.ofProcessor, result.peer?.ofProcessor];
  return {
    ...result,
    ratio,
    processorRatio: own && other ? own / other : null,
    difference,
    reached: reaches(definition, ratio ?? (isAlone(definition) ? result.ours!.median : null)),
  };
}

/** Largest relative difference of results that must be equal. */
const mostDifference = 1e-3;

/** Returns the largest relative difference of the sides' lists of results. @throws if they are not equal */
async function compared(definition: Definition, ours: Side, peer: Side): Promise<number | null> {
  const [own, other] = [await ours.evidence(definition), await peer.evidence(definition)];
  if (!own || !other) return null;
  const norm = (values: readonly number[]): number => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
  const differences = own.map((list, part) => {
    const expected = other.at(part) ?? [];
    const difference = norm(list.map((x, i) => x - expected[i])) / norm(expected);
    if (list.length !== expected.length || !(difference <= mostDifference))
      throw new Error(
        `bench: ${definition.name}: the sides differ by ${difference} in result ${part} (${list.length} and ${expected.length} values), and at most ${mostDifference} is accepted: compare the peer's work with ours`,
      );
    return difference;
  });
  return Math.max(...differences);
}

/** Whether the ratio of our value to the peer's reaches the target. */
export function reaches(
  { better, target }: Pick<Definition, 'better' | 'target'>,
  ratio: number | null,
): boolean | null {
  if (target === null || ratio === null) return null;
  return better === 'higher' ? ratio >= target : ratio <= target;
}
