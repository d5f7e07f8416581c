// The calls with which `ragen plugin check` tries out a plug-in of each kind, with small sample data that includes the
// cases in which formulas often fail: equal scores in a group, and a group of one episode.
import type { EstimatorBatch, EstimatorSettings } from '../../../envs/api/plugins/estimator';
import type { PromptGroup } from '../../../envs/api/plugins/filter';
import type { LossSequence, TokenLosses } from '../../../envs/api/plugins/loss';
import type { WeighedSample } from '../../../envs/api/plugins/mask';
import type { MeasuredEpisode } from '../../../envs/api/plugins/measured-episode';
import type { MeasuredStep } from '../../../envs/api/plugins/metric';
import type { PlayedEpisode } from '../../../envs/api/plugins/played-episode';
import type { ReportedRunData } from '../../../envs/api/plugins/report';
import { covarianceOf, gateOf } from '../../algorithms/policy-loss-options';
import type { PluginDescription, PluginKind } from '../../protocol/plugin-link';
import { estimateWith } from './checked-estimate';
import { badValue, type CallablePlugin } from './checked-values';
import { boundWith, ruleOf } from './checked-alarm';
import { checkedPlan, computesLines } from './checked-chart';
import { filterWith, needsEntropy } from './plugin-filter';
import { lossWith } from './plugin-loss';
import { weighWith } from './plugin-mask';
import { rememberWith, remembersFirstTurn } from './plugin-memory';
import { measureWith } from './plugin-metrics';
import { reportWith } from './checked-report';

export interface Trial {
  /** What the trial shows, as a clause. */
  name: string;
  /** Whether the trial is for a plug-in with these functions; absent for a trial of all plug-ins of the kind. */
  isFor?(description: PluginDescription): boolean;
  /** @throws PluginError if the plug-in fails or returns an invalid value */
  run(plugin: CallablePlugin): Promise<unknown>;
}

const settings: EstimatorSettings = {
  ...{ gamma: 1, lam: 1, high_level_gamma: 0.95, high_level_lam: 1, turn_value: 'end', turn_gae: 'off' },
  ...{ norm_adv_by_std_in_grpo: true, compat_ragen: false, step: 1, seed: 1 },
};

/** A batch of episodes of two turns with two sampled tokens each. */
function estimatorBatch(scores: readonly number[], groups: readonly number[]): EstimatorBatch {
  const masks = scores.map(() => Uint8Array.of(0, 1, 1, 0, 1, 1));
  return {
    ...{ scores: Float64Array.from(scores), groups: Int32Array.from(groups), masks },
    episodes: Int32Array.from(scores.keys()),
    sequences: scores.map((score, i) => ({
      ...{ group: groups[i], mask: masks[i], turnEnds: [2, 5], baseline: 0 },
      rewards: Float32Array.of(0, 0, 0, 0, 0, score),
      advantageMask: Uint8Array.of(0, 1, 1, 1, 1, 1),
      logprobs: Float32Array.of(0, -0.5, -1, 0, -0.1, -2),
      values: new Float32Array(6),
      squares: new Float32Array(6),
    })),
  };
}

/** Scores and groups of the batches with which an estimator is tried out. */
const scoredGroups: readonly [what: string, scores: number[], groups: number[]][] = [
  ['two groups of different scores', [1, 0, 0.5, -0.5], [0, 0, 1, 1]],
  ['a group of equal scores', [1, 1, 1], [0, 0, 0]],
  ['a group of one episode', [0.7], [0]],
];

/** The trials of a function that measures a step. */
const measuringTrials = (name: 'measure' | 'lines'): Trial[] =>
  (
    [
      [
        'a step of four episodes',
        [
          [1, 0],
          [1, 0.5],
        ],
      ],
      ['a step without episodes', []],
    ] as const
  ).map(([what, scores]) => ({
    name: `${name} returns valid values for ${what}`,
    run: plugin => measureWith(plugin, measured(scores)),
  }));

export const pluginTrials: Readonly<Record<PluginKind, readonly Trial[]>> = {
  estimator: scoredGroups.map(([what, scores, groups]) => ({
    name: `estimate returns valid advantages for ${what}`,
    run: plugin => estimateWith(plugin, estimatorBatch(scores, groups), settings),
  })),
  filter: [
    {
      name: 'score and select return valid values for three groups',
      run: plugin => {
        const shown = groups([[1, 0], [1, 1], [0]]);
        const settings = { step: 1, seed: 1 };
        if (!needsEntropy(plugin)) return filterWith(plugin, shown, settings);
        const measured = shown.map(group => ({
          ...group,
          episodes: group.episodes.map((each, member) => ({ ...each, entropy: 0.5 + member })),
        }));
        return filterWith(plugin, measured, settings);
      },
    },
  ],
  metric: measuringTrials('measure'),
  chart: [
    {
      name: 'the chart lists keys of metrics, or has lines, and its texts are valid',
      run: plugin => Promise.resolve(checkedPlan(plugin)),
    },
    ...measuringTrials('lines').map(trial => ({ ...trial, isFor: computesLines })),
  ],
  loss: [
    {
      name: 'loss returns valid values, and the slope is the derivative of the loss',
      run: async plugin => {
        const at = lossSequences(0);
        const [losses, further] = [
          await lossWith(plugin, at, lossSettings),
          await lossWith(plugin, lossSequences(nudge), lossSettings),
        ];
        requireSlopes(plugin.path, at, losses, further);
        return losses;
      },
    },
  ],
  mask: [
    {
      name: 'weigh returns valid weights for a sample of two turns, a turn of one token, and no samples',
      run: async plugin => [await weighWith(plugin, weighed, { step: 1 }), await weighWith(plugin, [], { step: 1 })],
    },
  ],
  memory: [
    {
      name: 'remember returns a text for the first turn if it has one, for later turns, and for no turns to show',
      run: async plugin => {
        const [first, second] = episode(0, 0, 1).turns;
        const state = 'The room is dark.';
        const instructions = 'You have 3 actions left.\n';
        const current = `State:\n${state}\n${instructions}`;
        const now = { state, current, instructions, warn: false };
        const about = { environment: 'words', ...now, answer_tag: 'answer' } as const;
        return [
          ...(remembersFirstTurn(plugin)
            ? [await rememberWith(plugin, { ...about, turn: 1, past: [], shown: 0 })]
            : []),
          await rememberWith(plugin, { ...about, turn: 2, past: [first], shown: 1 }),
          await rememberWith(plugin, { ...about, turn: 3, past: [first, second], shown: 2 }),
          await rememberWith(plugin, { ...about, turn: 3, past: [first, second], shown: 0 }),
        ];
      },
    },
  ],
  report: [
    {
      name: 'report returns a text for a run of three steps, a run without steps, and no runs',
      run: async plugin => [
        await reportWith(plugin, [reported('long', 3), reported('empty', 0)]),
        await reportWith(plugin, []),
      ],
    },
  ],
  alarm: [
    {
      name: 'bound returns a valid bound, or null, for no, few and many earlier values',
      run: async plugin => {
        ruleOf(plugin.description, plugin.path);
        const series = [[], [0.5], [1, 0.9, 0.8, 0.7], Array.from({ length: 30 }, (_, i) => i / 30)];
        const bounds = [];
        for (const before of series) bounds.push(await boundWith(plugin, before));
        return bounds;
      },
    },
  ],
};

const weighed: readonly WeighedSample[] = [
  {
    turns: [
      { logprobs: Float32Array.of(-0.1, -2, 0), texts: ['<think>', 'up', '</think>'] },
      { logprobs: Float32Array.of(-0.5, -0.01), texts: ['<answer>', 'Up'] },
    ],
  },
  { turns: [{ logprobs: Float32Array.of(-3), texts: ['Down'] }] },
];

/** An episode of two turns. */
const episode = (group: number, member: number, score: number): PlayedEpisode => ({
  ...{ id: `train-000001-g00${group}-m0${member}`, tag: 'Words', group, member, seed: 100 + group },
  ...{ terminated: true, truncated: false, success: score > 0, reward: score, penalty: 0, score, tokens: 24 },
  turns: [1, 2].map(turn => ({
    ...{ turn, state: 'The room is dark.', raw: '<think> I look. </think><answer> Look </answer>' },
    ...{ thought: 'I look.', answer: 'Look', parsed: ['Look'], executed: turn === 2 ? ['Look'] : [] },
    ...{ reward: turn === 2 ? score : 0, info: { success: score > 0 }, finish: 'stop' as const },
  })),
});

const groups = (scores: readonly (readonly number[])[]): PromptGroup[] =>
  scores.map((members, group) => ({
    ...{ group, tag: 'Words', seed: 100 + group, draw: 2 ** group },
    episodes: members.map((score, member) => episode(group, member, score)),
  }));

/** A step of episodes with the given scores, and an episode whose environment failed. */
function measured(scores: readonly (readonly number[])[]): MeasuredStep {
  const shown = (played: PlayedEpisode, kept: boolean): MeasuredEpisode => ({
    ...{ ...played, kept, thinks: true, episodic_return: played.reward, context_full: false, context_shortened: false },
    metrics: { success: Number(played.success), num_actions: 1 },
  });
  const episodes = groups(scores).flatMap(({ episodes }, group) => episodes.map(each => shown(each, group === 0)));
  const failed = { ...shown({ ...episode(9, 0, 0), turns: [], tokens: 0 }, false), error: 'the environment failed' };
  const metrics = { 'actor/entropy': 1.2, 'rollout/in_group_reward_std': 0.5 };
  return { step: 1, episodes, played: [...episodes, failed], metrics };
}

const lossSettings = {
  ...{ clip_ratio_low: 0.2, clip_ratio_high: 0.2, clip_ratio_c: 3, step: 1, seed: 1 },
  ...{ ...gateOf({}), ...covarianceOf({}) },
};

/** Change of a log-prob with which the derivative of a loss is estimated. */
const nudge = 0.01;

/** Two sequences with ratios below, at and above 1; the log-prob of token 2 of the first is changed by `change`. */
const lossSequences = (change: number): LossSequence[] =>
  [0.5, -0.5].map((advantage, i) => ({
    logprobs: Float32Array.of(0, -1, -0.95 + (i === 0 ? change : 0), -1.5),
    old: Float32Array.of(0, -1, -1, -1),
    advantages: Float32Array.of(0, advantage, advantage, advantage),
    mask: Uint8Array.of(0, 1, 1, 1),
  }));

/**
 * Compares the slope of a token with the change of its loss. Losses of sequence ratios are scaled by the length of the
 * sequence, so only the sign is compared.
 * @throws PluginError if the signs differ
 */
function requireSlopes(
  path: string,
  [{ mask }]: readonly LossSequence[],
  [{ loss, slope }]: readonly Record<keyof TokenLosses, Float32Array>[],
  [moved]: readonly Record<keyof TokenLosses, Float32Array>[],
): void {
  const change = mask.reduce((sum, bit, token) => sum + (bit ? moved.loss[token] - loss[token] : 0), 0);
  if (Math.abs(change) < 1e-6 || change * slope[2] > 0) return;
  throw badValue(
    { path, function: 'loss' },
    `returned the slope ${slope[2].toPrecision(3)} for a token whose loss changes by ${(change / nudge).toPrecision(3)} per nat of its log-prob`,
    'return the derivative of the loss with respect to the log-prob, or constants for parts without gradient',
  );
}

/** A run with the configuration and the metrics that most runs have. */
function reported(name: string, steps: number): ReportedRunData {
  const id = `20260101-120000-${name}-0000`;
  const config = { algorithm: { adv_estimator: 'grpo' } };
  const state = 'finished';
  return {
    ...{ id, name, state, config, live: false, checkpoints: [], episodes: [], notes: '' },
    metrics: Array.from({ length: steps }, (_, i) => ({ step: i + 1, 'train/charts/avg_episode_return': i / 4 })),
    events: [{ step: steps, kind: 'state', message: 'finished' }],
    manifest: {
      ...{ schema: 1, id, name, config, config_name: name, config_hash: '', created: '2026-01-01T12:00:00Z' },
      ...{ overrides: [], seeds: { train: 1 }, versions: {}, hardware: {}, environments: [] },
      model: { path: 'model', sha256: '', parameters: 1 },
    },
    status: {
      ...{ state, step: steps, total_steps: steps, success: null, reward: null, tokens_per_s: null },
      ...{ eta_s: null, phase: 'idle', updated: '2026-01-01T12:10:00Z' },
    },
  };
}
