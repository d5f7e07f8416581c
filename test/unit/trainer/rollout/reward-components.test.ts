// Reward components in a rollout: what the environment is asked, and how values become rewards, scores, metrics, records
// and token rewards. Without components, the episodes are the same as before.
import { describe, expect, it } from 'vitest';
import type { EpisodeActions, EpisodeStep, LoadedEnvironment } from '../../../../extension/protocol/environment-link';
import { episodeSchema } from '../../../../extension/run-data/episode';
import { rewards } from '../../../../extension/trainer/config/schema-rewards';
import { batchSamples, tokenRewards } from '../../../../extension/trainer/loop/training-batch';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { episodeRecord } from '../../../../extension/trainer/rollout/episode-record';
import { characterTokenizer, corridor, corridorOptions, CorridorPool, ScriptedGenerator } from './scripted-rollout';

/** A corridor that scores: `letters` per turn, the length of the thought; `turns` per episode, their number. */
class ScoringPool extends CorridorPool {
  readonly asked: EpisodeActions[] = [];
  scoreFailure: (request: EpisodeActions) => string | undefined = () => undefined;

  override async step(episodes: EpisodeActions[]): Promise<EpisodeStep[]> {
    this.asked.push(...episodes);
    const steps = await super.step(episodes);
    return steps.map((step, i): EpisodeStep => {
      const { score } = episodes[i];
      const message = score && this.scoreFailure(episodes[i]);
      if (message) return { ...step, error: { kind: 'threw', message } };
      if (!score) return step;
      const components: Record<string, number> =
        'turn' in score ? { letters: score.turn.thought?.length ?? 0 } : { turns: score.episode.turns.length };
      return { ...step, components };
    });
  }
}

const scoring: LoadedEnvironment = {
  ...corridor,
  components: { letters: 0.5, turns: 10 },
  scores: { turn: true, episode: true },
};
const options = corridorOptions();
const single = { ...options.es_manager.train, env_groups: 1, env_configs: { tags: ['Corridor'], n_groups: [1] } };
function proxy(script: (row: string, turn: number) => string, given?: object) {
  const pool = new ScoringPool();
  const Corridor = { ...options.custom_envs.Corridor, ...(given && { rewards: rewards.parse(given) }) };
  const changes = { custom_envs: { Corridor }, es_manager: { ...options.es_manager, train: single } };
  return {
    pool,
    agent: new AgentProxy(new ScriptedGenerator(script), pool, characterTokenizer, corridorOptions(changes)),
  };
}
const play = (environment: LoadedEnvironment) => ({ mode: 'train', step: 1, environments: [environment] }) as const;
/** Two steps to the right in each turn; member 1 writes no action in its first turn. */
const script = (row: string, turn: number) =>
  row.endsWith('m01') && turn === 1 ? 'nothing' : `${'x'.repeat(turn)}</think><answer>Right || Right</answer>`;

describe('components of score functions', () => {
  it('are asked for each turn, also without an action, and once for the episode', async () => {
    const { pool, agent } = proxy(script);
    const { episodes } = await agent.rollout(play(scoring));
    const asked = pool.asked.filter(({ episode }) => episode.endsWith('m01'));
    expect(asked.map(({ actions, score }) => [actions.length, Object.keys(score!)[0]])).toEqual([
      [0, 'turn'],
      [2, 'turn'],
      [2, 'turn'],
      [0, 'episode'],
    ]);
    expect(asked[0].score).toEqual({
      turn: { turn: 1, state: '_P__G', raw: '<think>nothing', thought: null, answer: null, parsed: [], finish: 'stop' },
    });
    const { turns, ...rest } = (asked[3].score as Extract<(typeof asked)[3]['score'], { episode: object }>).episode;
    expect(rest).toEqual({ final_state: '____P', terminated: true, truncated: false, success: true });
    expect(turns.map(({ executed, reward }) => [executed.length, reward])).toEqual([
      [0, 0],
      [2, -0.2],
      [1, 10.9],
    ]);
    expect(episodes[1].turns.map(({ components }) => components)).toEqual([
      { letters: 0 },
      { letters: 2 },
      { letters: 3 },
    ]);
  });

  it('are added to the score with their weights, and the prompt shows the reward of the environment alone', async () => {
    const { agent } = proxy(script, { weights: { turns: 1 }, thought_length: { weight: -1, min: 2, max: 2 } });
    const { episodes } = await agent.rollout(play(scoring));
    const [episode] = episodes;
    expect(episode.turns.map(({ components, component_reward }) => [components, component_reward])).toEqual([
      [{ letters: 1, thought_length: 0.5 }, 0],
      [{ letters: 2, thought_length: 0.5 }, 0.5],
    ]);
    expect([episode.components, episode.end_reward, episode.component_reward]).toEqual([{ turns: 2 }, 2, 2.5]);
    expect(episode.score).toBe(episode.reward + episode.penalty + 2.5);
    expect(episode.messages.map(({ content }) => content).join()).toContain('Reward:\n-0.2\n');
    const record = episodeSchema.parse(JSON.parse(JSON.stringify(episodeRecord(episode))));
    expect(record).toMatchObject({ component_reward: 2.5, components: { turns: 2 }, score: episode.score });
    expect(record.turns[1]).toMatchObject({ components: { letters: 2, thought_length: 0.5 }, component_reward: 0.5 });
    const keys = Object.keys(episodeRecord(episode));
    expect(keys.indexOf('components')).toBeLessThan(keys.indexOf('messages')); // text search reads up to the messages
  });

  it('have one metric each, averaged over the turns and the episodes that have a value', async () => {
    const { agent } = proxy(script, { grounding: { weight: 1 } });
    const { metrics, episodes } = await agent.rollout(play(scoring));
    const own = Object.entries(metrics).filter(([key]) => key.includes('component'));
    expect(Object.fromEntries(own)).toEqual({
      'Corridor/component_reward': (0.5 * 3 + 20 + (0.5 * 5 + 30)) / 2,
      'Corridor/non-zero/component_reward': (0.5 * 3 + 20 + (0.5 * 5 + 30)) / 2,
      'Corridor/components/letters': (1.5 + 5 / 3) / 2,
      'Corridor/components/turns': 2.5,
    }); // the corridor's state has no terms, so grounding has no value
    expect(episodes[0].metrics['components/letters']).toBe(1.5);
  });

  it('become token rewards: at the end of the episode, or turn by turn with those of the episode at its end', async () => {
    const { agent } = proxy(script, { weights: { turns: 1 } });
    const { episodes } = await agent.rollout(play(scoring));
    const config = { workbench: { compat: 'corrected' }, rollout_manager: { use_gae_mask: false } } as never;
    const samples = batchSamples(episodes.slice(0, 1), config);
    const of = (use_turn_scores: boolean, compat = 'corrected') => {
      const settings = { agent_proxy: { use_turn_scores }, workbench: { compat } } as never;
      const [row] = tokenRewards(samples, ({ score }) => score, settings);
      return Array.from(row).filter(x => x !== 0);
    };
    const near = (values: number[]) => values.map(value => expect.closeTo(value, 5) as number);
    expect(of(false)).toEqual(near([episodes[0].score]));
    expect(of(true)).toEqual(near([-0.2 + 0.5, 10.9 + 1 + 2]));
    expect(of(true, 'ragen')).toEqual(near([-0.2 + 0.5, 10.9 + 1 + 2]));
  });

  it('fail only their episode if their code fails, in a turn or at the end', async () => {
    const { agent, pool } = proxy(script);
    pool.scoreFailure = ({ episode, score }) =>
      episode.endsWith('m00') && 'episode' in score! ? 'environment Corridor threw in scoreEpisode()' : undefined;
    const failures: string[] = [];
    const { episodes, metrics } = await agent.rollout({
      ...play(scoring),
      onFailure: ({ id, failure }) => failures.push(`${id} ${failure.message}`),
    });
    expect(failures).toEqual(['train-000001-g000-m00 environment Corridor threw in scoreEpisode()']);
    expect(episodes.map(({ error }) => error?.kind)).toEqual(['threw', undefined]);
    expect(metrics.env_error_rate).toBe(0.5);
    pool.scoreFailure = () => 'environment Corridor threw in score()';
    await expect(agent.rollout(play(scoring))).rejects.toThrow('threw in score() (2 of 2 episodes failed');
  });
});

describe('without components', () => {
  it('nothing is asked, stored or logged', async () => {
    const { agent, pool } = proxy(script);
    const { episodes, metrics } = await agent.rollout(play(corridor));
    expect(pool.asked.some(request => 'score' in request)).toBe(false);
    expect(pool.asked.every(({ actions }) => actions.length > 0)).toBe(true);
    expect(JSON.stringify([episodes.map(episode => episodeRecord(episode)), metrics])).not.toContain('component');
    expect(episodes[0].score).toBe(episodes[0].reward + episodes[0].penalty);
  });
});
