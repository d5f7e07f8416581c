// Compares the training speed of two builds on Linux: node test/bench/build-comparison.mjs --against FOLDER
// [--steps N] [--config NAME] [--slice MS]. FOLDER is another checkout of this repository with its build in dist/. Both
// builds train the same configuration with the same seeds. They take turns: one runs for a slice of time while the
// other's processes are stopped (SIGSTOP), so both are exposed to the same load of the machine. Prints, for each step,
// the time in which a build was allowed to run and the processor time of all its processes, and the ratios of the
// medians. At the end, prints the validation success of both builds.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    against: { type: 'string' },
    steps: { type: 'string', default: '24' },
    config: { type: 'string', default: 'quickstart' },
    slice: { type: 'string', default: '400' },
  },
});
if (values.against === undefined || process.platform !== 'linux')
  throw new Error('build-comparison: --against is missing: give the folder of another build, on Linux');
const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const ticksPerSecond = 100; // of /proc/PID/stat on Linux

const wait = ms => new Promise(done => setTimeout(done, ms));
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The fields of /proc/PID/stat from the third one (state) on; null if the process has ended. */
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** Adds the descendants of processes to the list, and removes the processes that have ended. */
function refresh(pids) {
  const processes = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      const fields = stat(name);
      return fields && fields[0] !== 'Z' ? [{ pid: Number(name), parent: Number(fields[1]) }] : [];
    });
  const found = pids.filter(pid => processes.some(other => other.pid === pid));
  for (const pid of found)
    for (const other of processes) if (other.parent === pid && !found.includes(other.pid)) found.push(other.pid);
  return found;
}

/** Processor seconds of processes, with those of the children that they have waited for. */
const processorSeconds = pids =>
  pids.reduce(
    (sum, pid) =>
      sum +
      (stat(pid)
        ?.slice(11, 15)
        .reduce((a, b) => a + Number(b), 0) ?? 0),
    0,
  ) / ticksPerSecond;

/** A run of one build, stopped unless it has its turn. */
class Contender {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-build-'));
  ended = false;
  steps = [];
  validations = [];
  active = 0;
  /** The command and the processes that it has started; the trainer outlives the command. */
  #pids;
  #lines = 0;
  #last = { active: 0, processor: 0 };

  constructor(name, folder) {
    this.name = name;
    const child = spawn(
      process.execPath,
      [
        ...[join(folder, 'dist/cli.cjs'), 'train', '--config-name', values.config],
        ...[`trainer.total_training_steps=${values.steps}`, ...positionals],
      ],
      { cwd: this.workspace, stdio: 'ignore' },
    );
    this.#pids = [child.pid];
  }

  #signal(signal) {
    for (const pid of this.#pids)
      try {
        process.kill(pid, signal);
      } catch {
        // the process has ended
      }
  }

  stop() {
    if (!this.ended) this.#signal('SIGSTOP');
  }

  kill() {
    if (!this.ended) this.#signal('SIGKILL');
  }

  /** Lets the build run for `ms` milliseconds. */
  async turn(ms) {
    if (this.ended) return;
    this.#signal('SIGCONT');
    const begin = performance.now();
    const before = this.active;
    do {
      await wait(20);
      this.active = before + performance.now() - begin;
      this.#readMetrics();
    } while (performance.now() - begin < ms);
    this.#pids = refresh(this.#pids);
    this.ended = this.#pids.length === 0;
    this.stop();
  }

  #readMetrics() {
    const runs = join(this.workspace, '.ragen/runs');
    const [run] = existsSync(runs) ? readdirSync(runs) : [];
    const file = run && join(runs, run, 'metrics.jsonl');
    if (!file || !existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    for (; this.#lines < lines.length; this.#lines++) {
      const { step, ...metrics } = JSON.parse(lines[this.#lines]);
      const now = { active: this.active, processor: processorSeconds(this.#pids) };
      if (step > 0)
        this.steps.push({
          wall: (now.active - this.#last.active) / 1000,
          processor: now.processor - this.#last.processor,
          metrics,
        });
      this.#last = now;
      const success = Object.entries(metrics).find(([key]) => /^val-env\/.*(success|avg_episode_return)/.test(key));
      if (success) this.validations.push(`${step}: ${success[1].toFixed(3)}`);
    }
  }
}

const contenders = [new Contender('this build', root), new Contender('other build', resolve(values.against))];
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
process.once('exit', () => {
  for (const contender of contenders) contender.kill();
  for (const { workspace } of contenders) rmSync(workspace, { recursive: true, force: true });
});
let shown = 0;
while (contenders.some(({ ended }) => !ended)) {
  for (const contender of contenders) await contender.turn(Number(values.slice));
  for (; contenders.every(({ steps }) => steps.length > shown); shown++) {
    const [ours, other] = contenders.map(({ steps }) => steps[shown]);
    console.log(
      [
        `step ${shown + 1}`.padEnd(8),
        ...[ours, other].map(({ wall, processor }) => `${wall.toFixed(2)} s, processor ${processor.toFixed(2)} s`),
        `× ${(other.wall / ours.wall).toFixed(2)}, processor × ${(other.processor / ours.processor).toFixed(2)}`,
      ].join('  |  '),
    );
  }
}
const [ours, other] = contenders.map(({ steps }) => ({
  wall: median(steps.map(({ wall }) => wall)),
  processor: median(steps.map(({ processor }) => processor)),
  walls: steps.reduce((sum, { wall }) => sum + wall, 0),
  processors: steps.reduce((sum, { processor }) => sum + processor, 0),
}));
const ratio = key => (other[key] / ours[key]).toFixed(2);
console.log(`median step: ${ours.wall.toFixed(2)} s against ${other.wall.toFixed(2)} s, × ${ratio('wall')}`);
console.log(
  `median step, processor: ${ours.processor.toFixed(2)} s against ${other.processor.toFixed(2)} s, × ${ratio('processor')}`,
);
console.log(`all steps: × ${ratio('walls')}, processor × ${ratio('processors')}`);
for (const { name, validations, steps } of contenders) {
  console.log(`${name}: validation by step ${validations.join(', ')}`);
  const first = Object.entries(steps[0]?.metrics ?? {}).filter(([key]) => /^(actor|critic)\//.test(key));
  console.log(`  first step: ${first.map(([key, x]) => `${key} ${String(x)}`).join(', ')}`);
}
