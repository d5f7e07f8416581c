// Steps of environments per second, in process, with random actions and at most ten of them an episode as in RAGEN's presets. Making
// levels and rendering each observation as text are part of it.
import frozenLake from '../../envs/frozen-lake/index';
import sokoban from '../../envs/sokoban/index';
import type { Environment } from '../../envs/api/environment';
import { RandomStream } from '../../extension/trainer/engine/random-stream';
import { rate } from './benchmark';
import type { Benchmark } from './benchmark';

const actions = 10;

async function play(environment: Environment, episodes: number, firstSeed: number): Promise<number> {
  const stream = new RandomStream(firstSeed);
  let steps = 0;
  for (let episode = 0; episode < episodes; episode++) {
    await environment.reset({ seed: firstSeed + episode });
    for (let i = 0; i < actions; i++) {
      const { terminated } = await environment.step(1 + stream.integer(4));
      steps++;
      if (terminated) break;
    }
  }
  return steps;
}

function benchmark(
  name: string,
  environment: Environment,
  episodes: number,
  settings: Benchmark['settings'],
): Benchmark {
  let seed = 10_000;
  return {
    name,
    unit: 'steps/s',
    settings: { ...settings, actions, episodes },
    run: () => rate(() => play(environment, episodes, (seed += episodes))),
  };
}

const lake = { size: 4, p: 0.9, success_rate: 0.8, is_slippery: true };
const room = { rows: 6, columns: 6, boxes: 1, search_depth: 300 };

export const environmentBenchmarks = (): Benchmark[] => [
  benchmark(
    'FrozenLake, a map an episode',
    frozenLake.create(frozenLake.config.parse(lake)),
    2000,
    { ...lake, new_map: true }, // prettier-ignore
  ),
  benchmark('FrozenLake, one map', frozenLake.create(frozenLake.config.parse({ ...lake, map_seed: 1 })), 2000, {
    ...lake,
    new_map: false,
  }),
  benchmark(
    'Sokoban, a room an episode',
    sokoban.create(sokoban.config.parse({ dim_room: [6, 6], num_boxes: 1, search_depth: 300 })),
    100,
    room,
  ),
];
