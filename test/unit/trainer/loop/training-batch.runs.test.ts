// The training batch of a step, compared with hand-computed values: masks, turn ends, token rewards, RAGEN's copies,
// and estimators over joined samples.
import { describe, expect, test } from 'vitest';
import { applyFactors, type FactorInput } from '../../../../extension/trainer/loop/advantage-factors';
import { creditOf } from '../../../../extension/trainer/loop/credit';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { turnReturns } from '../../../../extension/algorithms/turn-advantages';
import type { RunConfig } from '../../../../extension/trainer/config/schema';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import {
  adjustedOrder,
  adjustedSamplesOf,
  batchSamples,
  joinedSequences,
  samplesByEpisode,
  splitRows,
  tokenRewards,
} from '../../../../extension/trainer/loop/training-batch';
import { load } from '../config/presets';
import { partial } from '../../../support/partial';

const base = load('base').config;
const configured = (...overrides: string[]): RunConfig => load('base', ...overrides).config;

/** An episode of two turns in one sample of 8 tokens, of which 2, 3, 5 and 6 are sampled. */
const chat = partial<RolloutEpisode>({
  score: 0.7,
  group_id: 0,
  turns: [
    { turn: 1, reward: 1, penalty: -0.1 },
    { turn: 2, reward: -0.2, penalty: 0 },
  ],
  samples: [
    {
      ids: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
      mask: Uint8Array.of(0, 0, 1, 1, 0, 1, 1, 0),
      logprobs: new Float32Array(8),
      turns: [
        { turn: 1, span: [2, 4] },
        { turn: 2, span: [5, 7] },
      ],
    },
  ],
});

/** The same episode in a windowed context: one sample of 4 tokens per turn. */
const windowed = partial<RolloutEpisode>({
  ...chat,
  samples: [1, 2].map(turn => ({
    ids: Int32Array.of(1, 2, 3, 4),
    mask: Uint8Array.of(0, 0, 1, 1),
    logprobs: new Float32Array(4),
    turns: [{ turn, span: [2, 4] }],
  })),
});

describe('masks', () => {
  test("select the tokens of advantage estimation: sampled tokens, also the tokens between them, or RAGEN's tokens", () => {
    const estimated = (config: RunConfig) => [...batchSamples([chat], config)[0].estimated];
    expect(estimated(base)).toEqual([0, 0, 1, 1, 0, 1, 1, 0]);
    expect(estimated(configured('rollout_manager.use_gae_mask=false'))).toEqual([0, 0, 1, 1, 1, 1, 1, 0]);
    const wide = { ...chat, samples: [{ ...chat.samples[0], mask: Uint8Array.of(0, 1, 1, 1, 1, 1, 1, 1) }] };
    expect([...batchSamples([wide], configured('workbench.compat=ragen'))[0].estimated]).toEqual([
      0, 1, 1, 1, 1, 1, 1, 1,
    ]);
  });

  test('end turns at their last sampled tokens', () => {
    expect(batchSamples([chat, windowed], base).map(s => s.turnEnds)).toEqual([[3, 6], [3], [3]]);
    expect(batchSamples([chat, windowed], base).map(s => s.countsAs)).toEqual([0, 1, 1]);
  });
});

describe('token rewards', () => {
  const rewards = (episode: RolloutEpisode, config: RunConfig) =>
    tokenRewards(batchSamples([episode], config), () => 0.7, config).map(row => Array.from(row, x => Math.fround(x)));
  const f = Math.fround;

  test('put the score on the last sampled token of each sample', () => {
    expect(rewards(chat, base)).toEqual([[0, 0, 0, 0, 0, 0, f(0.7), 0]]);
    expect(rewards(windowed, base)).toEqual([
      [0, 0, 0, f(0.7)],
      [0, 0, 0, f(0.7)],
    ]);
  });

  test('put turn scores and penalties on each turn’s last token; RAGEN omits the penalties', () => {
    const turns = 'agent_proxy.use_turn_scores=true';
    expect(rewards(chat, configured(turns))).toEqual([[0, 0, 0, f(0.9), 0, 0, f(-0.2), 0]]);
    expect(rewards(windowed, configured(turns))).toEqual([
      [0, 0, 0, f(0.9)],
      [0, 0, 0, f(-0.2)],
    ]);
    expect(rewards(chat, configured(turns, 'workbench.compat=ragen'))).toEqual([[0, 0, 0, 1, 0, 0, f(-0.2), 0]]);
  });
});

describe('joined samples', () => {
  test('concatenate an episode’s turns for the estimator, and split its result by turn', () => {
    const config = configured('agent_proxy.use_turn_scores=true');
    const samples = batchSamples([chat, windowed], config);
    const rewards = tokenRewards(samples, () => 0, config);
    const sequences = samples.map(({ mask, estimated, turnEnds }, i) => ({
      ...{ rewards: rewards[i], mask, advantageMask: estimated, turnEnds, group: 0, baseline: 0 },
      ...{ values: new Float32Array(mask.length), logprobs: new Float32Array(mask.length) },
      squares: new Float32Array(mask.length),
    }));
    const rows = samplesByEpisode(samples);
    const joined = joinedSequences(sequences, rows);
    const advantages = splitRows(
      joined.map(row => Float32Array.from(turnReturns(row.rewards, 1))),
      rows,
      sequences.map(({ mask }) => mask.length),
    );
    expect(joined.map(row => [...row.turnEnds])).toEqual([
      [3, 6],
      [3, 7],
    ]);
    const round = (row: Float32Array) => Array.from(row, x => Number(x.toFixed(5)));
    expect(round(advantages[0])).toEqual([0.7, 0.7, 0.7, 0.7, -0.2, -0.2, -0.2, 0]);
    expect(round(advantages[1])).toEqual([0.7, 0.7, 0.7, 0.7]); // the first turn includes the second turn's reward
    expect(round(advantages[2])).toEqual([-0.2, -0.2, -0.2, -0.2]);
  });
});

describe('batch adjustment', () => {
  const order = (mode: string, count: number) =>
    adjustedOrder(count, configured(`agent_proxy.batch_adjust_mode=${mode}`), 1); // lcm(8 groups, mini-batch 32) = 32

  test('keeps all samples in mode weights, adds copies in mode copy, and never removes all samples in mode delete', () => {
    expect(order('weights', 80)).toEqual(Array.from({ length: 80 }, (_, i) => i));
    const copied = order('copy', 80);
    expect(copied).toHaveLength(96);
    expect(new Set(copied).size).toBe(80);
    const cut = order('delete', 80);
    expect(cut).toHaveLength(64);
    expect(new Set(cut).size).toBe(64);
    expect(order('delete', 31)).toHaveLength(31);
    expect(order('copy', 80)).toEqual(copied); // the stream is seeded by the step
    expect(adjustedOrder(80, configured('agent_proxy.batch_adjust_mode=copy'), 2)).not.toEqual(copied);
  });

  test('counts samples that RAGEN copies twice in their group', () => {
    const samples = batchSamples([chat, windowed], base);
    expect(adjustedSamplesOf(samples, [0, 1, 2, 1]).map(s => s.countsAs)).toEqual([0, 1, 1, 6]);
  });
});

describe('factors', () => {
  const ones = (): Float32Array[] => [1, 1, 1, 1].map(() => Float32Array.of(1, 1));
  const input = {
    scores: [1, 0, 0.5, 0.5],
    groups: [0, 0, 1, 1],
    episodes: [0, 1, 2, 3],
    masks: [Uint8Array.of(1, 1), Uint8Array.of(0, 1), Uint8Array.of(1, 1), Uint8Array.of(1, 1)],
    corrections: ones(),
    keptRatio: 0.25,
  };
  const applied = (...overrides: string[]) => appliedTo({ ...input, credit: null }, ...overrides);
  const appliedTo = (factors: FactorInput, ...overrides: string[]) => {
    const advantages = ones();
    const metrics = applyFactors(advantages, factors, configured('algorithm.adv_estimator=grpo', ...overrides));
    return { advantages: advantages.map(row => Array.from(row, x => Number(x.toFixed(5)))), metrics };
  };

  test('soft reweighting follows the group’s standard deviation, and reports its weights', () => {
    const { advantages, metrics } = applied('algorithm.soft_advantage_reweight=true');
    expect(advantages).toEqual([
      [1, 1],
      [1, 1],
      [0, 0],
      [0, 0],
    ]);
    expect(metrics).toEqual({
      'train/soft_reweight_min': 0,
      'train/soft_reweight_max': expect.closeTo(1, 5),
      'train/soft_reweight_mean': expect.closeTo(0.5, 5),
    });
  });

  test('a credit mask weighs tokens by the confidence of the sampler', async () => {
    const samples = [0.5, 1, 1, 1].map(p => ({
      ...{ ids: Int32Array.of(1, 2), logprobs: Float32Array.of(Math.log(p), Math.log(p)) },
      sample: { turns: [{ turn: 1, span: [0, 2] as [number, number] }] },
    }));
    /** Weighs the tokens of the first sample by 2, all others by 0. */
    const weighing: CallablePlugin = {
      path: 'plugins/own.ts',
      description: { kind: 'mask', name: 'own', functions: ['weigh'], properties: {} },
      call: (name, shown, settings) => {
        expect([name, settings]).toEqual(['weigh', { step: 7 }]);
        expect(shown).toMatchObject([{ turns: [{ texts: ['1', '2'] }] }, {}, {}, {}]);
        return Promise.resolve([[[2, 2]], [[0, 0]], [[0, 0]], [[0, 0]]]);
      },
    };
    const creditBy = (...overrides: string[]) =>
      creditOf(
        {
          config: configured('algorithm.adv_estimator=grpo', ...overrides),
          tokenizer: { decode: (ids: readonly number[]) => ids.join(' ') },
          plugins: { set: { plugin: () => weighing } },
        },
        samples,
        7,
      );
    const credit = await creditBy('workbench.credit_mask=deciding_tokens');
    const weighted = [
      [4, 4],
      [0, 0],
      [0, 0],
      [0, 0],
    ];
    expect(appliedTo({ ...input, credit }).advantages).toEqual(weighted);
    expect(await creditBy('workbench.credit_mask=plugins/own.ts')).toEqual(credit);
    expect(await creditBy()).toBeNull();
    expect(applied().advantages).toEqual(ones().map(row => [...row]));
  });

  test('short samples have larger weights, the kept share scales weights, and a control run has weight 0', () => {
    expect(applied('grpo_advantage_length_weight=true').advantages).toEqual([
      [0.875, 0.875],
      [1.75, 1.75],
      [0.875, 0.875],
      [0.875, 0.875],
    ]);
    expect(applied('actor_rollout_ref.actor.filter_loss_scaling=sqrt').advantages[0]).toEqual([0.5, 0.5]);
    expect(
      applied('algorithm.zero_task_advantage=true')
        .advantages.flat()
        .every(x => x === 0),
    ).toBe(true);
    expect(applied().metrics).toEqual({});
  });
});
