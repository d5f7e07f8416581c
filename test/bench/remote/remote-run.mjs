// A training run against the simulated server (simulated-server.mjs): writes the workspace, starts both, follows them,
// and returns the server's statistics, the run's metrics and the memory and CPU time of each process.
import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Tokenizer } from '@huggingface/tokenizers';
import { createTar } from 'nanotar';

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, '../../..');
const shipped = join(root, 'media/models/ragen-tiny');
const actions = ['Left', 'Down', 'Right', 'Up'];
const words =
  'I am at the goal lies right below the hole must be avoided so go up then left down because of the wall'.split(' ');

/** Responses of about `tokens` tokens: a thought and an answer, in the turn protocol's form. */
export function repliesOf(tokens, kinds = 64) {
  const read = name => JSON.parse(readFileSync(join(shipped, name), 'utf8'));
  const tokenizer = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
  const ids = text => tokenizer.encode(text, { add_special_tokens: false }).ids;
  return Array.from({ length: kinds }, (_, kind) => {
    const end = ids(`</think><answer>${actions[kind % 4]} || ${actions[(kind >> 2) % 4]}</answer><|im_end|>`);
    const thought = [];
    for (let k = 0; thought.length < tokens - end.length; k++)
      thought.push(...ids(` ${words[(k * (kind + 3)) % words.length]}`));
    return [...thought.slice(0, Math.max(0, tokens - end.length)), ...end];
  });
}

/** An adapter of one number in PEFT's form, as base64: what a server returns as a checkpoint's archive. */
function adapterArchive() {
  const name = 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight';
  const header = Buffer.from(
    JSON.stringify({ [name]: { dtype: 'F32', shape: [1, 1], data_offsets: [0, 4] } }).padEnd(128),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const data = Buffer.concat([length, header, Buffer.alloc(4)]);
  return gzipSync(createTar([{ name: 'adapter_model.safetensors', data }])).toString('base64');
}

/** Starts the simulated server; `stop` ends it. */
export async function startServer(settings, folder) {
  const file = join(folder, 'server.json');
  writeFileSync(file, JSON.stringify(settings));
  const child = spawn(process.execPath, [join(here, 'simulated-server.mjs'), file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [first] = await new Promise((done, failed) => {
    createInterface(child.stdout).once('line', line => done([line]));
    child.once('exit', code => failed(new Error(`the simulated server ended with code ${code}`)));
  });
  const { url } = JSON.parse(first);
  return {
    url,
    pid: child.pid,
    stats: async () => (await fetch(`${url}/stats`)).json(),
    stop: () => child.stdin.end(),
  };
}

/** Writes a workspace with the model's small files; returns its folder. */
export function writeWorkspace() {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-remote-'));
  const model = join(folder, 'model');
  mkdirSync(model);
  for (const name of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'generation_config.json'])
    copyFileSync(join(shipped, name), join(model, name));
  const config = JSON.parse(readFileSync(join(shipped, 'config.json'), 'utf8'));
  writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: 32768 }));
  return folder;
}

/** Overrides of quickstart for a run with `episodes` episodes a step on a server. */
export const overridesOf = ({ url, episodes, groupSize = 8, tokens, turns, steps, requests, miniBatch, processes }) => [
  'model_path=model',
  'workbench.engine=tinker',
  `workbench.engine_url=${url}`,
  `workbench.engine_requests=${requests}`,
  'lora.rank=8',
  `es_manager.train.env_groups=${episodes / groupSize}`,
  `es_manager.train.env_configs.n_groups=[${episodes / groupSize}]`,
  `es_manager.train.group_size=${groupSize}`,
  `ppo_mini_batch_size=${miniBatch}`,
  `micro_batch_size_per_gpu=${miniBatch}`,
  `agent_proxy.max_turn=${turns}`,
  `actor_rollout_ref.rollout.response_length=${tokens}`,
  `actor_rollout_ref.rollout.max_model_len=${600 + turns * (tokens + 200)}`,
  'actor_rollout_ref.rollout.rollout_filter_value=1',
  'actor_rollout_ref.rollout.rollout_filter_include_zero=true',
  '+custom_envs.QuickFrozenLake.parallel_friendly=true',
  `+custom_envs.QuickFrozenLake.max_workers=${processes}`,
  'collapse_detection.first_turn_enabled=false',
  'collapse_detection.multi_turn_enabled=false',
  'workbench.early_stops=[]',
  'trainer.test_freq=-1',
  'trainer.val_before_train=false',
  'trainer.save_freq=-1',
  `trainer.total_training_steps=${steps}`,
];

/** CPU milliseconds of the children of a process, and their number, from /proc; Linux only. */
function childrenOf(pid) {
  let [cpu_ms, count] = [0, 0];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      if (Number(fields[1]) !== pid) continue;
      count++;
      cpu_ms += (Number(fields[11]) + Number(fields[12])) * 10;
    } catch {
      // the process has ended
    }
  }
  return { cpu_ms, count };
}

/** Trains a run to its end. `rates`: settings of the server, without replies. `profile`: file of a CPU profile, or undefined. */
export async function trainOn({ rates, profile, keep, more = [], ...options }) {
  const folder = writeWorkspace();
  try {
    const settings = { ...rates, replies: repliesOf(options.tokens), archive: adapterArchive() };
    const server = await startServer(settings, folder);
    const trace = join(folder, 'trace.jsonl');
    const env = {
      ...process.env,
      NODE_OPTIONS: `--import ${pathToFileURL(join(here, 'trainer-preload.mjs'))}`,
      RAGEN_BENCH_CORES: String(options.processes),
      RAGEN_BENCH_TRACE: trace,
      ...(profile && { RAGEN_BENCH_PROFILE: resolve(profile) }),
    };
    const overrides = [...overridesOf({ ...options, url: server.url }), ...more];
    const args = [
      join(root, 'dist/cli.cjs'),
      'train',
      '--config-name',
      'quickstart',
      '--workspace',
      folder,
      ...overrides,
    ];
    const child = spawn(process.execPath, args, { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', bytes => (printed = (printed + bytes).slice(-4000)));
    const children = [];
    const timer = setInterval(() => {
      const pid = tracedIn(trace).at(-1)?.pid;
      if (pid === undefined) return;
      children.push({ t: Date.now(), ...childrenOf(pid) });
    }, 500);
    const code = await new Promise(done => child.once('close', done));
    clearInterval(timer);
    const stats = await server.stats();
    server.stop();
    if (code !== 0) throw new Error(`the run ended with code ${code}:\n${printed}`);
    const runs = join(folder, '.ragen', 'runs');
    const run = join(runs, readdirSync(runs)[0]);
    const metrics = readFileSync(join(run, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
    return { stats, metrics, trace: tracedIn(trace), children };
  } finally {
    if (!keep) rmSync(folder, { recursive: true, force: true });
    else console.error(`workspace: ${folder}`);
  }
}

const tracedIn = file =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line))
    : [];
