// Defines a benchmark and its measurement. The product and the peer run alternately in rounds, so that they run under
// the same load of a shared machine; the result is the median over rounds. definitions.ts lists the benchmarks, which
// the product and the peer implement separately.
import { isAlone } from './definitions';
import type { Definition } from './definitions';

/** A benchmark prepared on our side: model loaded, data drawn. */
export interface Workload {
  /**
   * Runs the work once; resolves to the number of completed units (tokens, iterations, steps, 10⁹ operations), from
   * which the rate is computed.
   */
  run(): Promise<number>;
  /** Frees memory and sessions. */
  release(): Promise<void>;
}

/** A rate in units per second or a peak in MiB, with a note on how it was measured. */
export interface Reading {
  value: number;
  how?: string;
}

/** One side of a comparison. */
export interface Side {
  /** Description of the side, with versions. */
  about: string;
  /** Measures once; null if a requirement of the benchmark is missing on this side. */
  measure(definition: Definition): Promise<Reading | null>;
  /** Frees the resources of the benchmark. */
  release(definition: Definition): Promise<void>;
  stop(): Promise<void>;
}

export interface Readings {
  median: number;
  runs: number[];
  how?: string;
}

export interface Measurement {
  definition: Definition;
  ours: Readings | null;
  peer: Readings | null;
  /** Our median divided by the peer's. */
  ratio: number | null;
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
  const contenders: { side: Side; runs: number[]; how?: string }[] = [];
  const taken = new Map<Side | null, Readings>();
  const sides = [ours, peer].filter(side => side !== null);
  const once = definition.kind === 'memory' || definition.kind === 'swap-memory';
  try {
    for (const side of sides) {
      const first = await side.measure(definition);
      if (first) contenders.push({ side, runs: once ? [first.value] : [], how: first.how });
    }
    for (let round = 0; round < (once ? 0 : rounds); round++)
      for (const contender of round % 2 === 0 ? contenders : contenders.toReversed())
        contender.runs.push((await contender.side.measure(definition))!.value);
  } finally {
    for (const side of sides) await side.release(definition);
  }
  for (const { side, runs, how } of contenders) taken.set(side, { median: median(runs), runs, how });
  const result = { definition, ours: taken.get(ours) ?? null, peer: taken.get(peer) ?? null };
  const ratio = result.ours && result.peer && result.ours.median / result.peer.median;
  return {
    ...result,
    ratio,
    reached: reaches(definition, ratio ?? (isAlone(definition) ? result.ours!.median : null)),
  };
}

/** Whether the ratio of our value to the peer's reaches the target. */
export function reaches(
  { better, target }: Pick<Definition, 'better' | 'target'>,
  ratio: number | null,
): boolean | null {
  if (target === null || ratio === null) return null;
  return better === 'higher' ? ratio >= target : ratio <= target;
}
