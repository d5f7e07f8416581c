// Environment steps per second, in process, with random actions and the episode lengths of RAGEN's presets. The time
// includes level generation and rendering each observation as text. Without actions, the unit is levels.
import frozenLakePackage from '../../envs/frozen-lake/index';
import sokobanPackage from '../../envs/sokoban/index';
import type { Environment } from '../../envs/api/environment';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import type { Workload } from './benchmark';
import type { LakeSettings, SokobanSettings } from './definitions';

/** Plays `episodes` episodes per run, each with a different seed. */
function play(environment: Environment, { episodes, actions }: { episodes: number; actions: number }): Workload {
  let seed = 10_000;
  return {
    run: async () => {
      const stream = new RandomStream(seed);
      let steps = 0;
      for (let episode = 0; episode < episodes; episode++) {
        await environment.reset({ seed: seed++ });
        for (let i = 0; i < actions; i++) {
          const { terminated } = await environment.step(1 + stream.integer(4));
          steps++;
          if (terminated) break;
        }
      }
      return actions > 0 ? steps : episodes;
    },
    release: async () => undefined,
  };
}

export async function frozenLake(s: LakeSettings): Promise<Workload> {
  const { size, p, success_rate, is_slippery } = s;
  const map = s.new_map ? {} : { map_seed: 1 };
  const config = frozenLakePackage.config.parse({ size, p, success_rate, is_slippery, ...map });
  return play(frozenLakePackage.create(config), s);
}

export async function sokoban(s: SokobanSettings): Promise<Workload> {
  const { rows, columns, boxes, search_depth } = s;
  const config = sokobanPackage.config.parse({ dim_room: [rows, columns], num_boxes: boxes, search_depth });
  return play(sokobanPackage.create(config), s);
}
