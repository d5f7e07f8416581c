// An episode with reward components, judgements and tool calls, made of an episode that has none.
import type { Episode } from '../../../extension/run-data/episode';

/** Returns `episode` with components in every turn, calls in the first turn, and two judgements. */
export function scoredEpisode(episode: Episode): Episode {
  const turns = episode.turns.map((turn, i) => ({
    ...turn,
    ...{ components: { grounding: 0.5, repetition: i / 8 }, component_reward: 0.0625 },
  }));
  const [first] = turns;
  const judgement = {
    model: 'judge',
    text: 'Each move is explained.\nScore: 7.5',
    cached: false,
    tokens: 120,
    cost: 0.001,
  };
  const judgements = {
    clarity: [
      { ...judgement, score: 0.75 },
      { ...judgement, model: 'other', score: null, text: 'no answer within 300 s', cost: 0 },
    ],
  };
  const calls = [
    { name: 'lookup', arguments: { item: 'drum', rows: [1, 2] }, result: '3 "drums"', error: false, ms: 1.5 },
    { name: '', arguments: {}, result: 'Error: the tool call has no name.', error: true, ms: 0 },
  ];
  const component_reward = turns.reduce((sum, turn) => sum + turn.component_reward, 0.15);
  return {
    ...episode,
    ...{ component_reward, components: { clarity: 0.75, directness: -0.25 }, judgements },
    score: episode.score + component_reward,
    turns: [{ ...first, calls }, ...turns.slice(1)],
  };
}
