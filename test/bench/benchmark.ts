// What a benchmark is, and how it is run: rounds in which ours and the peer's turn alternate, so that both meet the same weather on a
// shared machine, and medians over them. Which benchmarks there are says definitions.ts; each side has its own way to run them.
import { isAlone } from './definitions';
import type { Definition } from './definitions';

/** A benchmark made ready on our side: model loaded, data drawn. */
export interface Workload {
  /** Does the work once; resolves to the units done (tokens, iterations, steps, 10⁹ operations), of which the rate is made. */
  run(): Promise<number>;
  /** Gives memory and sessions back. */
  release(): Promise<void>;
}

/** A rate in units a second, or a peak in MiB, and what else the side tells about how it did it. */
export interface Reading {
  value: number;
  how?: string;
}

/** One of the sides of a comparison. */
export interface Side {
  /** What it is, versions included. */
  about: string;
  /** Measures once; null where this side lacks what the benchmark needs. */
  measure(definition: Definition): Promise<Reading | null>;
  /** Gives back what the benchmark held. */
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
  /** Median of ours over median of the peer's. */
  ratio: number | null;
  /** Whether the ratio (ours alone, where no peer can be) reaches the target; null where there is no target or no ratio. */
  reached: boolean | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * A run to warm up on every side, then `rounds` of them; who goes first changes from round to round. Memory hardly varies and is measured
 * in fresh processes, so that one run of each is enough.
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

/** Whether a ratio of ours to the peer's is on the right side of the target. */
export function reaches(
  { better, target }: Pick<Definition, 'better' | 'target'>,
  ratio: number | null,
): boolean | null {
  if (target === null || ratio === null) return null;
  return better === 'higher' ? ratio >= target : ratio <= target;
}
