// Runs against their memory plans, on Linux: node test/bench/memory-runs.mjs [--only TEXT] [--points FILE]. For each run of the grid it asks
// `ragen plan`, trains in a process of its own, and sums VmHWM, the most resident memory, of the trainer and of the processes that it
// starts. Prints planned / measured; with --points it writes what test/unit/models/planned-runs.test.ts holds the plan to.
// A temperature of 5 makes the policy near uniform: answers grow to their limit, which is the worst case that a plan must cover.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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
  `es_manager.val.env_configs.n_groups=[${count}]`,
];
const passes = rows => [`micro_batch_size_per_gpu=${rows}`, `log_prob_micro_batch_size_per_gpu=${rows}`];
const common = [
  ...['model_path=ragen-tiny', 'trainer.total_training_steps=2', 'trainer.test_freq=-1', 'workbench.device=cpu'],
  ...['trainer.val_before_train=false', 'ppo_mini_batch_size=8', 'actor_rollout_ref.rollout.temperature=5'],
];
const length = (all, answer) => [
  `actor_rollout_ref.rollout.max_model_len=${all}`,
  `actor_rollout_ref.rollout.response_length=${answer}`,
];

/** Models, groups, lengths, estimators. */
const grid = [
  ['rubikscube, 4 × 4, 2048 tokens, 4 a pass', '_10_rubikscube', [...length(2048, 500), ...groups(4, 4), ...passes(4), 'agent_proxy.max_turn=4']], // prettier-ignore
  ['rubikscube, 4 × 4, 2048 tokens, 1 a pass', '_10_rubikscube', [...length(2048, 500), ...groups(4, 4), ...passes(1), 'agent_proxy.max_turn=4']], // prettier-ignore
  ['2048, 2 × 8, 1024 tokens, 8 a pass', '_9_2048', [...length(1024, 200), ...groups(2, 8), ...passes(8), 'agent_proxy.max_turn=5', 'algorithm.adv_estimator=grpo']], // prettier-ignore
];

/** The tree of processes below one, itself included. */
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
    return ''; // it has ended
  }
}

/** Trains to the end; bytes of the greatest VmHWM of each of the run's processes, added up. */
async function measure(config, overrides, workspace) {
  const child = spawn(
    process.execPath,
    [cli, 'train', '--config-name', config, ...overrides, '--workspace', workspace],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', text => (errors += text));
  const peaks = new Map();
  const sampling = setInterval(() => {
    const trainer = tree(child.pid).find(pid => statOf(pid, 'cmdline').includes('trainer.cjs'));
    for (const pid of trainer === undefined ? [] : tree(trainer)) {
      const bytes = 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(statOf(pid, 'status'))?.[1] ?? 0);
      peaks.set(pid, Math.max(bytes, peaks.get(pid) ?? 0));
    }
  }, 100);
  const code = await new Promise(done => child.on('close', done));
  clearInterval(sampling);
  if (code !== 0) throw new Error(`bench: ragen train ended with ${code}: ${errors.slice(-500)}`);
  return [...peaks.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function planned(config, overrides, workspace) {
  const args = [cli, 'plan', '--config-name', config, ...overrides, '--workspace', workspace, '--json'];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return JSON.parse(stdout).run.peak.bytes;
}

const points = [];
for (const [name, config, own] of grid.filter(([name]) => name.includes(values.only))) {
  const workspace = mkdtempSync(join(tmpdir(), 'ragen-memory-'));
  const overrides = [...common, ...own];
  try {
    const plan = planned(config, overrides, workspace);
    const held = await measure(config, overrides, workspace);
    points.push({ name, config, overrides, measured: held });
    const mib = bytes => `${Math.round(bytes / 2 ** 20)} MiB`;
    console.log(`${name}: planned ${mib(plan)}, measured ${mib(held)}, ratio ${(plan / held).toFixed(2)}`);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}
if (values.points !== undefined) writeFileSync(values.points, `${JSON.stringify(points, null, 2)}\n`);
