// `npm run bench [-- --json] [-- --python PATH]`: how fast the product trains, generates and steps environments on this machine, and,
// where a Python with PyTorch is given (or RAGEN_BENCH_PYTHON names it), how fast the same work is there. Prints what was measured; nothing is asserted.
import { cpus, loadavg } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measure } from './benchmark';
import type { Measurement } from './benchmark';
import { engineBenchmarks } from './engine-benchmarks';
import { environmentBenchmarks } from './environment-benchmarks';
import { startPythonPeer } from './python-peer';

const usage = `npm run bench -- [options]
  --python PATH   a Python with torch (gymnasium, gym-sokoban): the same work there, in turn
  --rounds N      runs of each benchmark on each side (7)
  --threads N     threads inside an operator, both sides (2)
  --only TEXT     benchmarks whose name contains it
  --json          print one JSON document`;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      python: { type: 'string', default: process.env.RAGEN_BENCH_PYTHON },
      rounds: { type: 'string', default: '7' },
      threads: { type: 'string', default: '2' },
      only: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const [rounds, threads] = [wholeNumber('rounds', values.rounds), wholeNumber('threads', values.threads)];
  const script = join(dirname(dirname(fileURLToPath(import.meta.url))), 'test', 'bench', 'peer_torch.py');
  const peer = values.python ? await startPythonPeer(values.python, script, threads, say) : null;
  const benchmarks = [...engineBenchmarks(threads), ...environmentBenchmarks()];
  const results: Measurement[] = [];
  const load = [loadavg()[0]];
  try {
    for (const benchmark of benchmarks.filter(({ name }) => name.includes(values.only))) {
      say(`${benchmark.name} …`);
      results.push(await measure(benchmark, peer, rounds));
    }
  } finally {
    peer?.stop();
  }
  load.push(loadavg()[0]);
  const machine = `${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}, ${process.platform}-${process.arch}`;
  if (values.json)
    console.log(JSON.stringify({ machine, load, peer: peer?.about ?? null, rounds, threads, results }, null, 2));
  else print(results, [machine, `load ${load.map(x => x.toFixed(1)).join(' to ')}`, `peer: ${peer?.about ?? 'none'}`]);
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`bench: --${name} is ${text}: give a whole number of at least 1`);
  return Number(text);
}

/** A table of medians with the range of the runs, and below it what both sides were told to do. */
function print(results: readonly Measurement[], heading: readonly string[]): void {
  const number = (x: number): string => (x >= 100 ? Math.round(x).toLocaleString('en') : x.toPrecision(3));
  const side = (runs: Measurement['peer']): string =>
    runs ? `${number(runs.median)} (${number(Math.min(...runs.runs))}–${number(Math.max(...runs.runs))})` : '–';
  const rows = results.map(({ name, unit, ours, peer, ratio }) => [
    name,
    unit,
    side(ours),
    side(peer),
    ratio?.toFixed(2) ?? '–',
  ]);
  const table = [['benchmark', 'unit', 'ours', 'peer', 'ours/peer'], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map(row => row[column].length)));
  console.log(heading.join('\n'));
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
  for (const { name, settings } of results)
    console.log(`${name}: ${Object.entries(settings).map(([key, value]) => `${key} ${value}`).join(', ')}`); // prettier-ignore
}

main().catch((error: Error) => {
  say(error.message);
  process.exitCode = 1;
});
