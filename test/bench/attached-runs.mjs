// Measures how long `ragen attach` takes to show a large run of another trainer: node test/bench/attached-runs.mjs
// [--gigabytes 10] [--layout steps|one-file] [--folder FOLDER]. Run `npm run build` first, and do not measure on a busy
// machine. Prints when the run folder, its metrics and its newest rollouts are there, the time that plain reading of
// the same bytes takes, and the greatest memory of the process that follows the files. The rollouts have the form of
// verl's dumps: one file of 100 MB per step, all links to the same bytes, so that 10 GB take 0.1 GB on the disk; with
// `one-file`, a single file of JSON lines, in which the same rollouts have the numbers of all steps, and which takes its
// full size, beside metrics in the form of a script. Everything is removed afterwards.
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { execPath, kill, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { generator } from '../e2e/fixtures/generator.mjs';

const cli = resolve(dirname(fileURLToPath(import.meta.url)), '../../dist/cli.cjs');
const { values } = parseArgs({
  options: {
    gigabytes: { type: 'string', default: '10' },
    layout: { type: 'string', default: 'steps' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const isOneFile = values.layout === 'one-file';
const stepBytes = 100e6;
const steps = Math.max(1, Math.round((Number(values.gigabytes) * 1e9) / stepBytes));

const random = generator(7);
const words = 'I am at the goal lies right below hole must be avoided so go up then left down because wall free'.split(
  ' ',
);
const text = length => Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(' ');

/** About 2 KB: one rollout of three turns. */
function rollout(step, i) {
  const turn = () => `<think>${text(60)}</think><answer>Down</answer>\nuser\nState:\n_P_O\n${text(40)}\nassistant\n`;
  const common = { input: `user\nState ${i >> 3}:\n${text(30)}\nassistant\n`, output: turn() + turn() + turn() };
  return `${JSON.stringify({ ...common, gts: '', score: i % 2, step })}\n`;
}

function lines(step) {
  const parts = [];
  for (let [i, bytes] = [0, 0]; bytes < stepBytes; i++) {
    parts.push(rollout(step, i));
    bytes += parts.at(-1).length;
  }
  return parts.join('');
}

function make(source) {
  const old = new Date(Date.now() - 3600_000); // files that change are read later
  const metrics = Array.from({ length: steps }, (_, i) => {
    const data = Object.fromEntries(Array.from({ length: 100 }, (_, j) => [`group/metric_${j}`, random()]));
    const values = { 'critic/score/mean': random(), ...data };
    return `${JSON.stringify(isOneFile ? { step: i + 1, ...values } : { step: i + 1, data: values })}\n`;
  });
  mkdirSync(join(source, 'rollouts'), { recursive: true });
  writeFileSync(join(source, 'metrics.jsonl'), metrics.join(''));
  const first = join(source, 'rollouts', isOneFile ? 'all.jsonl' : '1.jsonl');
  const rollouts = lines(1);
  writeFileSync(first, rollouts);
  for (let step = 2; step <= steps; step++) {
    if (isOneFile) appendFileSync(first, rollouts.replaceAll('"step":1}', `"step":${step}}`));
    else linkSync(first, join(source, 'rollouts', `${step}.jsonl`));
  }
  utimesSync(first, old, old);
  return { metrics: join(source, 'metrics.jsonl'), rollouts: first };
}

const seconds = since => `${((performance.now() - since) / 1000).toFixed(2)} s`;

async function until(what, began, isThere) {
  while (!isThere()) await sleep(5);
  stdout.write(`${what}: ${seconds(began)}\n`);
}

/** The greatest resident memory of a process in MB; undefined where the system does not report it. */
function memory(pid) {
  const file = `/proc/${pid}/status`;
  const [, kilobytes] = existsSync(file) ? (/VmHWM:\s+(\d+)/.exec(readFileSync(file, 'utf8')) ?? []) : [];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
}

const place = mkdtempSync(join(values.folder, 'ragen-attached-'));
const [source, workspace] = [join(place, 'trainer'), join(place, 'workspace')];
mkdirSync(workspace);
let follower;
try {
  const files = make(source);
  const total = readdirSync(join(source, 'rollouts')).reduce(
    (sum, name) => sum + statSync(join(source, 'rollouts', name)).size,
    0,
  );
  stdout.write(`${(total / 1e9).toFixed(1)} GB of rollouts, ${isOneFile ? 'one file' : `${steps} files`}\n`);
  const reading = performance.now();
  readFileSync(files.metrics);
  const handle = readFileSync(isOneFile ? files.metrics : files.rollouts);
  stdout.write(`plain reading of the metrics and ${(handle.length / 1e6).toFixed(0)} MB more: ${seconds(reading)}\n`);

  const began = performance.now();
  const child = spawn(execPath, [cli, 'attach', source, '--detach', '--workspace', workspace, '--json'], {
    cwd: workspace,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((done, failed) => {
    child.once('exit', code => (code === 0 ? done() : failed(new Error(`ragen attach ended with code ${code}`))));
  });
  ended.then(
    () => stdout.write(`answer of the command: ${seconds(began)}\n`),
    () => undefined,
  );
  const runs = join(workspace, '.ragen', 'runs');
  const run = () => join(runs, readdirSync(runs).find(name => !name.startsWith('.')) ?? '-');
  const lineCount = file => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0);
  const episodes = step => join(run(), 'episodes', `step-${String(step).padStart(6, '0')}.jsonl`);
  await until('run folder', began, () => existsSync(runs) && existsSync(join(run(), 'manifest.json')));
  await until('state', began, () => existsSync(join(run(), 'status.json')));
  await until('metrics', began, () => lineCount(join(run(), 'metrics.jsonl')) === steps);
  await until(
    'newest rollouts',
    began,
    () => existsSync(episodes(steps)) && lineCount(join(run(), 'episodes/index.jsonl')) > 0,
  );
  await ended;
  follower = JSON.parse(readFileSync(join(run(), 'lease'), 'utf8')).pid;
  await until(
    'all rollouts of the newest step',
    began,
    () => existsSync(episodes(steps)) && statSync(episodes(steps)).size > 1.5 * stepBytes,
  );
  await until(
    'rollouts of three steps',
    began,
    () => readdirSync(join(run(), 'episodes')).filter(name => /^step-\d+\.jsonl$/.test(name)).length >= 3,
  );
  stdout.write(`greatest memory of the follower: ${memory(follower) ?? 'unknown'} MB\n`);
} finally {
  if (follower !== undefined) {
    kill(follower, 'SIGTERM');
    const isGone = () => {
      try {
        return !kill(follower, 0);
      } catch {
        return true;
      }
    };
    while (!isGone()) await sleep(20);
  }
  rmSync(place, { recursive: true, force: true });
}
