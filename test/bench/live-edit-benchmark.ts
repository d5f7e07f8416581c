// Measures the time from saving an environment's file to the first episode that runs the new code while other episodes
// are running, and the memory growth of the environment process over many code changes.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../extension/trainer/config/load-config';
import { installation } from '../../extension/node/installation';
import { Journal } from '../../extension/trainer/run/journal';
import { LiveEnvironments } from '../../extension/trainer/live/live-environments';
import { EnvironmentProcessPool } from '../../extension/environments/client/process-pool';
import { RunFolder } from '../../extension/trainer/store/run-folder';
import { median } from './benchmark';
import type { LiveEditSettings, SwapSettings } from './definitions';

/** A one-file environment as a user would write it; `n` makes each version unique. */
const source = (n: number): string => `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';

/** Walk to the end of a corridor. */
export default defineEnvironment({
  name: 'corridor',
  config: z.object({ length: z.int().min(2).default(8), step_cost: z.number().default(0) }),
  actions: { 1: 'Left', 2: 'Right' },
  instruction: ({ length }) => \`Walk to the right end of a corridor of \${length} fields.\`,
  create({ length, step_cost }) {
    let place = 0;
    const picture = () => '.'.repeat(place) + 'P' + '.'.repeat(length - 1 - place);
    return {
      reset({ seed }) {
        place = seed % (length - 1);
        return { observation: picture() };
      },
      step(action) {
        place = Math.max(0, Math.min(length - 1, place + (action === 2 ? 1 : -1)));
        const success = place === length - 1;
        const reward = success ? ${n} : -step_cost;
        return { observation: picture(), reward, terminated: success, truncated: false, info: { success } };
      },
      render: picture,
    };
  },
});
`;

const reset = (episode: string) => ({ episode, tag: 'Corridor', seed: 1, member: 0, mode: 'train' as const });

/** Median milliseconds from a save to the first episode that uses the new code, with type checks. */
export async function liveEdit({ saves, episodes }: LiveEditSettings): Promise<number> {
  const workspace = mkdtempSync(join(tmpdir(), 'ragen-live-edit-'));
  const file = join(workspace, 'corridor.ts');
  writeFileSync(file, source(0));
  const presetFolders = [installation.presets];
  const overrides = ['+custom_envs.Corridor.env_type=corridor.ts', '+custom_envs.Corridor.max_actions_per_traj=10'];
  const { config } = loadConfig({ configName: 'base', overrides, presetFolders, workspace });
  const about = {
    name: 'live-edit',
    config_name: 'base',
    overrides,
    config: {},
    config_hash: '',
    seeds: {},
    versions: {},
    hardware: {},
    model: { path: '', sha256: '', parameters: 0 },
    environments: [],
  };
  const folder = await RunFolder.create(workspace, about, new Date());
  const status = {
    state: 'running',
    step: 0,
    total_steps: 1,
    success: null,
    reward: null,
    tokens_per_s: null,
    eta_s: null,
    phase: 'rollout',
    updated: '',
  } as const;
  const deaf = { status: () => undefined, appended: () => undefined, event: () => undefined };
  const journal = new Journal(folder, deaf, status, 0);
  const live = await LiveEnvironments.open(config, ['Corridor'], { workspace, folder, journal });
  let playing = true;
  const play = async () => {
    const names = Array.from({ length: episodes }, (_, i) => `rollout-${i}`);
    while (playing) {
      await live.pool.reset(names.map(reset));
      for (let step = 0; step < 8; step++) {
        await live.pool.step(names.map(episode => ({ episode, actions: [1] })));
        await sleep(5); // stands in for the model's turn
      }
    }
  };
  try {
    live.watch();
    const rollout = play();
    const times: number[] = [];
    for (let n = 1; n <= saves + 2; n++) {
      await sleep(200);
      const start = performance.now();
      writeFileSync(`${file}.new`, source(n));
      renameSync(`${file}.new`, file);
      const [{ version }] = live.current;
      while ((await live.pool.reset([reset('probe')]))[0].version === version) await sleep(2);
      if (n > 2) times.push(performance.now() - start); // the first saves include the start of the type checker
    }
    playing = false;
    await rollout;
    return median(times);
  } finally {
    await live.stop();
    await journal.close();
    rmSync(workspace, { recursive: true, force: true });
  }
}

/**
 * Growth of the environment process's memory over many swaps in percent: the minimum over the last fifth of the swaps
 * relative to the minimum over the second fifth.
 */
export async function swapMemory({ swaps, checkTypes }: SwapSettings): Promise<number> {
  const workspace = mkdtempSync(join(tmpdir(), 'ragen-swaps-'));
  const file = join(workspace, 'corridor.ts');
  writeFileSync(file, source(0));
  const spec = { tag: 'Corridor', env_type: 'corridor.ts', source: file, config: {} };
  const pool = await EnvironmentProcessPool.start({
    entry: installation.environmentHost,
    variables: process.env,
    stepTimeoutMs: 10_000,
    onNotice: () => undefined,
  });
  try {
    await pool.load([spec]);
    await pool.reset([reset('old')]);
    const held: number[] = [];
    const swap = async (n: number) => {
      writeFileSync(file, source(n));
      const [prepared] = await pool.prepare([spec], checkTypes);
      if (!('environment' in prepared)) throw new Error(prepared.problems[0].message);
      await pool.use([{ spec, environment: prepared.environment }]);
      await pool.step([{ episode: 'old', actions: [1] }]); // the old code has no live episodes now
      await pool.closeEpisodes(['old']);
      await pool.reset([reset('old')]);
      held.push(Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pool.pids[0])], { encoding: 'utf8' })));
    };
    for (let n = 1; n <= swaps; n++) await swap(n);
    // The minimum over a fifth of the swaps excludes garbage that has not been collected yet.
    const fifth = Math.max(1, Math.floor(swaps / 5));
    return 100 * (Math.min(...held.slice(-fifth)) / Math.min(...held.slice(fifth, 2 * fifth)) - 1);
  } finally {
    await pool.stop();
    rmSync(workspace, { recursive: true, force: true });
  }
}
