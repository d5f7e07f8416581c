// What a benchmark is, and how it is run: rounds in which ours and the peer's turn alternate, so that both meet the same weather on a
// shared machine, and medians over them.

export interface Benchmark {
  name: string;
  unit: string;
  /** What both sides are told to do; printed with the result. */
  settings: Record<string, number | string | boolean>;
  /** One run; returns its rate in `unit`. */
  run(): Promise<number>;
}

/** Runs the same benchmarks elsewhere. */
export interface Peer {
  /** What it is, versions included. */
  about: string;
  /** One run of the benchmark of that name; null where the peer lacks what it needs. */
  run(name: string, settings: Benchmark['settings']): Promise<number | null>;
}

export interface Measurement {
  name: string;
  unit: string;
  settings: Benchmark['settings'];
  ours: { median: number; runs: number[] };
  peer: { median: number; runs: number[] } | null;
  /** Median of ours over median of the peer's. */
  ratio: number | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A run to warm up on both sides, then `rounds` of them; who goes first changes from round to round. */
export async function measure(benchmark: Benchmark, peer: Peer | null, rounds: number): Promise<Measurement> {
  const { name, unit, settings } = benchmark;
  const ours: number[] = [];
  const theirs: number[] = [];
  await benchmark.run();
  const able = (await peer?.run(name, settings)) ?? null;
  const turns = [
    async () => ours.push(await benchmark.run()),
    async () => peer && able !== null && theirs.push((await peer.run(name, settings))!),
  ];
  for (let round = 0; round < rounds; round++) {
    await turns[round % 2]();
    await turns[1 - (round % 2)]();
  }
  const summary = (runs: number[]) => ({ median: median(runs), runs });
  return {
    name,
    unit,
    settings,
    ours: summary(ours),
    peer: theirs.length > 0 ? summary(theirs) : null,
    ratio: theirs.length > 0 ? median(ours) / median(theirs) : null,
  };
}

/** Rate of `work`, which says how many units it did. */
export async function rate(work: () => number | Promise<number>): Promise<number> {
  const start = performance.now();
  const units = await work();
  return (1000 * units) / (performance.now() - start);
}
