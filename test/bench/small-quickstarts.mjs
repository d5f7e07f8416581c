// Measures what presets learn, by default the quickstart-… presets: node test/bench/small-quickstarts.mjs [PRESET …]
// [--seeds 10000,20000,30000] [--jobs 1] [--set KEY=VALUE …] [--out FILE]. Each preset is trained once per seed, in its own
// temporary workspace. Prints the rows of the table in docs/PERFORMANCE.md: validation success before and after, and the
// seconds of the run; for a preset with several tags, also a row for each tag. Writes the success of every validation to
// FILE as CSV.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { execPath, exit, stderr, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '10000,20000,30000' },
    jobs: { type: 'string', default: '1' },
    set: { type: 'string', multiple: true, default: [] },
    out: { type: 'string' },
  },
});
const all = readdirSync(join(root, 'media/presets')).flatMap(name => /^(quickstart-.*)\.yaml$/.exec(name)?.[1] ?? []);
const presets = positionals.length > 0 ? positionals : all;
const waiting = presets.flatMap(preset => values.seeds.split(',').map(seed => ({ preset, seed })));

/** Trains a preset; resolves to the command's answer, or undefined if it failed. */
function train({ preset, seed }) {
  const workspace = mkdtempSync(join(tmpdir(), 'ragen-small-'));
  const args = [
    'train',
    '--json',
    '--workspace',
    workspace,
    '--config-name',
    preset,
    `seed.train=${seed}`,
    ...values.set,
  ];
  return new Promise(resolve => {
    const child = spawn(execPath, [join(root, 'dist/cli.cjs'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', data => (output += data));
    child.stderr.on('data', data => (errors += data));
    child.on('close', code => {
      if (code !== 0) stderr.write(`${preset}, seed ${seed}: exit code ${code}\n${errors}`);
      const answer = code === 0 ? JSON.parse(output) : undefined;
      const curves = answer && curvesOf(readFileSync(join(answer.folder, 'metrics.jsonl'), 'utf8'));
      rmSync(workspace, { recursive: true, force: true });
      resolve(answer && { ...answer, curves });
    });
  });
}

const row = (name, seed, before, after, time) =>
  `| ${name} | ${seed} | ${percent(before)} → ${percent(after)} | ${after >= before ? '+' : ''}${(100 * (after - before)).toFixed(1)} | ${time} |\n`;
const percent = share => `${(100 * share).toFixed(1)} %`;

/** Returns the validation success of each tag, by step. */
function curvesOf(metrics) {
  const lines = metrics
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
  const keys = new Set(lines.flatMap(line => Object.keys(line).filter(key => /^val-env\/[^/]+\/success$/.test(key))));
  return [...keys].map(key => ({
    tag: key.split('/')[1],
    points: lines.filter(line => key in line).map(line => ({ step: line.step, success: line[key] })),
  }));
}

async function work() {
  for (let run = waiting.shift(); run; run = waiting.shift()) {
    const answer = await train(run);
    if (!answer) {
      failed = true;
      continue;
    }
    const [first, last] = [answer.validation[0], answer.validation.at(-1)];
    stdout.write(row(run.preset, run.seed, first.success, last.success, `${answer.wall_s.toFixed(0)} s`));
    for (const { tag, points } of answer.curves) {
      if (answer.curves.length > 1)
        stdout.write(row(`${run.preset}: ${tag}`, run.seed, points[0].success, points.at(-1).success, ''));
      if (values.out === undefined) continue;
      for (const { step, success } of points)
        appendFileSync(values.out, `${run.preset},${run.seed},${tag},${step},${success}\n`);
    }
  }
}

let failed = false;
if (values.out !== undefined) writeFileSync(values.out, 'preset,seed,tag,step,success\n');
stdout.write('| preset | `seed.train` | success before → after | gain, points | run |\n|---|---|---|---|---|\n');
await Promise.all(Array.from({ length: Number(values.jobs) }, work));
if (failed) exit(1);
