// The environment state manager: seeds, layout, episode totals, statuses and failures.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { describe, expect, it } from 'vitest';
import {
  EnvironmentStateManager,
  isDone,
  validActions,
  type EpisodeEntry,
} from '../../../../extension/trainer/rollout/environment-state-manager';
import { finishedEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { episodeMetrics } from '../../../../extension/trainer/rollout/rollout-metrics';
import { ObservedPictures } from '../../../../extension/trainer/rollout/observed-pictures';
import { PictureStore, pictureName } from '../../../../extension/node/picture-store';
import { parseResponse } from '../../../../extension/trainer/rollout/turn-protocol';
import { UserError } from '../../../../extension/common/user-error';
import { temporaryFolder } from '../../../support/temporary-folder';
import { corridor, CorridorPool } from './scripted-rollout';

const folder = temporaryFolder();

const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 2 };

function manager(
  changes: {
    mode?: 'train' | 'val';
    env_groups?: number;
    group_size?: number;
    limit?: number;
    seed?: number;
    pictures?: ObservedPictures;
  } = {},
) {
  const { mode = 'train', env_groups = 1, group_size = 1, limit = 10, seed = 10000, pictures } = changes;
  const pool = new CorridorPool();
  const states = new EnvironmentStateManager(pool, {
    mode,
    seed,
    groups: { env_groups, group_size, env_configs: { tags: ['Corridor'], n_groups: [env_groups] } },
    custom_envs: { Corridor: { max_actions_per_traj: limit } },
    format_penalty: -0.1,
    pictures,
  });
  return { pool, states };
}

async function episodeOf(answers: string[], changes: Parameters<typeof manager>[0] = {}): Promise<EpisodeEntry> {
  const { states } = manager(changes);
  const [entry] = states.layOut(1, [corridor]);
  await states.reset([entry]);
  for (const answer of answers) {
    const raw = `<think>t</think><answer>${answer}</answer>`;
    await states.step([{ entry, raw, response: parseResponse(raw, protocol), finish: 'stop' }]);
  }
  return entry;
}

const finished = (entry: EpisodeEntry) => {
  const context = { messages: [], shortened: false, samples: () => [] };
  return finishedEpisode({ mode: 'train', step: 1 }, entry, context);
};

describe('seeds', () => {
  const seeds = (entries: EpisodeEntry[]) => [...new Set(entries.map(({ seed }) => seed))];

  it('advance with each training step, by one per group', () => {
    const { states } = manager({ env_groups: 8, group_size: 16 });
    const first = states.layOut(1, [corridor]);
    expect(first).toHaveLength(128);
    expect(seeds(first)).toEqual([10000, 10001, 10002, 10003, 10004, 10005, 10006, 10007]);
    expect(first[17]).toMatchObject({ env_id: 17, group_id: 1, member: 1, seed: 10001, id: 'train-000001-g001-m01' });
    expect(seeds(states.layOut(2, [corridor]))).toEqual([10008, 10009, 10010, 10011, 10012, 10013, 10014, 10015]);
  });

  it('are the same in every validation', () => {
    const { states } = manager({ mode: 'val', env_groups: 512, seed: 123 });
    for (const step of [0, 10]) {
      const all = seeds(states.layOut(step, [corridor]));
      expect([all[0], all.at(-1), all.length]).toEqual([123, 634, 512]);
    }
  });

  it('continue after a forced seed', () => {
    const { states } = manager({ env_groups: 8 });
    expect(states.layOut(1, [corridor], 10005)[0].seed).toBe(10005);
    expect(states.state).toEqual({ seed_counter: 6 });
    expect(states.layOut(2, [corridor])[0].seed).toBe(10006);
  });

  it('continue from a checkpoint', () => {
    const { states } = manager({ env_groups: 4 });
    states.layOut(1, [corridor]);
    const resumed = manager({ env_groups: 4 }).states;
    resumed.restore(JSON.parse(JSON.stringify(states.state)));
    expect(resumed.layOut(2, [corridor])[0].seed).toBe(10004);
  });

  it('are laid out with consecutive groups for each tag', () => {
    const states = new EnvironmentStateManager(new CorridorPool(), {
      mode: 'train',
      seed: 0,
      groups: { env_groups: 3, group_size: 2, env_configs: { tags: ['A', 'B'], n_groups: [1, 2] } },
      custom_envs: { A: { max_actions_per_traj: 1 }, B: { max_actions_per_traj: 7 } },
      format_penalty: -0.1,
    });
    const entries = states.layOut(1, [
      { ...corridor, tag: 'A' },
      { ...corridor, tag: 'B' },
    ]);
    expect(entries.map(({ tag, group_id }) => `${tag}${group_id}`)).toEqual(['A0', 'A0', 'B1', 'B1', 'B2', 'B2']);
    expect(entries[3].max_actions_per_traj).toBe(7);
    expect(() => states.layOut(2, [corridor])).toThrow('environment A is not loaded');
  });
});

describe('actions', () => {
  it('are recognized by name in upper or lower case, and dropped if unknown', () => {
    expect(validActions(['up', 'Foo', 'RIGHT'], corridor.actions)).toEqual([1, 4]);
  });

  it('are passed as text if the environment names no actions', () => {
    expect(validActions(['search[x]', 'Foo'])).toEqual(['search[x]', 'Foo']);
    expect(validActions(['1 + 2'], {})).toEqual(['1 + 2']);
  });
});

describe('episode-specific actions', () => {
  const arms = async (answer: string) => {
    const { states, pool } = manager();
    const reset = pool.reset.bind(pool);
    pool.reset = async episodes =>
      (await reset(episodes)).map(state => ({ ...state, actions: { 3: 'Nurse', 4: 'Pilot' } }));
    const [entry] = states.layOut(1, [{ ...corridor, actions: undefined }]);
    await states.reset([entry]);
    const raw = `<think>t</think><answer>${answer}</answer>`;
    await states.step([{ entry, raw, response: parseResponse(raw, protocol), finish: 'stop' }]);
    return entry;
  };

  it('are recognized by the names that the reset returns', async () => {
    const entry = await arms('nurse');
    expect(entry.history[0]).toMatchObject({ executed: ['Nurse'], penalty: 0 });
    expect(entry.penalty).toBe(0);
  });

  it('make any other answer invalid', async () => {
    const entry = await arms('Dragon');
    expect(entry.history[0]).toMatchObject({ executed: [], penalty: -0.1, info: { manager_invalid_action: true } });
    expect([entry.penalty, entry.manager_invalid_action, entry.num_actions]).toEqual([-0.1, true, 0]);
  });
});

describe('episode totals', () => {
  it('adds up rewards and penalties turn by turn', async () => {
    const entry = await episodeOf(['Up || Down', 'Foo || Up', '']);
    expect(entry.history.map(({ reward }) => reward)).toEqual([-0.2, -0.1, 0]);
    expect(entry.history.map(({ penalty }) => penalty)).toEqual([0, -0.1, -0.1]);
    expect(entry.history.map(({ actions_left }) => actions_left)).toEqual([10, 8, 7]);
    expect(entry.num_actions).toBe(3);
    expect(entry.manager_invalid_action).toBe(true);
    const episode = finished(entry);
    expect(episode.penalty).toBeCloseTo(-0.2, 12);
    expect(episode.score).toBeCloseTo(-0.5, 12);
    expect(episode.turns[1]).toMatchObject({ parsed: ['Foo', 'Up'], executed: ['Up'] });
    const metrics = episodeMetrics(episode);
    expect(metrics.action_is_valid).toBeCloseTo(0.6667, 4);
    expect(metrics.manager_invalid_action).toBeCloseTo(1 / 3, 9);
    expect(metrics).toMatchObject({ num_actions: 3, success: 0 });
    expect(metrics).not.toHaveProperty('note'); // text is not a metric
  });

  it('does not penalise actions cut by max_actions_per_turn', async () => {
    const entry = await episodeOf(['Up || Up || Up']);
    expect(entry.penalty).toBe(0);
    expect(entry.num_actions).toBe(2);
  });

  it('ends with success when the environment reports success, and executes no further action', async () => {
    const entry = await episodeOf(['Right || Right', 'Right || Up']); // seed 10000 starts in cell 1
    expect(entry).toMatchObject({ terminated: true, truncated: false, success: true, num_actions: 3 });
    expect(entry.history[1]).toMatchObject({ executed: ['Right'], reward: 10.9 });
    expect(finished(entry).reward).toBeCloseTo(10.7, 12);
  });

  it('ends without success if the environment ends it without reporting success', async () => {
    expect(await episodeOf(['Left || Left'])).toMatchObject({ terminated: true, truncated: false, success: false });
  });

  it('ends when the action budget is used up, and executes no more actions than the budget allows', async () => {
    const entry = await episodeOf(['Up || Down', 'Right || Up'], { limit: 3 });
    expect(entry).toMatchObject({ terminated: true, truncated: true, success: false, num_actions: 3 });
    expect(entry.history[1].executed).toEqual(['Right']);
    expect(entry.history[1].penalty).toBe(0);
    const ten = await episodeOf(['Up || Up', 'Up || Up', 'Up || Up', 'Up || Up', 'Up || Up']);
    expect(ten).toMatchObject({ terminated: true, truncated: true, success: false, num_actions: 10 });
  });

  it('merges info with the last action’s values, but sums raw_reward', async () => {
    const { pool, states } = manager();
    const [entry] = states.layOut(1, [corridor]);
    await states.reset([entry]);
    pool.step = async () => [
      {
        episode: entry.id,
        observation: 'o',
        version: 'v1',
        outcomes: [
          { action: 1, reward: 1, terminated: false, truncated: false, info: { a: 1, raw_reward: 2, score: 5 } },
          { action: 1, reward: 1, terminated: false, truncated: false, info: { a: 3, raw_reward: 4 } },
        ],
      },
    ];
    const raw = '<think></think><answer>Up || Up</answer>';
    await states.step([{ entry, raw, response: parseResponse(raw, protocol), finish: 'stop' }]);
    expect(entry.history[0].info).toEqual({ a: 3, raw_reward: 6, score: 5 });
    const episode = finished(entry);
    expect(episode.episodic_return).toBe(6);
    expect(episodeMetrics(episode)).toMatchObject({ a: 3, episodic_return: 6, final_score: 5 });
  });
});

describe('failures', () => {
  it('end the episode with no reward for the turn', async () => {
    const { pool, states } = manager({ env_groups: 2 });
    const entries = states.layOut(1, [corridor]);
    pool.failure = (episode, actions) => (actions.length > 0 && episode.includes('g000') ? 'board is gone' : undefined);
    await states.reset(entries);
    expect(entries.filter(({ error }) => error)).toEqual([]);
    const raw = '<think></think><answer>Right</answer>';
    await states.step(entries.map(entry => ({ entry, raw, response: parseResponse(raw, protocol), finish: 'stop' })));
    const failed = entries.filter(({ error }) => error);
    expect(failed).toEqual([entries[0]]);
    expect(entries[0]).toMatchObject({ truncated: true, terminated: false, error: { message: 'board is gone' } });
    expect(entries[0].history[0]).toMatchObject({ reward: 0, executed: ['Right'], info: {} });
    expect(isDone(entries[1])).toBe(false);
    expect(entries[1].history[0].reward).toBe(-0.1);
  });

  it('at reset leave an episode without turns', async () => {
    const { pool, states } = manager();
    const entries = states.layOut(1, [corridor]);
    pool.failure = () => 'no map';
    await states.reset(entries);
    expect(entries.every(({ error }) => error)).toBe(true);
    expect(entries[0]).toMatchObject({ truncated: true, history: [], error: { message: 'no map' } });
  });
});

describe('images', () => {
  const sentence =
    'config: custom_envs.Corridor returns images, which the model cannot read: use a vision-language model, or configure text observations (sokoban: custom_envs.Corridor.env_config.render_mode=text)';
  const images = [new Uint8Array([137])];

  it('are refused in the first state', async () => {
    const { pool, states } = manager();
    const { reset } = pool;
    pool.reset = async episodes => (await reset.call(pool, episodes)).map(state => ({ ...state, images }));
    await expect(states.reset(states.layOut(1, [corridor]))).rejects.toThrow(new UserError(sentence));
  });

  it('are refused in later states', async () => {
    const { pool, states } = manager();
    const [entry] = states.layOut(1, [corridor]);
    await states.reset([entry]);
    const { step } = pool;
    pool.step = async episodes => (await step.call(pool, episodes)).map(state => ({ ...state, images }));
    const raw = '<think></think><answer>Right</answer>';
    await expect(states.step([{ entry, raw, response: parseResponse(raw, protocol), finish: 'stop' }])).rejects.toThrow(
      sentence,
    );
  });

  const drawn = (shade: number): Uint8Array => {
    const png = new PNG({ width: 3, height: 2 });
    png.data.fill(shade);
    return PNG.sync.write(png);
  };

  it('are stored once and named by their turns', async () => {
    const store = new PictureStore(folder());
    const { pool, states } = manager({ group_size: 2, pictures: new ObservedPictures(store) });
    const { reset, step } = pool;
    const showing = <State extends { observation: string }>(state: State, pictures: Uint8Array[]): State => ({
      ...state,
      observation: 'a <image> b',
      images: pictures,
    });
    pool.reset = async episodes => (await reset.call(pool, episodes)).map(state => showing(state, [drawn(7)]));
    pool.step = async episodes => (await step.call(pool, episodes)).map(state => showing(state, [drawn(9)]));
    const entries = states.layOut(1, [corridor]);
    await states.reset(entries);
    const raw = '<think></think><answer>Right</answer>';
    const response = parseResponse(raw, protocol);
    await states.step(entries.map(entry => ({ entry, raw, response, finish: 'stop' as const })));
    const [first, second] = [pictureName(drawn(7)), pictureName(drawn(9))];
    for (const { history, pictures } of entries) {
      expect(history[0].pictures).toEqual([first]);
      expect(pictures).toEqual([{ name: second, width: 3, height: 2 }]);
    }
    expect(readdirSync(join(folder(), 'pictures')).sort()).toEqual([first, second].sort());
    expect(await store.read(first, 1000)).toEqual(Buffer.from(drawn(7)));
  });

  /** A small PNG file whose header claims another size. */
  const claimed = (width: number, height: number): Buffer => {
    const bytes = Buffer.from(drawn(1));
    bytes.writeUInt32BE(width, 16);
    bytes.writeUInt32BE(height, 20);
    return bytes;
  };

  it.each([
    ['two <image> <image>', [drawn(1)], 'has 1 picture, but its text has 2 marks <image>: write one mark per picture'],
    ['none', [drawn(1)], 'has 1 picture, but its text has 0 marks <image>: write one mark per picture'],
    [
      'cut <image>',
      [drawn(1).subarray(0, 40)],
      'has a picture (number 1) that is a damaged or truncated PNG file: send the complete file',
    ],
    [
      'cut <image>',
      [readFileSync('test/golden/vision/pictures/jpeg.jpg').subarray(0, 400)],
      'has a picture (number 1) that is a damaged or truncated JPEG file: send the complete file',
    ],
    [
      'first <image>, huge <image>',
      [drawn(1), claimed(100_000, 100_000)],
      'has a picture (number 2) that has 100000 × 100000 pixels, and at most 16384 a side and 16777216 in all are decoded: send a smaller picture',
    ],
    ['other <image>', [Buffer.from('GIF89a')], 'has a picture (number 1) that is a GIF file: send PNG or JPEG'],
  ])('of a mistaken observation (%s) fail its episode', async (observation, pictures, reason) => {
    const { pool, states } = manager({ group_size: 2, pictures: new ObservedPictures(new PictureStore(folder())) });
    const { reset } = pool;
    pool.reset = async episodes =>
      (await reset.call(pool, episodes)).map((state, i) =>
        i === 0 ? { ...state, observation, images: pictures } : state,
      );
    const entries = states.layOut(1, [corridor]);
    await states.reset(entries);
    const [{ tag, seed, member, error, truncated }, other] = entries;
    expect(error).toEqual({
      kind: 'bad_value',
      message: `environment ${tag} returned an observation in turn 1 (seed ${seed}, member ${member}) that ${reason}`,
    });
    expect(truncated).toBe(true);
    expect(other.error).toBeUndefined();
  });
});
