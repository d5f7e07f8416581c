// Generates a run folder with 100,000 seeded episodes, and measures how long indexing and searching the episodes take
// in the worker thread that the editor uses. Run `npm run build` first.
//   node test/bench/episode-runs.mjs FOLDER [EPISODES]     creates <FOLDER>/.ragen/runs/… if missing, and measures
// Lines have the size and format of a real run: 5 turns of FrozenLake with coordinates, about 13 KB per line, of which
// a quarter is text.
import {
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { argv, cpuUsage } from 'node:process';
import { build } from 'esbuild';
import { generator } from '../e2e/fixtures/generator.mjs';

const folder = resolve(argv[2]);
const count = Number(argv[3] ?? 100_000);
const perStep = 128;
const run = join(folder, '.ragen', 'runs', `20260101-000000-large-${count}`);

const words =
  'I am at the goal lies right below hole must be avoided so go up then left down because wall free stuck first other side'.split(
    ' ',
  );

function episode(step, i) {
  const random = generator(step * 131 + i);
  const pick = list => list[Math.floor(random() * list.length)];
  const thought = () => Array.from({ length: 12 + Math.floor(random() * 30) }, () => pick(words)).join(' ');
  const [ids, mask, logprobs, advantages] = [[], [], [], []];
  const give = (length, sampled) => {
    for (let t = 0; t < length; t++) {
      ids.push(Math.floor(random() * 4096));
      mask.push(sampled ? 1 : 0);
      logprobs.push(sampled ? Number((-(random() ** 4) * 5).toPrecision(9)) : null);
      advantages.push(sampled ? 0.125 : 0);
    }
  };
  give(82, false);
  const cells = () =>
    Array.from({ length: 4 }, () => Array.from({ length: 4 }, () => (random() < 0.2 ? 'O' : '_')).join('')).join('\n');
  const state = () =>
    `Coordinates: \nBoard size: 4 rows x 4 cols (zero-indexed).\nStart: (3, 2)\nGoal: (0, 3)\nPlayer: (${Math.floor(random() * 4)}, ${Math.floor(random() * 4)})\nHoles: (2, 2), (2, 3)\nGrid Map: \n${cells()}`;
  const success = random() < 0.4 + step / 4000;
  const turns = Array.from({ length: 5 }, (_, t) => {
    const [text, action] = [thought(), pick(['Up', 'Left', 'Down', 'Right', 'Jump'])];
    const from = ids.length;
    give(30, true);
    const span = [from, ids.length];
    give(62, false);
    return {
      turn: t + 1,
      state: state(),
      actions_left: 10 - t,
      raw: `<think>${text}</think><answer>${action}</answer>`,
      thought: text,
      answer: action,
      parsed: [action],
      executed: action === 'Jump' ? [] : [action],
      reward: t === 4 && success ? 1 : 0,
      penalty: 0,
      info: { action_is_effective: true, action_is_valid: true, success: false },
      finish: 'stop',
      span,
    };
  });
  const [group_id, member] = [Math.floor(i / 8), i % 8];
  const pad = (value, digits) => String(value).padStart(digits, '0');
  return {
    id: `train-${pad(step, 6)}-g${pad(group_id, 3)}-m${pad(member, 2)}`,
    ...{
      step,
      mode: 'train',
      group_id,
      member,
      env_id: i,
      tag: 'QuickFrozenLake',
      environment: { name: 'frozen_lake', version: 'eb412af6c4527764' },
    },
    ...{
      seed: 10000 + step * 16 + group_id,
      terminated: true,
      truncated: false,
      success,
      reward: Number(success),
      penalty: 0,
      score: Number(success),
      advantage: 0.125,
      kept: true,
    },
    turns,
    final_state: state(),
    metrics: { success: Number(success) },
    messages: turns.flatMap(turn => [
      { role: 'user', content: `Turn ${turn.turn}:\nState:\n${turn.state}\nAlways answer within 100 tokens.` },
      { role: 'assistant', content: turn.raw },
    ]),
    tokens: { ids, mask, logprobs, advantages },
  };
}

const bundled = join(tmpdir(), `ragen-episode-bench-${process.pid}`);
await build({
  entryPoints: {
    index: 'extension/vscode/run-files/episodes/episode-index-reader.ts',
    scanner: 'extension/vscode/run-files/episodes/thread-scanner.ts',
    scan: 'extension/vscode/run-files/episodes/episode-scan.ts',
    'episode-worker': 'extension/vscode/run-files/episodes/episode-worker.ts',
  },
  ...{
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    outdir: bundled,
    outExtension: { '.js': '.cjs' },
  },
});
const require = createRequire(import.meta.url);
const { EpisodeIndexReader } = require(join(bundled, 'index.cjs'));
const { ThreadScanner } = require(join(bundled, 'scanner.cjs'));
const { indexOfFile } = require(join(bundled, 'scan.cjs'));

if (!existsSync(join(run, 'manifest.json'))) {
  mkdirSync(join(run, 'episodes'), { recursive: true });
  const index = openSync(join(run, 'episodes', 'index.jsonl'), 'w');
  for (let step = 1; (step - 1) * perStep < count; step++) {
    const path = join(run, 'episodes', `step-${String(step).padStart(6, '0')}.jsonl`);
    const here = Math.min(perStep, count - (step - 1) * perStep);
    writeFileSync(path, Array.from({ length: here }, (_, i) => `${JSON.stringify(episode(step, i))}\n`).join(''));
    writeSync(index, `${JSON.stringify(indexOfFile({ path, mode: 'train', step }, 0))}\n`);
  }
  closeSync(index);
  const steps = Math.ceil(count / perStep);
  const time = '2026-01-01T00:00:00.000Z';
  writeFileSync(
    join(run, 'metrics.jsonl'),
    `${JSON.stringify({ step: steps, time, wall_s: 1, 'train/QuickFrozenLake/success': 0.5 })}\n`,
  );
  writeFileSync(join(run, 'events.jsonl'), '');
  writeFileSync(
    join(run, 'status.json'),
    JSON.stringify({
      state: 'finished',
      step: steps,
      total_steps: steps,
      success: 0.5,
      reward: 0.5,
      tokens_per_s: null,
      eta_s: null,
      phase: 'idle',
      updated: time,
    }),
  );
  const id = run.slice(run.lastIndexOf('20260101'));
  writeFileSync(
    join(run, 'manifest.json'),
    JSON.stringify({
      schema: 1,
      id,
      name: 'large',
      created: time,
      config_name: 'large',
      overrides: [],
      config: {},
      config_hash: '',
      seeds: {},
      versions: {},
      hardware: {},
      model: { path: '', sha256: '', parameters: 0 },
      environments: [],
    }),
  );
}

const scanner = new ThreadScanner(join(bundled, 'episode-worker.cjs'));
const timed = async (name, work) => {
  const [began, before] = [performance.now(), cpuUsage()];
  const found = await work();
  const { user, system } = cpuUsage(before);
  console.log(
    `${name}: ${(performance.now() - began).toFixed(0)} ms, ${((user + system) / 1000).toFixed(0)} ms of processor${found === undefined ? '' : `, ${found}`}`,
  );
};
for (let round = 0; round < 3; round++) {
  const index = new EpisodeIndexReader(run, null, scanner);
  await timed('index read', async () => (await index.update(), `${index.table.rows} rows`));
  await timed('rows copied for the page', () => void index.table.slice(0));
  const rows = Int32Array.from({ length: index.table.rows }, (_, row) => row);
  for (const value of ['stuck because', 'nowhere to be found', 'left', 'reward'])
    await timed(`search “${value}”`, async () => {
      let [found, first] = [0, NaN];
      const began = performance.now();
      await index.search(rows, [{ value, not: false }], part => {
        if (found === 0 && part.length > 0) first = performance.now() - began;
        found += part.length;
      });
      return `${found} found, the first after ${first.toFixed(0)} ms`;
    });
}
const files = readdirSync(join(run, 'episodes')).filter(name => name.startsWith('step-'));
await timed(
  'a file gone through for want of an index',
  () => void indexOfFile({ path: join(run, 'episodes', files[0]), mode: 'train', step: 1 }, 0),
);
console.log(
  `index.jsonl: ${(readFileSync(join(run, 'episodes', 'index.jsonl')).length / count).toFixed(0)} bytes an episode`,
);
scanner.dispose();
rmSync(bundled, { recursive: true });
