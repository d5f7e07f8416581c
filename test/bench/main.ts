// `npm run bench [-- --json] [-- --python PATH]`: measures the speed of training, sampling and environment steps on
// this machine. If a Python with PyTorch is given (`--python` or RAGEN_BENCH_PYTHON), PyTorch is measured on the same
// work. Prints the results and asserts nothing. Our side runs in the worker and the processes of the built product.
import { cpus, loadavg } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measure } from './benchmark';
import type { Measurement, Side } from './benchmark';
import { definitions, limit } from './definitions';
import { gpuDefinitions, gpuDevices, noGpuCode } from './gpu-benchmarks';
import type { Definition } from './definitions';
import { open, ownSide } from './own-side';
import { peakMemory } from './process-memory';
import type { PeakReport } from './process-memory';
import { startPythonPeer } from './python-peer';
import type { Waiting } from './python-peer';

const usage = `npm run bench -- [options]
  --python PATH    Python with torch (gymnasium, gym-sokoban): also measures the same work there
  --only TEXT      benchmarks whose name contains TEXT, including large ones
  --large          include models of half a billion parameters: half an hour and 8 GiB
  --rounds N       runs of each benchmark on each side (5)
  --threads N      threads inside an operator, both sides (2)
  --tune           try all configurations of the peer and use the fastest
  --waiting HOW    behaviour of the peer's idle threads: passive, spin or default (spin)
  --side WHICH     both, ours or peer (both)
  --gpu            the shape of Qwen2.5-0.5B on a GPU, after its self-check; exit code 3 if no GPU is usable
  --device WHICH   with --gpu: cuda, webgpu or cpu (all GPUs that are found)
  --small          with --gpu: a small model, to try the script
  --json           print one JSON document`;

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const program = fileURLToPath(import.meta.url);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      python: { type: 'string', default: process.env.RAGEN_BENCH_PYTHON },
      rounds: { type: 'string', default: '5' },
      threads: { type: 'string', default: '2' },
      only: { type: 'string', default: '' },
      large: { type: 'boolean', default: false },
      tune: { type: 'boolean', default: false },
      waiting: { type: 'string', default: 'spin' },
      side: { type: 'string', default: 'both' },
      gpu: { type: 'boolean', default: false },
      device: { type: 'string' },
      small: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      'memory-of': { type: 'string' },
    },
  });
  if (values.help) return console.log(usage);
  const [rounds, threads] = [wholeNumber('rounds', values.rounds), wholeNumber('threads', values.threads)];
  if (values['memory-of'] !== undefined) return reportPeak(values['memory-of'], threads);
  const waiting = oneOf<Waiting>('waiting', values.waiting, ['passive', 'spin', 'default']);
  const side = oneOf('side', values.side, ['both', 'ours', 'peer']);
  const device = values.device === undefined ? undefined : oneOf('device', values.device, ['cuda', 'webgpu', 'cpu']);
  const gpus = values.gpu ? await gpuDevices(device, say) : [];
  if (typeof gpus === 'string') {
    say(gpus);
    process.exitCode = noGpuCode;
    return;
  }
  const offered = values.gpu ? gpus.flatMap(gpu => gpuDefinitions(gpu, values.small)) : definitions;
  const chosen = offered.filter(
    ({ name, large }) => name.includes(values.only) && (values.large || values.gpu || values.only || !large),
  );
  if (chosen.length === 0) throw new Error(`bench: no benchmark's name contains ${values.only}: omit --only`);
  const script = join(dirname(dirname(program)), 'test', 'bench', 'peer', 'main.py');
  const python = side === 'ours' ? undefined : values.python;
  const peer = python
    ? await startPythonPeer({ python, script, threads, waiting, tune: values.tune, notice: say })
    : null;
  const ours = side === 'peer' ? null : ownSide(threads, program);
  const load = [loadavg()[0]];
  const results: Measurement[] = [];
  try {
    for (const definition of values.gpu ? chosen : [limit, ...chosen]) {
      say(`${definition.name} …`);
      results.push(await measure(definition, { ours, peer }, rounds));
      say(`  ${line(results.at(-1)!, results[0]).slice(1).join('  ')}`);
    }
  } finally {
    await peer?.stop();
  }
  load.push(loadavg()[0]);
  report(results, { ours, peer, load, rounds, json: values.json, devices: gpus.map(({ about }) => about) });
}

/** Runs one step in this process and prints its peak memory. */
async function reportPeak(name: string, threads: number): Promise<void> {
  const definition = definitions.find(
    (d): d is Extract<Definition, { kind: 'memory' }> => d.name === name && d.kind === 'memory',
  );
  if (!definition) throw new Error(`bench: --memory-of is ${name}: use the name of a memory benchmark`);
  const start_mib = peakMemory();
  const workload = await open(definition, threads);
  await workload.run();
  console.log(JSON.stringify({ peak_mib: peakMemory(), start_mib } satisfies PeakReport));
  await workload.release();
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`bench: --${name} is ${text}: give a whole number of at least 1`);
  return Number(text);
}

function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const found = choices.find(choice => choice === text);
  if (!found) throw new Error(`bench: --${name} is ${text}: use one of ${choices.join(', ')}`);
  return found;
}

interface Circumstances {
  ours: Side | null;
  peer: Side | null;
  load: readonly number[];
  rounds: number;
  json: boolean;
  /** GPUs with the findings of their self-check. */
  devices: readonly string[];
}

function report(results: readonly Measurement[], { ours, peer, load, rounds, json, devices }: Circumstances): void {
  const processor = `${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}, ${process.platform}-${process.arch}`;
  const machine = [processor, ...devices].join('; ');
  const sides = { ours: ours?.about ?? null, peer: peer?.about ?? null };
  if (json) return console.log(JSON.stringify({ machine, load, ...sides, rounds, results }, null, 2));
  const table = [heading, ...results.map(result => line(result, results[0]))];
  const widths = heading.map((_, column) => Math.max(...table.map(row => row[column].length)));
  console.log(
    [machine, `load ${load.map(x => x.toFixed(1)).join(' to ')}`, `ours: ${sides.ours}`, `peer: ${sides.peer}`].join(
      '\n',
    ),
  );
  console.log(
    table
      .map(row =>
        row
          .map((cell, i) => cell.padEnd(widths[i]))
          .join('  ')
          .trimEnd(),
      )
      .join('\n'),
  );
  for (const { definition, ours, peer } of results)
    console.log(
      `${definition.name}: ${Object.entries(definition.settings)
        .map(([key, value]) => `${key} ${String(value)}`)
        .join(', ')}${ours?.how ? `; ours ${ours.how}` : ''}${peer?.how ? `; peer ${peer.how}` : ''}`,
    );
}

const heading = [
  'benchmark',
  'unit',
  'ours',
  'peer',
  'ours/peer',
  'by processor time',
  'difference',
  'target',
  "of the machine's limit: ours, peer",
];

/**
 * A table row: medians with the range of the runs, the ratio of the medians by wall and processor time, the difference of
 * the results, and each side's operations per second as a share of the faster of the two matrix products.
 */
function line(
  { definition, ours, peer, ratio, processorRatio, difference, reached }: Measurement,
  top: Measurement,
): string[] {
  const { name, unit, better, target, operations } = definition;
  const side = (runs: Measurement['peer']): string =>
    runs ? `${shown(runs.median)} (${shown(Math.min(...runs.runs))}–${shown(Math.max(...runs.runs))})` : '–';
  const most = 1e9 * Math.max(top.ours?.median ?? 0, top.peer?.median ?? 0);
  const share = (runs: Measurement['peer']): string =>
    runs && operations !== null ? `${((100 * runs.median * operations) / most).toFixed(0)} %` : '–';
  return [
    name,
    unit,
    side(ours),
    side(peer),
    ratio?.toFixed(2) ?? '–',
    processorRatio?.toFixed(2) ?? '–',
    difference?.toExponential(0) ?? '–',
    target === null
      ? '–'
      : `${better === 'higher' ? '≥' : '≤'} ${target}${reached ? '' : reached === null ? '' : ', missed'}`,
    `${share(ours)}, ${share(peer)}`,
  ];
}

const shown = (x: number): string => (x >= 100 ? Math.round(x).toLocaleString('en') : x.toPrecision(3));

main().catch((error: Error) => {
  say(error.message);
  process.exitCode = 1;
});
