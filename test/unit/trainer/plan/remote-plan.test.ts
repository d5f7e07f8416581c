// Plans of runs on a server: requests and bytes of a step by hand and by their growth, what limits a rollout, and memory.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import {
  assumedRates,
  remoteMemory,
  remoteSizes,
  remoteTime,
  trafficOf,
  type RemoteSizes,
} from '../../../../extension/trainer/plan/remote-plan';
import { workloadOf } from '../../../../extension/trainer/plan/step-time';

const configOf = (...overrides: string[]) =>
  loadConfig({
    configName: 'quickstart',
    overrides: ['workbench.engine=tinker', 'workbench.engine_url=http://host:1', 'lora.rank=8', ...overrides],
    presetFolders: ['media/presets'],
    workspace: '/',
  }).config;

const sizes: RemoteSizes = {
  ...{ episodes: 8, turns: 2, response: 100, longest: 1000, vocabSize: 999 },
  ...{ forwards: 1, updates: 1, miniBatches: 2 },
};

describe('the traffic of a step', () => {
  test('of one turn without training is two exchanges per episode, with prompt and response', () => {
    const { requests, bytes } = trafficOf({ ...sizes, turns: 1, forwards: 0, updates: 0, miniBatches: 0 });
    expect(requests).toBe(2 * 8 + 2); // and the publication
    expect(bytes.sent).toBe(8 * (2 * 480 + 200 * 4) + 2 * 480);
    expect(bytes.received).toBe(8 * (2 * 230 + 100 * 24) + 2 * 230);
  });

  test('grows with episodes, turns, responses, passes and the vocabulary', () => {
    const base = trafficOf(sizes);
    const larger: Partial<RemoteSizes>[] = [
      ...[{ episodes: 9 }, { turns: 3 }, { response: 120 }],
      ...[{ forwards: 2 }, { updates: 2 }, { vocabSize: 150_000 }],
    ];
    for (const change of larger) {
      const { bytes } = trafficOf({ ...sizes, ...change });
      expect(bytes.sent, JSON.stringify(change)).toBeGreaterThan(base.bytes.sent);
      expect(bytes.received, JSON.stringify(change)).toBeGreaterThanOrEqual(base.bytes.received);
    }
    expect(trafficOf({ ...sizes, turns: 3 }).requests).toBe(base.requests + 2 * 8);
  });

  test('has no prompt that leaves no room for a response', () => {
    const most = trafficOf({ ...sizes, turns: 50, forwards: 0, updates: 0 }).bytes.sent;
    expect(most).toBeLessThan(50 * 8 * (2 * 480 + 900 * 4) + 10 * 480);
  });
});

describe('the sizes of a configuration', () => {
  test('count the passes: log-probs before each optimizer step, the reference, and old log-probs', () => {
    const passes = (...overrides: string[]) => {
      const { forwards, updates, miniBatches } = remoteSizes(configOf(...overrides), 1000);
      return [forwards, updates, miniBatches];
    };
    const bypass = 'algorithm.rollout_correction.bypass_mode';
    expect(passes(`${bypass}=true`)).toEqual([1, 1, 2]);
    expect(passes(`${bypass}=true`, 'actor_rollout_ref.actor.ppo_epochs=3')).toEqual([3, 3, 2]);
    expect(passes(`${bypass}=false`)).toEqual([1.5, 1, 2]);
    expect(
      passes(`${bypass}=true`, 'actor_rollout_ref.actor.use_ref=true', 'actor_rollout_ref.actor.use_kl_loss=true'),
    ).toEqual([2, 1, 2]);
  });
});

describe('the time of a step', () => {
  const config = configOf();
  const planned = remoteSizes(config, 1000);
  const work = workloadOf(config, 1e9);
  const timed = (rates: Partial<typeof assumedRates>) =>
    remoteTime(config, planned, work, { ...assumedRates, ...rates });

  test('is limited by the sampling rate, by round trips or by this machine', () => {
    expect(timed({ sampled_per_s: 100 }).limit).toBe('sampling rate');
    expect(timed({ sampled_per_s: 1e9, round_trip_s: 10 }).limit).toBe('round trips');
    expect(timed({ sampled_per_s: 1e9, round_trip_s: 1e-6 }).limit).toBe('this machine');
  });

  test('of a slow server is its tokens divided by its rates', () => {
    const { time } = timed({ sampled_per_s: 10, scored_per_s: 20, trained_per_s: 5, round_trip_s: 1e-6 });
    expect(time.generation_s).toBeCloseTo((work.episodes * work.sampled) / 10, 3);
    expect(time.training_s / ((work.episodes * work.tokens) / 20 + (work.episodes * work.tokens) / 5)).toBeCloseTo(
      1,
      3,
    );
    expect(time.step_s).toBe(time.generation_s + time.training_s);
    expect(time.total_s).toBe(24 * time.step_s);
  });
});

test('the memory of this machine grows with episodes and with rows in flight, and has no weights', () => {
  const peak = (...overrides: string[]) => {
    const config = configOf(...overrides);
    return remoteMemory(config, remoteSizes(config, 1000));
  };
  const plan = peak();
  expect(plan.rows.map(({ what }) => what)).toEqual([
    ...['process', 'environments', 'episodes', 'sampling requests', 'training requests'],
  ]);
  expect(plan.peak).toEqual({
    phase: 'policy update',
    bytes: plan.rows.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  expect(peak('es_manager.train.group_size=64').peak.bytes).toBeGreaterThan(plan.peak.bytes);
  expect(peak('workbench.engine_requests=8').peak.bytes).toBeLessThan(plan.peak.bytes);
});
