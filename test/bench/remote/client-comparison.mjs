// Compares this project's client of the Tinker API with the official Python SDK on the same server and work, alternated:
//   node test/bench/remote/client-comparison.mjs --python PATH [--skyrl | --url URL --vocabulary N] [--rows 64] [--tokens 16]
// A round publishes, samples `rows` × `tokens`, scores, and trains one step. Without --url the server is simulated
// (simulated-server.mjs) and so fast that the client is what is measured; --skyrl starts SkyRL's server, which
// test/tinker/install.mjs has installed; --url uses a running one. PATH is a Python with
// the package tinker; without one, the script says so and ends with exit code 3. Prints medians of wall and CPU time.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { repliesOf, root, startServer } from './remote-run.mjs';

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: process.env.RAGEN_BENCH_PYTHON ?? 'python3' },
    url: { type: 'string' },
    skyrl: { type: 'boolean', default: false },
    vocabulary: { type: 'string', default: '800' },
    rank: { type: 'string', default: '8' },
    rows: { type: 'string', default: '64' },
    prompt: { type: 'string', default: '32' },
    tokens: { type: 'string', default: '16' },
    rounds: { type: 'string', default: '5' },
    rate: { type: 'string', default: '250000' },
    latency: { type: 'string', default: '64' },
    json: { type: 'boolean', default: false },
  },
});
if (spawnSync(values.python, ['-c', 'import tinker']).status !== 0) {
  console.error(
    `clients are not compared: ${values.python} has no package tinker; install it there, or give --python PATH`,
  );
  process.exit(3);
}
const number = name => Number(values[name]);

/** A process that plays a round for each line it gets. */
async function client(command, args) {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TINKER_TELEMETRY: '0', NODE_PATH: join(root, 'node_modules') },
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${command} ended`);
    return JSON.parse(value);
  };
  const { about } = await next();
  return {
    about,
    play: () => {
      child.stdin.write('\n');
      return next();
    },
    stop: () => child.stdin.end(),
  };
}

/** Bundles a TypeScript file for a process of its own. */
async function bundled(entry, outfile, format) {
  await build({
    entryPoints: [join(root, entry)],
    ...{ outfile, format, bundle: true, platform: 'node', target: 'node20', logLevel: 'error' },
    ...{ loader: { '.proto': 'text', '.wasm': 'binary' }, external: ['onnxruntime-node'] },
    define: { 'import.meta.dirname': JSON.stringify(join(root, entry, '..')) },
  });
  return outfile;
}

/** Starts SkyRL's server as the tests do. */
async function startSkyrl() {
  const { RealServer } = await import(
    await bundled('test/tinker/real-server.ts', join(folder, 'real-server.mjs'), 'esm')
  );
  const server = new RealServer();
  await server.start();
  return { url: server.url, stop: () => server.remove() };
}

const folder = mkdtempSync(join(tmpdir(), 'ragen-clients-'));
const median = list => [...list].sort((a, b) => a - b)[list.length >> 1];
try {
  const rates = {
    sampled: number('rate'),
    scored: 3 * number('rate'),
    trained: number('rate'),
    latency_ms: number('latency'),
  };
  const server = values.url
    ? { url: values.url, stop: () => undefined }
    : values.skyrl
      ? await startSkyrl()
      : await startServer({ ...rates, replies: repliesOf(number('tokens')) }, folder);
  const work = { url: server.url, rank: number('rank'), vocabulary: number('vocabulary') };
  for (const name of ['prompt', 'rows', 'tokens']) work[name] = number(name);
  writeFileSync(join(folder, 'work.json'), JSON.stringify(work));
  const bundle = await bundled('test/bench/remote/own-client.ts', join(folder, 'own-client.cjs'), 'cjs');
  const before = loadavg()[0];
  const sides = [
    await client(process.execPath, [bundle, join(folder, 'work.json')]),
    await client(values.python, [
      '-W',
      'ignore',
      join(root, 'test/bench/remote/sdk_client.py'),
      join(folder, 'work.json'),
    ]),
  ];
  for (const side of sides) side.first = await side.play(); // compiles and connects
  const runs = sides.map(() => []);
  for (let round = 0; round < number('rounds'); round++)
    for (const k of round % 2 === 0 ? [0, 1] : [1, 0]) runs[k].push(await sides[k].play());
  for (const side of sides) side.stop();
  await server.stop();
  const result = {
    machine: `${cpus().length} × ${cpus()[0].model.trim()}`,
    load: [before, loadavg()[0]],
    server:
      values.url ?? (values.skyrl ? 'SkyRL on the CPU' : `simulated: ${values.rate} tokens/s, ${values.latency} ms`),
    work: `${work.rows} rows × (${work.prompt} + ${work.tokens}) tokens`,
    sides: sides.map(({ about }, k) => ({
      about,
      seconds: median(runs[k].map(run => run.seconds)),
      cpu_s: median(runs[k].map(run => run.cpu_s)),
      runs: runs[k].map(run => Number(run.seconds.toFixed(4))),
    })),
  };
  result.ratio = result.sides[1].seconds / result.sides[0].seconds;
  result.cpu_ratio = result.sides[1].cpu_s / result.sides[0].cpu_s;
  console.log(JSON.stringify(result, null, values.json ? 0 : 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
