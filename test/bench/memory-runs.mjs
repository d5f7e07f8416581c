// Compares the memory of real runs with their memory plans, on Linux: node test/bench/memory-runs.mjs [--only TEXT]
// [--points FILE]. For each run of the grid it calls `ragen plan`, trains in a separate process, and measures the peak
// resident memory of the trainer and its child processes ten times per second. Prints planned / measured. With
// --points, each measured run replaces its entry in the file, together with the commit of the plan;
// test/unit/trainer/plan/planned-runs.test.ts checks the plan against that file. A temperature of 5 makes the policy
// nearly uniform, so that an answer ends early only by chance (2 of 800 tokens end it). The lengths are chosen so that
// episodes fill max_model_len, the worst case that a plan must cover.
import { spawn, spawnSync } from 'node:child_process';
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
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const cli = join(root, 'dist/cli.cjs');
const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, points: { type: 'string' } } });

const groups = (count, size) => [
  ...[`es_manager.train.env_groups=${count}`, `es_manager.train.env_configs.n_groups=[${count}]`],
  ...[`es_manager.train.group_size=${size}`, `es_manager.val.env_groups=${count}`],
  ...[`es_manager.val.env_configs.n_groups=[${count}]`, `ppo_mini_batch_size=${Math.min(8, count * size)}`],
];
const passes = rows => [`micro_batch_size_per_gpu=${rows}`, `log_prob_micro_batch_size_per_gpu=${rows}`];
const common = [
  ...['trainer.total_training_steps=2', 'trainer.test_freq=-1', 'workbench.device=cpu'],
  ...['trainer.val_before_train=false', 'actor_rollout_ref.rollout.temperature=5'],
  // Random answers contain no thoughts, so the collapse diagnosis would have no pairs to score.
  ...['collapse_detection.first_turn_enabled=false', 'collapse_detection.multi_turn_enabled=false'],
];
const length = (all, answer, turns) => [
  `actor_rollout_ref.rollout.max_model_len=${all}`,
  `actor_rollout_ref.rollout.response_length=${answer}`,
  `agent_proxy.max_turn=${turns}`,
];
const grpo = ['algorithm.adv_estimator=grpo'];
const kl = ['actor_rollout_ref.actor.use_kl_loss=true', 'actor_rollout_ref.actor.kl_loss_coef=0.001'];
const lora = rank => [`lora.rank=${rank}`];
const checkpointed = on => [`actor_rollout_ref.model.enable_gradient_checkpointing=${on}`];
const byteMoments = ['actor_rollout_ref.actor.optim.moments=int8'];
const byteBase = ['workbench.base_quantization=int8', 'workbench.rollout_quantization=int8'];

/**
 * Model, preset, title and overrides of each run. planned-models.json describes the models whose names begin with
 * `made-`.
 */
const grid = [
  [
    'made-30m',
    '_2_sokoban',
    'gae with KL, 2 × 2, 512 tokens, 1 a pass',
    [...length(512, 100, 3), ...groups(2, 2), ...passes(1), ...kl],
  ],
  [
    'made-30m',
    '_4_countdown',
    'grpo, 2 × 2, 256 tokens, 2 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(2), ...grpo],
  ],
  [
    'made-30m',
    '_4_countdown',
    'LoRA, gae with KL, 2 × 2, 512 tokens, 4 a pass',
    [...length(512, 340, 1), ...groups(2, 2), ...passes(4), ...lora(16), ...kl],
  ],
  [
    'made-30m',
    '_4_countdown',
    'grpo, checkpointing, 8-bit moments, 2 × 2, 256 tokens, 4 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(4), ...grpo, ...checkpointed(true), ...byteMoments],
  ],
  [
    'made-30m',
    '_4_countdown',
    'LoRA on an 8-bit base, grpo, 2 × 2, 256 tokens, 2 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(2), ...lora(16), ...grpo, ...byteBase],
  ],
  [
    'made-120m',
    '_4_countdown',
    'grpo, 2 × 2, 256 tokens, 1 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(1), ...grpo],
  ],
  [
    'made-120m',
    '_4_countdown',
    'LoRA, gae with KL, 2 × 2, 256 tokens, 2 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(2), ...lora(16), ...kl],
  ],
  [
    'ragen-tiny',
    '_3_frozen_lake',
    'gae, 2 × 2, 512 tokens, 1 a pass',
    [...length(512, 100, 4), ...groups(2, 2), ...passes(1)],
  ],
  [
    'ragen-tiny',
    '_10_rubikscube',
    'gae, 2 × 2, 2048 tokens, 4 a pass',
    [...length(2048, 100, 6), ...groups(2, 2), ...passes(4)],
  ],
  [
    'ragen-tiny',
    '_10_rubikscube',
    'gae, 2 × 2, 2048 tokens, 1 a pass',
    [...length(2048, 500, 7), ...groups(2, 2), ...passes(1)],
  ],
  [
    'ragen-tiny',
    '_9_2048',
    'grpo, 2 × 8, 1024 tokens, 8 a pass',
    [...length(1024, 200, 5), ...groups(2, 8), ...passes(8), ...grpo],
  ],
  [
    'ragen-tiny',
    '_4_countdown',
    'gae, 8 × 8, 512 tokens, 8 a pass',
    [...length(512, 340, 1), ...groups(8, 8), ...passes(8)],
  ],
  [
    'ragen-tiny',
    '_2_sokoban',
    'LoRA, gae with KL, 4 × 4, 1024 tokens, 2 a pass',
    [...length(1024, 200, 4), ...groups(4, 4), ...passes(2), ...lora(16), ...kl],
  ],
  [
    'ragen-tiny',
    '_10_rubikscube',
    'grpo, checkpointing, 1 × 3, 2048 tokens, 2 a pass',
    [...length(2048, 100, 7), ...groups(1, 3), 'ppo_mini_batch_size=2', ...passes(2), ...grpo, ...checkpointed(true)],
  ],
  [
    'ragen-tiny',
    '_2_sokoban',
    'grpo with KL, 8 × 8, 512 tokens, 4 a pass',
    [...length(512, 100, 4), ...groups(8, 8), ...passes(4), ...grpo, ...kl],
  ],
  [
    'made-120m',
    '_4_countdown',
    'grpo with KL, no checkpointing, 2 × 2, 256 tokens, 4 a pass',
    [...length(256, 80, 1), ...groups(2, 2), ...passes(4), ...grpo, ...kl, ...checkpointed(false)],
  ],
];

const made = JSON.parse(readFileSync(join(root, 'test/unit/trainer/plan/planned-models.json'), 'utf8'));
const bundled = join(root, 'media/models/ragen-tiny');

/**
 * The folder of a model by its name. A model of planned-models.json gets random weights and the bundled model's
 * tokenizer, written once to the temporary folder.
 */
function modelFolder(name) {
  if (made[name] === undefined) return name;
  const folder = join(tmpdir(), 'ragen-memory-models', name);
  if (existsSync(join(folder, 'model.safetensors'))) return folder;
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(bundled).filter(file => !/^(config\.json|model\.safetensors)$/.test(file)))
    copyFileSync(join(bundled, file), join(folder, file));
  writeFileSync(join(folder, 'config.json'), JSON.stringify(made[name], null, 2));
  writeFileSync(join(folder, 'model.safetensors'), randomWeights(made[name]));
  return folder;
}

/** A Qwen2 model's weights in float32 as a safetensors file. */
function randomWeights(c) {
  const [width, inner, keys] = [
    c.hidden_size,
    c.intermediate_size,
    (c.hidden_size / c.num_attention_heads) * c.num_key_value_heads,
  ];
  const layer = {
    ...{ 'input_layernorm.weight': [width], 'post_attention_layernorm.weight': [width] },
    ...{ 'self_attn.q_proj.weight': [width, width], 'self_attn.q_proj.bias': [width] },
    ...{ 'self_attn.k_proj.weight': [keys, width], 'self_attn.k_proj.bias': [keys] },
    ...{ 'self_attn.v_proj.weight': [keys, width], 'self_attn.v_proj.bias': [keys] },
    ...{ 'self_attn.o_proj.weight': [width, width] },
    ...{ 'mlp.gate_proj.weight': [inner, width], 'mlp.up_proj.weight': [inner, width] },
    ...{ 'mlp.down_proj.weight': [width, inner] },
  };
  const shapes = { 'model.embed_tokens.weight': [c.vocab_size, width], 'model.norm.weight': [width] };
  for (let i = 0; i < c.num_hidden_layers; i++)
    for (const [name, shape] of Object.entries(layer)) shapes[`model.layers.${i}.${name}`] = shape;
  let bytes = 0;
  const header = {};
  for (const [name, shape] of Object.entries(shapes)) {
    const size = 4 * shape.reduce((product, n) => product * n, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [bytes, (bytes += size)] };
  }
  const text = JSON.stringify(header);
  const head = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const numbers = new Float32Array(bytes / 4);
  let state = 1;
  for (const [name, { data_offsets }] of Object.entries(header))
    for (let i = data_offsets[0] / 4; i < data_offsets[1] / 4; i++) {
      state = (state * 48271) % 2147483647;
      numbers[i] = name.includes('norm') ? 1 : 0.07 * (state / 2147483647 - 0.5);
    }
  const sizeOfHead = Buffer.alloc(8);
  sizeOfHead.writeBigUInt64LE(BigInt(head.length));
  return Buffer.concat([sizeOfHead, head, Buffer.from(numbers.buffer)]);
}

/** Ids of a process and all its descendants. */
function tree(pid) {
  const children = new Map();
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const parent = Number(/^\d+ \(.*\) \w (\d+)/s.exec(statOf(name))?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const all = [pid];
  for (let i = 0; i < all.length; i++) all.push(...(children.get(all[i]) ?? []));
  return all;
}

function statOf(pid, file = 'stat') {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}

/**
 * Resident bytes of a process. A part of a file that is mapped several times counts once, because all its mappings
 * share the same pages.
 */
function residentBytes(pid) {
  let [total, repeated] = [0, 0];
  const mapped = new Map();
  let place = '';
  for (const line of statOf(pid, 'smaps').split('\n')) {
    const range = /^[0-9a-f]+-[0-9a-f]+ \S+ ([0-9a-f]+) \S+ \d+ *(.*)$/.exec(line);
    if (range) place = range[2].startsWith('/') ? `${range[2]} ${range[1]}` : '';
    const bytes = 1024 * Number(/^Rss: +(\d+) kB$/.exec(line)?.[1] ?? 0);
    total += bytes;
    if (place === '') continue;
    const known = mapped.get(place) ?? 0;
    repeated += Math.min(known, bytes);
    mapped.set(place, Math.max(known, bytes));
  }
  return total - repeated;
}

/** Trains to the end; resolves to the peak resident bytes of each process of the run, the trainer first. */
async function measure(args) {
  const child = spawn(process.execPath, [cli, 'train', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', text => (errors += text));
  const peaks = new Map();
  const sampling = setInterval(() => {
    const trainer = tree(child.pid).find(pid => statOf(pid, 'cmdline').includes('trainer.cjs'));
    for (const pid of trainer === undefined ? [] : tree(trainer))
      peaks.set(pid, Math.max(residentBytes(pid), peaks.get(pid) ?? 0));
  }, 100);
  const code = await new Promise(done => child.on('close', done));
  clearInterval(sampling);
  if (code !== 0) throw new Error(`bench: ragen train exited with code ${code}: ${errors.slice(-500)}`);
  return [...peaks.values()];
}

function planned(args) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [cli, 'plan', ...args, '--json'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`bench: ragen plan exited with code ${status}: ${stderr}`);
  return JSON.parse(stdout).run.peak.bytes;
}

const planFolder = 'extension/models/memory';
const planCommit = spawnSync('git', ['log', '-1', '--format=%h', '--', planFolder], {
  cwd: root,
  encoding: 'utf8',
}).stdout.trim();

const mib = bytes => Math.round(bytes / 2 ** 20);
const failed = [];
for (const [model, config, how, own] of grid) {
  const name = `${model}, ${config.replace(/^_\d+_/, '')}, ${how}`;
  if (!name.includes(values.only)) continue;
  const workspace = mkdtempSync(join(tmpdir(), 'ragen-memory-'));
  const overrides = [...common, ...own];
  const args = ['--config-name', config, `model_path=${modelFolder(model)}`, ...overrides, '--workspace', workspace];
  try {
    const plan = planned(args);
    const parts = await measure(args);
    const measured = parts.reduce((sum, bytes) => sum + bytes, 0);
    console.log(
      `${name}: planned ${mib(plan)} MiB, measured ${mib(measured)} (${parts.map(mib).join(' + ')}), ratio ${(plan / measured).toFixed(2)}`,
    );
    if (values.points === undefined) continue;
    const others = existsSync(values.points) ? JSON.parse(readFileSync(values.points, 'utf8')) : [];
    const points = [
      ...others.filter(point => point.name !== name),
      { name, model, config, overrides, measured, plan: planCommit },
    ];
    writeFileSync(values.points, `${JSON.stringify(points, null, 2)}\n`);
  } catch (error) {
    failed.push(name);
    console.error(`${name}: ${error.message}`);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}
if (failed.length > 0) process.exitCode = 1;
