// Our side of a comparison: one function per kind of benchmark. The workload stays open while its benchmark is
// measured. Each memory peak is measured in a new process of this program.
import { performance } from 'node:perf_hooks';
import { measurePeak } from './process-memory';
import type { Reading, Side, Workload } from './benchmark';
import { isAlone } from './definitions';
import type { Alone, Definition, Kind, SettingsOf } from './definitions';
import { crossScoring } from './cross-scoring-benchmark';
import { encoding, firstToken, picturedIteration } from './pictured-benchmarks';
import { iteration, memory, outside, product, rollout, training } from './engine-benchmarks';
import { frozenLake, sokoban } from './environment-benchmarks';
import { gatewayCalls } from './gateway-benchmark';
import { liveEdit, swapMemory } from './live-edit-benchmark';

type Implementations = {
  [K in Exclude<Kind, Alone>]: (settings: SettingsOf[K], threads: number) => Promise<Workload>;
};
const implementations: Implementations = {
  training,
  memory,
  rollout,
  iteration,
  product,
  'frozen-lake': frozenLake,
  sokoban,
  encoding,
  'first-token': firstToken,
  'pictured-iteration': picturedIteration,
};

/** A benchmark with a workload. */
type Openable = Exclude<Definition, { kind: Alone }>;

/** Opens the workload of a benchmark. */
export function open({ kind, settings }: Openable, threads: number): Promise<Workload> {
  const implementation = implementations[kind] as (settings: SettingsOf[Kind], threads: number) => Promise<Workload>;
  return implementation(settings, threads);
}

/** `program` is the script that accepts `--memory-of NAME`. */
export function ownSide(threads: number, program: string): Side {
  const opened = new Map<string, Workload>();
  const workloadOf = async (definition: Openable): Promise<Workload> => {
    const workload = opened.get(definition.name) ?? (await open(definition, threads));
    opened.set(definition.name, workload);
    return workload;
  };
  return {
    about: `onnxruntime-node, ${threads} threads`,
    measure: async (definition): Promise<Reading> => {
      const { name, kind } = definition;
      if (kind === 'memory')
        return measurePeak(process.execPath, [program, '--memory-of', name, '--threads', `${threads}`]);
      if (definition.kind === 'outside') return { value: await outside(definition.settings, threads) };
      if (definition.kind === 'cross-scoring') return { value: await crossScoring(definition.settings, threads) };
      if (definition.kind === 'live-edit') return { value: await liveEdit(definition.settings) };
      if (definition.kind === 'swap-memory') return { value: await swapMemory(definition.settings) };
      if (definition.kind === 'gateway') return gatewayCalls(definition.settings);
      const workload = await workloadOf(definition);
      await workload.prepare?.();
      const [start, before] = [performance.now(), process.cpuUsage()];
      const units = await workload.run();
      const seconds = (performance.now() - start) / 1000;
      const { user, system } = process.cpuUsage(before);
      return { value: units / seconds, ofProcessor: (1e6 * units) / (user + system) };
    },
    evidence: async definition => {
      if (definition.kind === 'memory' || isAlone(definition)) return null;
      return (await (await workloadOf(definition)).evidence?.()) ?? null;
    },
    release: async ({ name }) => {
      await opened.get(name)?.release();
      opened.delete(name);
    },
    stop: async () => undefined,
  };
}
