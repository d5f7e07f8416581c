// Metrics with special rules: WebShop's sums, the largest tile, returns on the environment's own scale.
import { describe, expect, it } from 'vitest';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { measureRollout as measured } from '../../../../extension/trainer/rollout/rollout-metrics';

function episode(tag: string, infos: Record<string, unknown>[], changes: Partial<RolloutEpisode> = {}): RolloutEpisode {
  return {
    id: '',
    mode: 'train',
    step: 1,
    env_id: 0,
    group_id: 0,
    member: 0,
    tag,
    seed: 0,
    environment: { name: tag, version: 'v1' },
    terminated: false,
    truncated: false,
    success: false,
    context_full: false,
    context_shortened: false,
    reward: 0,
    penalty: 0,
    score: 0,
    episodic_return: 0,
    turns: infos.map((info, index) => ({
      turn: index + 1,
      state: '',
      actions_left: 1,
      raw: '',
      thought: null,
      answer: null,
      parsed: [],
      executed: [],
      reward: 0,
      penalty: 0,
      info,
      finish: 'stop',
    })),
    final_state: '',
    messages: [],
    samples: [],
    metrics: {},
    ...changes,
  };
}

const measureRollout = (episodes: RolloutEpisode[], size: number) => measured(episodes, size, () => true);

describe('rollout metrics', () => {
  it('sum what WebShop reports, except its validity flags', () => {
    const infos = [
      { items: 2, action_is_valid: true },
      { items: 4, action_is_valid: false },
    ];
    const metrics = measureRollout([episode('WebShop', infos)], 1);
    expect(metrics).toMatchObject({ 'WebShop/traj_sum/items': 6, 'WebShop/action_is_valid': 0.5 });
    expect(metrics).not.toHaveProperty(['WebShop/items']);
  });

  it('use the last tile of an episode and the largest of the batch', () => {
    const batch = [
      episode('game_2048', [{ max_tile: 4 }, { max_tile: 8 }]),
      episode('game_2048', [{ max_tile: 2 }, { max_tile: 4 }]),
    ];
    expect(measureRollout(batch, 2)).toMatchObject({ 'game_2048/max_tile': 6, 'rollout/max_tile': 8 });
  });

  it('are computed separately by tag, and count a missing key as 0', () => {
    const batch = [
      episode('A', [{ found: 1 }], { episodic_return: 4 }),
      episode('A', [{}], { group_id: 1, success: true }),
      episode('B', [{ found: 3 }], { group_id: 2 }),
    ];
    expect(measureRollout(batch, 1)).toMatchObject({
      'A/found': 0.5,
      'A/non-zero/found': 1,
      'A/success': 0.5,
      'A/pass@1': 0.5,
      'B/found': 3,
      'B/success': 0,
      'charts/avg_episode_return': 4 / 3,
    });
  });

  it('contain only the error rate if all environments failed', () => {
    const failed = episode('A', [], { error: { kind: 'died', message: 'gone' } });
    expect(measureRollout([failed], 1)).toEqual({ env_error_rate: 1 });
  });

  it('ignore values that are not finite numbers', () => {
    const infos = [{ note: 'x', list: [1], gap: NaN, ratio: 0.5 }];
    expect(measureRollout([episode('A', infos)], 1)).toMatchObject({ 'A/ratio': 0.5 });
    expect(Object.keys(measureRollout([episode('A', infos)], 1)).join()).not.toMatch(/note|list|gap/);
  });
});
