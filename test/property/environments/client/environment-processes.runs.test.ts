// Results of episodes do not depend on the number of environment processes, nor on the order and grouping in which
// episodes are reset and stepped.
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EpisodeStep } from '../../../../extension/protocol/environment-link';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import { buildEntry, counter, root, workspace } from '../../../support/bundles';

const tags = ['Lake', 'Arms', 'Count'];
let entry: string;
let files: ReturnType<typeof workspace>;
let pools: EnvironmentProcessPool[];

/** Waits for a random time before each count, and counts to ten. */
const uneven = `await new Promise(done => setTimeout(done, Math.random() * 4));`;

async function pool(workers: number, counting: string): Promise<EnvironmentProcessPool> {
  const options = { entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined };
  const started = await EnvironmentProcessPool.start(options, { Lake: workers, Count: workers }); // Arms has one process
  const { error } = await started.load([
    { tag: 'Lake', env_type: 'frozen_lake', source: join(root, 'envs/frozen-lake/index.ts'), config: {} },
    { tag: 'Arms', env_type: 'bandit', source: join(root, 'envs/bandit/index.ts'), config: {} },
    { tag: 'Count', env_type: 'count', source: counting, config: {} },
  ]);
  expect(error).toBeUndefined();
  return started;
}

beforeAll(async () => {
  entry = await buildEntry();
  files = workspace();
  // The file is written once, because another pool may read it during a second write.
  const counting = files.write('count.ts', counter(uneven).replace('step(action)', 'async step(action)'));
  pools = await Promise.all([1, 3, 8].map(workers => pool(workers, counting)));
}, 120_000);
afterAll(async () => {
  await Promise.all(pools.map(each => each.stop()));
  for (const folder of [dirname(entry), files.folder]) rmSync(folder, { recursive: true, force: true });
});

interface Played {
  tag: string;
  seed: number;
  member: number;
  /** Actions of each turn. */
  turns: number[][];
}

let count = 0;

/**
 * Plays episodes in the order of `places`, either each call alone or all episodes of a turn in one call. Resolves to
 * the outputs of each episode.
 */
async function play(
  pool: EnvironmentProcessPool,
  episodes: readonly Played[],
  places: readonly number[],
  apart: boolean,
) {
  const run = count++;
  const order = [...episodes.keys()].sort((a, b) => places[a] - places[b]);
  const idOf = (i: number) => `${run}-${i}`;
  const seen: unknown[][] = episodes.map(() => []);
  const begun = await pool.reset(
    order.map(i => ({
      episode: idOf(i),
      tag: episodes[i].tag,
      seed: episodes[i].seed,
      member: episodes[i].member,
      mode: 'train',
    })),
  );
  begun.forEach(({ observation, actions }, k) => seen[order[k]].push(observation, actions));
  const keep = (i: number, { observation, outcomes, error }: EpisodeStep) =>
    seen[i].push(observation, outcomes, error?.kind);
  if (apart)
    await Promise.all(
      order.map(async i => {
        for (const actions of episodes[i].turns) keep(i, (await pool.step([{ episode: idOf(i), actions }]))[0]);
      }),
    );
  else
    for (let turn = 0; turn < Math.max(...episodes.map(({ turns }) => turns.length)); turn++) {
      const living = order.filter(i => turn < episodes[i].turns.length);
      const steps = await pool.step(living.map(i => ({ episode: idOf(i), actions: episodes[i].turns[turn] })));
      steps.forEach((step, k) => keep(living[k], step));
    }
  await pool.closeEpisodes(order.map(idOf));
  return seen;
}

it('the same seeds and actions give the same episodes with 1, 3 and 8 processes', async () => {
  const episode = fc.record({
    tag: fc.constantFrom(...tags),
    seed: fc.nat(100_000),
    member: fc.nat(15),
    turns: fc.array(fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
  });
  const batch = fc.array(episode, { minLength: 1, maxLength: 24 });
  const place = fc.array(fc.nat(), { minLength: 24, maxLength: 24 });
  await fc.assert(
    fc.asyncProperty(batch, place, place, async (episodes, first, second) => {
      const [one, three, eight] = await Promise.all([
        play(pools[0], episodes, first, false),
        play(pools[1], episodes, second, true),
        play(pools[2], episodes, second, false),
      ]);
      expect(three).toEqual(one);
      expect(eight).toEqual(one);
    }),
    { numRuns: 20 },
  );
});

it('new code is loaded and used in all processes, or in none', async () => {
  const source = files.write('edited.ts', counter());
  const spec = { tag: 'Count', env_type: 'count', source, config: {} };
  const countOf = async (seed: number): Promise<string> => {
    await pools[2].reset([{ episode: `edited ${seed}`, tag: 'Count', seed, member: 0, mode: 'train' }]);
    return (await pools[2].step([{ episode: `edited ${seed}`, actions: [1] }]))[0].observation;
  };
  const seeds = Array.from({ length: 8 }, (_, seed) => seed); // one seed for each process
  const counts = () => Promise.all(seeds.map(countOf));
  const prepare = async () => (await pools[2].prepare([spec], false))[0];

  files.write('edited.ts', counter('count += 10;'));
  const prepared = await prepare();
  if (!('environment' in prepared)) throw new Error(prepared.problems[0].message);
  expect(await counts()).toEqual(seeds.map(() => 'count 1'));
  await pools[2].use([{ spec, environment: prepared.environment }]);
  expect(await counts()).toEqual(seeds.map(() => 'count 11'));

  // Loads in the first process, which writes the marker file, and fails in all other processes.
  const mark = JSON.stringify(join(files.folder, 'mark'));
  const once = `import { existsSync, writeFileSync } from 'node:fs';\nif (existsSync(${mark})) throw new Error('second'); else writeFileSync(${mark}, '');`;
  files.write('edited.ts', counter('count += 20;', { top: once }));
  expect(await prepare()).toMatchObject({ problems: [{ message: expect.stringContaining('threw "second"') }] });
  expect(await counts()).toEqual(seeds.map(() => 'count 11'));
});
