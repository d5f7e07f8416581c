// The built-in metrics of episodes: each is a definition as a plug-in exports it, and a plug-in receives what they read.
// Expected values are computed by hand from a few episodes.
import { expect, it } from 'vitest';
import type { MeasuredEpisode } from '../../../../envs/api/plugins/measured-episode';
import { defineMetric } from '../../../../envs/api/plugins/metric';
import { measuredWith, rolloutMetrics, textMetrics } from '../../../../extension/trainer/diagnostics/built-in-metrics';
import { asksForThoughts } from '../../../../extension/trainer/rollout/turn-protocol';
import type { RunConfig } from '../../../../extension/trainer/config/schema';
import { measuredStep } from '../../../../extension/trainer/rollout/measured-step';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { partial, type Part } from '../../../support/partial';

type Config = Pick<RunConfig, 'agent_proxy' | 'custom_envs'>;
const step = (episodes: Part<RolloutEpisode>[], custom_envs: Part<Config['custom_envs']> = {}, enable_think = true) => {
  const played = episodes.map(episode => partial<RolloutEpisode>({ samples: [], metrics: {}, ...episode }));
  const thinks = asksForThoughts(partial<Config>({ agent_proxy: { enable_think }, custom_envs }));
  return measuredStep({ step: 1, played, trainable: played.filter(({ error }) => !error) }, thinks);
};

it('measures thoughts and answers without an action', () => {
  const turn = (thought: string | null, executed: string[]) => ({ thought, executed });
  const episodes = [{ turns: [turn('go', ['Up']), turn(null, [])] }, { turns: [turn(' ', []), turn('go', ['Up'])] }];
  expect(measuredWith(textMetrics, step(episodes))).toMatchObject({
    'thoughts/most_frequent': 1,
    'rollout/invalid_answer_rate': 0.5,
    'thoughts/rate': 0.5,
  });
  expect(measuredWith(textMetrics, step([]))).toEqual({});
});

it('counts the thoughts of the tags whose prompt format asks for them', () => {
  const turns = (tag: string, ...thoughts: (string | null)[]) => ({
    tag,
    turns: thoughts.map(thought => ({ thought, executed: ['Up'] })),
  });
  const episodes = [turns('Plain', 'go'), turns('Silent', null, null), turns('Grounded', 'go', null, null)];
  const formats = { Silent: { prompt_format: 'no_think' }, Grounded: { prompt_format: 'grounding' } } as const;
  const measured = (...args: Parameters<typeof step>) => measuredWith(textMetrics, step(...args));
  expect(measured(episodes, formats)['thoughts/rate']).toBe(0.5);
  expect(measured(episodes, formats, false)['thoughts/rate']).toBe(1 / 3);
  expect(measured([episodes[1]], formats)).toEqual({ 'rollout/invalid_answer_rate': 0 });
});

it('logs the metrics of a rollout in their order, and only the error rate if all environments failed', () => {
  const played = { tag: 'A', episodic_return: 2, context_full: true, context_shortened: false, turns: [] };
  const failed = { ...played, error: { kind: 'died' as const, message: 'gone' } };
  const noted = { ...played, metrics: { success: 1, 'components/short': 0.5 } };
  expect(Object.entries(measuredWith(rolloutMetrics, step([noted, failed])))).toEqual([
    ['env_error_rate', 0.5],
    ['A/num_episodes', 1],
    ['A/success', 1],
    ['A/non-zero/success', 1],
    ['A/components/short', 0.5],
    ['charts/avg_episode_return', 2],
    ['num_episodes', 1],
    ['response_length', 0],
    ['response_length/clip_ratio', 0],
    ['num_turns/mean', 0],
    ['context_full', 1],
    ['context_shortened', 0],
  ]);
  expect(measuredWith(rolloutMetrics, step([failed]))).toEqual({ env_error_rate: 1 });
});

it('are definitions that a plug-in can export, and read only what a plug-in receives', () => {
  const judgement = { model: 'judge', score: 0.5, text: 'fine', cached: false, tokens: 8, cost: 0 };
  const turn = { thought: 'go', executed: ['Up'], finish: 'length' as const, judgements: { observation: [judgement] } };
  const episodes = [{ tag: 'A', group_id: 3, turns: [turn], judgements: { quality: [judgement] }, episodic_return: 1 }];
  const given = step(episodes);
  const received: MeasuredEpisode[] = structuredClone(given.played) as MeasuredEpisode[];
  for (const metric of [...rolloutMetrics, ...textMetrics]) {
    const { measure } = defineMetric(metric);
    expect(measure({ ...given, episodes: received, played: received })).toEqual(measure(given));
  }
  expect(measuredWith(rolloutMetrics, given)).toMatchObject({
    'A/judges/quality/requests': 1,
    'A/judges/observation/tokens': 8,
    'response_length/clip_ratio': 1,
  });
});
